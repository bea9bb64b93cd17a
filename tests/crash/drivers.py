"""Helpers of the tests that kill drivers: the stream that is read, the driver's process, and the checks."""

import os
import random
import select
import signal
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import spark_rowtime as rt
from spark_rowtime.store import open_store
from spark_rowtime.types.schema import rowtime_micros
from tests.crash.killing import AFTER_COMMIT, BEFORE_COMMIT, IN_COMMIT, IN_TASK
from tests.crash.orphans import remove_orphans
from tests.crash.places import location_of, stream_in
from tests.crash.tally import Tally
from tests.store.streams import EMPTY, WHOLE, infos
from tests.streams import QUIET

ROOT = Path(__file__).parents[2]
WINDOW = 600_000_000
"""The driver's windows, in microseconds."""
START = 1_157_932_800_000_000
MINUTE = 60_000_000


def moment(minutes: float) -> str:
    """The time this number of minutes after the start of 2006-09-11."""
    return rt.RowtimeBound.fromFloor(START + round(minutes * MINUTE)).time.isoformat()


TEXT = "a" * 5000
"""In each row of the source where it has a location: some of its trains are objects, and some are not."""


def create_streams(folder: Path) -> list[str]:
    """Creates the source; with a location also the others, and all have a text. Returns the text of the source."""
    location, source = location_of(folder), "rowtime TIMESTAMP NOT NULL, k STRING, n BIGINT"
    if location is None:
        rt.createStream(stream_in(folder, "source"), source)
        return []
    rt.createStream(stream_in(folder, "source"), f"{source}, text STRING", location=location)
    for name in ("counts", "reference"):
        columns = "rowtime TIMESTAMP NOT NULL, k STRING, rows BIGINT, n BIGINT, text STRING"
        rt.createStream(stream_in(folder, name), columns, location=location)
    return [TEXT]


class Feed:
    """Two producers of the stream ``source``, the second behind, some rows late. A seed gives the same rows."""

    def __init__(self, folder: Path, seed: int = 1) -> None:
        self.path, self._dice, self._step = stream_in(folder, "source"), random.Random(seed), 0
        self._text = create_streams(folder)
        self._sinks = [
            rt.openSink(self.path, producer=name, onLate="reject", rowsImplyBounds=False, lease=None, linger=QUIET)
            for name in ("ahead", "behind")
        ]

    def send(self, steps: int) -> None:
        """Sends five minutes of rows per step, as two commits, each with its bound."""
        for _ in range(steps):
            for sink, behind in zip(self._sinks, (0, 4), strict=True):
                self._commit(sink, self._step * 5 - behind)
            self._step += 1

    def _commit(self, sink: Any, minute: float) -> None:
        dice = self._dice
        times = [max(minute + dice.uniform(-1, 8), 0.01) for _ in range(dice.randint(0, 25))]
        sink.sendRows([(moment(time), dice.choice("abc"), n, *self._text) for n, time in enumerate(times)])
        sink.sendRowtimeBound(moment(max(minute + 5, 0.01)), strict=dice.random() < 0.5)
        sink.flush()

    def close(self) -> None:
        for sink in self._sinks:
            sink.close()


class Driver:
    """A process of tests.crash.driver in its own process group. ``sink``: the sink of the first folder."""

    def __init__(self, *folders: Path, command: Sequence[str | Path] = (sys.executable,)) -> None:
        self.sink = stream_in(folders[0], "counts")
        self._errors = (folders[0] / f"driver-{len(list(folders[0].glob('driver-*')))}.log").open("ab")
        self.process = subprocess.Popen(
            [*command, "-m", "tests.crash.driver", *map(str, folders)],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            start_new_session=True,
        )

    def tell(self, command: str) -> None:
        """Sends a command."""
        assert self.process.stdin is not None
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()

    def answers(self, seconds: float = 0) -> bool:
        """Waits up to ``seconds``; returns whether the driver has answered or ended."""
        return bool(select.select([self.process.stdout], [], [], seconds)[0])

    def heard(self) -> str:
        """The next answer; empty if the driver has ended."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def do(self, command: str) -> None:
        """Sends a command, and waits until it is done."""
        self.tell(command)
        assert self.heard() == command, self.said()

    def kill(self) -> None:
        """Kills Python and JVM together with SIGKILL."""
        os.killpg(self.process.pid, signal.SIGKILL)
        assert self.ended() == -signal.SIGKILL, self.said()

    def ended(self) -> int:
        """Waits until the driver ends; returns its exit code."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        code = self.process.wait(500)
        assert self.process.stdout is not None
        self.process.stdout.close()
        self._errors.close()
        return code

    def said(self) -> str:
        """The end of the driver's log."""
        return Path(self._errors.name).read_text()[-5000:]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def logged(folder: Path, log: str) -> int:
    """The last batch in ``checkpoint/offsets`` or ``checkpoint/commits``; -1 without any."""
    files = (folder / "checkpoint" / log).glob("*")
    return max((int(file.name) for file in files if file.name.isdecimal()), default=-1)


