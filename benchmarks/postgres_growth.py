"""What one poll and one plan of a stream in PostgreSQL cost as it grows to 10^6 trains: flat.

What growth.py measures of streams in folders, by the wall, since the server works too; and the server's CPU. The store
commits the first trains. The others are written into the tables by SQL, as the store would write them: one block of the
log again and again, each time later. A short log that was written so is compared with one that the store has written.
"""

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

from growth import HOLDER, STEP, TOGETHER, Asked, Grown

from harness import keep, report
from tests.postgresserver import NO_SERVER, PostgresServer, programs

SIZES, PRODUCERS, ROUNDS = [100, 10_000, 1_000_000], 16, 50
BLOCK = 2 * TOGETHER
"""Trains that SQL writes again: a multiple of the producers, which send in turn."""
SHOWN = {
    "events": "seq, kind, producer, floor, stream_floor, stream_largest, stream_rows, least, largest, width, length",
    "trains": "seq, part, bytes",
    "heads": "seq, floor, largest, rows, train_bytes",
    "producers": "name, status, floor, accepted, receipt_seq, receipt_floor",
}
"""What is compared."""
_SHOWN = "SELECT {} FROM rowtime.{} WHERE stream = {} ORDER BY 1"
_EVENTS = """
INSERT INTO rowtime.events SELECT stream, seq + n * {events}, kind, producer, time, floor + n * {span},
    stream_floor + n * {released}, stream_largest + n * {span}, stream_rows + n * {trains}, rows, least + n * {span},
    largest + n * {span}, width, length, checksum
FROM rowtime.events, generate_series(1, {blocks}) n WHERE stream = {stream} AND seq > {after} ORDER BY n, seq
"""
_TRAINS = """
INSERT INTO rowtime.trains SELECT stream, seq + n * {events}, part, bytes
FROM rowtime.trains, generate_series(1, {blocks}) n WHERE stream = {stream} AND seq > {after}
"""
_HEAD = """
UPDATE rowtime.heads SET seq = seq + {blocks} * {events}, floor = floor + {blocks} * {released},
    largest = largest + {blocks} * {span}, rows = rows + {blocks} * {trains},
    train_bytes = train_bytes + {blocks} * {trains} * {length} WHERE stream = {stream}
"""
_PRODUCERS = """
UPDATE rowtime.producers p SET floor = floor + {blocks} * {span}, receipt_seq = receipt_seq + {blocks} * {events},
    receipt_floor = receipt_floor + {blocks} * {released}, accepted = accepted + {blocks} * (
        SELECT count(*) FROM rowtime.events e WHERE e.stream = {stream} AND e.producer = p.name AND e.seq > {after}
        AND e.seq <= {after} + {events} AND e.width IS NOT NULL)
WHERE stream = {stream} AND name <> '{holder}'
"""


class GrownInDatabase(Grown):
    """A stream of which SQL writes most trains. ``released``: the holder has let go of all."""

    def __init__(self, server: PostgresServer, name: str, released: bool) -> None:
        super().__init__(server.url(name), PRODUCERS)  # type: ignore[arg-type]
        self._server, self._released = server, released
        ((self.stream,),) = server.execute(f"SELECT id FROM rowtime.streams WHERE name = '{name}'")
        if released:
            self.let_go(10**8)

    def grow(self, trains: int) -> None:
        """So many trains in all. The first block is the store's."""
        blocks = (trains - self.trains) // BLOCK - 1
        if self.trains and blocks > 0:
            after = self.store.head().seq
            self.send(BLOCK)
            self._repeat(after, blocks)
        self.send(trains - self.trains)

    def _repeat(self, after: int, blocks: int) -> None:
        """Writes the last block, the log after ``after``, so often again."""
        span = BLOCK * STEP
        where = {
            "stream": self.stream, "after": after, "events": self.store.head().seq - after, "trains": BLOCK,
            "span": span, "released": span if self._released else 0, "blocks": f"{blocks}::bigint", "holder": HOLDER,
            "length": self.location.length,
        }  # fmt: skip
        for statement in (_TRAINS, _PRODUCERS, _EVENTS, _HEAD):
            self._server.execute(statement.format(**where))
        self.trains += blocks * BLOCK


