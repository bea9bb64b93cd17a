"""What one poll and one plan cost as a stream grows: flat in its trains and in its producers; and fleets.

Trains of one row, from producers in turn, and one more producer that holds the clock: nothing is released.
Then it goes, and all is. In each state the source is asked what Spark's query thread asks it, at the
stream's end: a poll finds no news; a plan finds one train more, or one train released.
All trains name the same bytes: an index is measured, rows are not read. What fleet.py measures follows: a commit, a
poll and a plan beside 10, 1,000 and 100,000 attached producers, many sinks in a process, many devices in one sink.
"""

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import fleet
import pyarrow as pa

import spark_rowtime as rt
from harness import folder, keep, report
from spark_rowtime.spark.options import READ, Options
from spark_rowtime.spark.source import RowtimeStreamReader
from spark_rowtime.store import open_store
from spark_rowtime.store.commits import Commit, Staged

START = 1_767_225_600_000_000
STEP = 1_000_000
TOGETHER = 1000
"""Trains of one commit, for speed: a train is a row of the index either way."""
HOLDER = "Holder"


class Grown:
    """A stream of so many producers, each in order, that send a row a second in turn; and one that holds the clock."""

    def __init__(self, path: Path, producers: int) -> None:
        rt.createStream(str(path), "rowtime TIMESTAMP NOT NULL", maxAhead=None)
        self.path, self.store, self.trains = str(path), open_store(str(path)), 0
        self.names = [f"P{n}" for n in range(producers)]
        self.epochs = {name: self.store.attach(name, "bench", "").epoch for name in [*self.names, HOLDER]}
        self.numbers = dict.fromkeys(self.epochs, 0)
        first = pa.array([START]).cast(pa.timestamp("us", "UTC"))
        self.location = self.store.stage(pa.RecordBatch.from_arrays([first], schema=self.store.schema)).location
        self.gone = -1
        self.let_go(1)

    def send(self, trains: int) -> None:
        """So many trains more."""
        for first in range(self.trains, self.trains + trains, TOGETHER):
            numbers = range(first, min(first + TOGETHER, self.trains + trains))
            for n in range(min(len(self.names), len(numbers))):
                times = [START + STEP * number for number in numbers[n :: len(self.names)]]
                staged = tuple(Staged(1, t, t, self.location) for t in times)
                self._commit(self.names[numbers[n] % len(self.names)], staged, times[-1])
        self.trains += trains

    def let_go(self, trains: int) -> None:
        """The holder promises the rowtime of a later train, so many on."""
        self.gone += trains
        self._commit(HOLDER, (), START + STEP * self.gone)

    def _commit(self, name: str, trains: tuple[Staged, ...], floor: int) -> None:
        self.numbers[name] += 1
        self.store.commit(Commit(name, self.epochs[name], self.numbers[name], trains, floor))


class Asked:
    """The source as a query's thread asks it, at the stream's end."""

    def __init__(self, path: str, order: str) -> None:
        options = Options({"path": path, "order": order, "bounds": "ignore"}, READ)
        self.source = RowtimeStreamReader(options, len(rt.describeStream(path).schema))
        self.at = self.source.next(self.source.initialOffset(), unlimited=True)
        self.source.reportLatestOffset()

    def poll(self) -> bool:
        """Whether there was news; if so, its batch is planned."""
        to, before = self.source.next(self.at, unlimited=True), self.at
        self.source.reportLatestOffset()
        if to != before:
            self.source.partitions(before, to)
        self.at = to
        return to != before


def polls(asked: Asked, news: Callable[[], object] | None, rounds: int) -> list[float]:
    """CPU milliseconds of each poll, after ``news`` where there is any."""
    took = []
    for _ in range(rounds):
        if news is not None:
            news()
        start = time.process_time()
        found = asked.poll()
        took.append(1000 * (time.process_time() - start))
        assert found == (news is not None)
    return took


def measure(grown: Grown, order: str, released: bool, rounds: int) -> list[list[float]]:
    """Polls without news, and those with a batch to plan."""
    asked = Asked(grown.path, order)
    if order == "rowtime" and not released:
        return [polls(asked, None, rounds), polls(asked, lambda: grown.let_go(1), rounds)]
    return [polls(asked, None, rounds), polls(asked, lambda: grown.send(1), rounds)]


def grow(root: Path, sizes: list[int], producers: int, rounds: int) -> list[list[list[float]]]:
    """For each number of trains: polls and plans, in both orders, unreleased and released."""
    waiting, gone = Grown(root / f"waiting-{producers}", producers), Grown(root / f"gone-{producers}", producers)
    gone.let_go(10**8)
    found = []
    for size in sizes:
        for grown in (waiting, gone):
            grown.send(size - grown.trains)
        cases = ((waiting, "arrival"), (waiting, "rowtime"), (gone, "arrival"), (gone, "rowtime"))
        found.append([took for grown, order in cases for took in measure(grown, order, grown is gone, rounds)])
        medians = [statistics.median(took) for took in found[-1]]
        print(f"{size:>9,} {producers:>9}  " + " ".join(f"{ms:>7.2f}" for ms in medians), flush=True)
        keep(what="growth", base=f"{size:,} trains, {producers} producers", medians=medians)
    return found


def worst(what: str, many: list[list[float]], few: list[list[float]], base: str) -> float:
    """Reports the case that has grown most."""
    pairs = zip(many, few, strict=True)
    most = max(pairs, key=lambda pair: statistics.median(pair[0]) / statistics.median(pair[1]))
    return report(what, *most, "CPU ms", base)


def among(root: Path, rounds: int, producers: int = 100_000) -> None:
    """A commit, a poll and a plan beside more and more attached producers, against those beside few."""
    sizes = [10, 1000, producers]
    growns = [Grown(root / f"among-{size}", 1) for size in sizes]
    few, *more = (fleet.among(g, Asked(g.path, "arrival"), n, rounds) for g, n in zip(growns, sizes, strict=True))
    for size, found in zip(sizes[1:], more, strict=True):
        fleet.compare(found, few, size, sizes[0])


def by_producers(root: Path, trains: int, rounds: int) -> None:
    """A plan where 256 producers send in turn, against one."""
    ((one, many),) = zip(*(grow(root, [trains], n, rounds) for n in (1, 256)), strict=True)
    worst("plan, 256 producers against 1", many[1::2], one[1::2], "1 producer")


def main(largest: int = 1_000_000, rounds: int = 50) -> None:
    """With ``largest`` 0 only what grows with producers, sinks and devices."""
    print(f"CPU milliseconds of a poll without news, and of one with a batch to plan; medians of {rounds}")
    print("   trains producers  unreleased: arrival, rowtime     released: arrival, rowtime")
    with folder() as root:
        by_producers(root, 10_000, rounds)
        if largest:
            small, _, large = grow(root, [largest // 1000, largest // 10, largest], 16, rounds)
            worst("poll, 10^6 trains against 10^3", large[::2], small[::2], "10^3 trains")
            worst("plan, 10^6 trains against 10^3", large[1::2], small[1::2], "10^3 trains")
        among(root, rounds)
        fleet.main(root)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