def landed(path: str) -> int:
    """The last batch that the sink has; -1 without any."""
    try:
        store = open_store(path)
    except rt.StreamNotFoundError:
        return -1
    try:
        return max((p.number - 1 for p in infos(store)), default=-1)
    finally:
        store.close()


def rows(path: str) -> list[tuple[Any, ...]]:
    """All rows of a stream, sorted."""
    with rt.openReader(path, order="arrival") as reader:
        found = (row for train in reader for row in train.rows.to_pylist())
        return sorted(tuple(value for name, value in row.items() if name != "text") for row in found)


def expected(source: str) -> list[tuple[Any, ...]]:
    """The batch result over the accepted rows of closed windows: window end, k, rows, sum of n."""
    store = open_store(source)
    try:
        sums: dict[tuple[int, str], Counter[str]] = defaultdict(Counter)
        for piece in store.slices(EMPTY, WHOLE):
            batch = store.read(piece)
            for time, row in zip(rowtime_micros(batch).to_pylist(), batch.to_pylist(), strict=True):
                sums[(time // WINDOW + 1) * WINDOW, row["k"]].update(rows=1, n=row["n"])
        bound = store.head().floor or 0
    finally:
        store.close()
    found = [
        (rt.RowtimeBound.fromFloor(end).time, k, s["rows"], s["n"]) for (end, k), s in sums.items() if end <= bound
    ]
    return sorted(found)


def lawful(path: str) -> None:
    """Checks that no bound in the log is weaker than the one before it, and no row is below the bound before it."""
    store = open_store(path)
    try:
        floors = [store.at(seq).floor or 0 for seq in range(store.head().seq + 1)]
        assert floors == sorted(floors)
        assert all(piece.least >= floors[piece.seq - 1] for piece in store.slices(EMPTY, WHOLE))
    finally:
        store.close()


class Account:
    """A consumer of the sink. It checks that no row disappears or comes twice, and that the bound never falls."""

    def __init__(self, folder: Path, tally: Tally) -> None:
        self._source, self._sink, self._tally = stream_in(folder, "source"), stream_in(folder, "counts"), tally
        self._reference, self._located = stream_in(folder, "reference"), location_of(folder) is not None
        self._rows: list[tuple[Any, ...]] = []
        self._bound = 0

    def killed(self) -> None:
        """Called after each kill."""
        self._tally.fault()
        self._check()

    def _check(self) -> None:
        if landed(self._sink) < 0:
            return
        found, bound = rows(self._sink), rt.describeStream(self._sink).bound
        self._tally.account(found, self._rows, expected(self._source))
        assert (bound.floor if bound else 0) >= self._bound
        self._rows, self._bound = found, bound.floor if bound else 0

    def close(self) -> None:
        """Called at the end: checks for the batch result, each row once, and the bound of an undisturbed query."""
        reference = self._reference
        self._check()
        whole = expected(self._source)
        assert whole
        self._tally.account(self._rows, whole, whole)
        assert rows(reference) == whole
        assert rt.describeStream(self._sink).bound == rt.describeStream(reference).bound
        assert rt.describeStream(self._sink).rejected == 0
        lawful(self._sink)
        if self._located:
            removed = sum(map(remove_orphans, (self._source, self._sink, self._reference)))
            print(f"{removed} objects that no commit had named were removed")
            self._tally.account(rows(self._sink), whole, whole)


def growth(folder: Path) -> int:
    """A number that grows with each batch that is planned or done."""
    return logged(folder, "offsets") + logged(folder, "commits")


BETWEEN, MID_BATCH, IN_SINK = "between batches", "logged, not in the sink", "in the sink, not in Spark's commit log"
"""Where a driver can be when it is killed."""
LEFT = {IN_TASK: MID_BATCH, BEFORE_COMMIT: MID_BATCH, IN_COMMIT: MID_BATCH, AFTER_COMMIT: IN_SINK}
"""Where a batch is when a process is hit at one of its points, by point."""


def phase(folder: Path) -> str:
    """The place at which the driver was killed."""
    planned, done, sunk = logged(folder, "offsets"), logged(folder, "commits"), landed(stream_in(folder, "counts"))
    assert done <= sunk <= planned <= done + 1
    if planned == done:
        return BETWEEN
    return IN_SINK if sunk == planned else MID_BATCH