def server_seconds(server: PostgresServer) -> float:
    """The CPU seconds of the server's processes so far."""
    total = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            if int(stat.read_text().rpartition(")")[2].split()[1]) == server.pid:
                total += int((stat.parent / "schedstat").read_text().split()[0])
        except (FileNotFoundError, ProcessLookupError):
            continue
    return total / 1e9


Took = tuple[list[float], list[float]]
"""Milliseconds of each poll: by the wall, and of the server's CPU."""


def polls(asked: Asked, news: Callable[[], object] | None, server: PostgresServer) -> Took:
    """Each poll after ``news``, where there is any."""
    took, cpu = [], []
    for _ in range(ROUNDS):
        if news is not None:
            news()
        before, start = server_seconds(server), time.perf_counter()
        found = asked.poll()
        took.append(1000 * (time.perf_counter() - start))
        cpu.append(1000 * (server_seconds(server) - before))
        assert found == (news is not None)
    return took, cpu


def measure(grown: GrownInDatabase, order: str, released: bool, server: PostgresServer) -> list[Took]:
    """A poll without news, and one with a batch to plan."""
    asked = Asked(grown.path, order)
    held = order == "rowtime" and not released
    news = (lambda: grown.let_go(1)) if held else (lambda: grown.send(1))
    return [polls(asked, None, server), polls(asked, news, server)]


def verify(server: PostgresServer, released: bool) -> None:
    """What SQL writes is what the store writes, but for the clock."""
    logs = []
    for writer in ("sql", "store"):
        grown = GrownInDatabase(server, f"by-{writer}-{released}", released)
        grown.send(TOGETHER)
        grown.send(3 * BLOCK) if writer == "store" else grown.grow(TOGETHER + 3 * BLOCK)
        logs.append([server.execute(_SHOWN.format(columns, table, grown.stream)) for table, columns in SHOWN.items()])
    assert logs[0] == logs[1]


def main(largest: int = SIZES[-1]) -> None:
    place = programs()
    if place is None:
        sys.exit(NO_SERVER)
    server = PostgresServer(place)
    try:
        grow(server, [*SIZES[:-1], largest])
    finally:
        server.remove()


def grow(server: PostgresServer, sizes: list[int]) -> None:
    """Reports the poll and the plan that grow most, from the last but one size to the largest."""
    for released in (False, True):
        verify(server, released)
    both = [GrownInDatabase(server, f"grown-{released}", released) for released in (False, True)]
    print(f"wall ms / server's CPU ms of a poll without news and of a plan, medians of {ROUNDS}:")
    print("   trains  unreleased: arrival, rowtime       released: arrival, rowtime")
    found = []
    for size in sizes:
        for grown in both:
            grown.grow(size)
        server.execute("ANALYZE")
        cases = [(grown, order) for grown in both for order in ("arrival", "rowtime")]
        found.append([one for grown, order in cases for one in measure(grown, order, grown is both[1], server)])
        medians = [tuple(map(statistics.median, took)) for took in found[-1]]
        print(f"{size:>9,}  " + " ".join(f"{ms:>6.2f}/{cpu:.2f}" for ms, cpu in medians), flush=True)
        keep(what="PostgreSQL, growth", base=f"{size:,} trains", medians=medians)
    small, large = ([cpu for _, cpu in one] for one in (found[-2], found[-1]))
    for what, first in (("poll", 0), ("plan", 1)):
        most = max(zip(large[first::2], small[first::2], strict=True), key=_growth)
        report(f"PostgreSQL, {what}, {sizes[-1]:,} trains", *most, "CPU ms of the server", f"{sizes[-2]:,} trains")


def _growth(pair: tuple[list[float], list[float]]) -> float:
    return statistics.median(pair[0]) / statistics.median(pair[1])


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
