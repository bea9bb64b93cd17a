"""Adapters whose rows are a function of the step, a consumer, and writers without checkpoints: all to be killed."""

import ctypes
import json
import os
import random
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import spark_rowtime as rt
from spark_rowtime.adapter.adapter import host
from spark_rowtime.store.postgres import inline

DDL = "rowtime TIMESTAMP NOT NULL, n BIGINT"
START = 1_157_932_800_000_000
"""2006-09-11 in microseconds."""
SECOND = 1_000_000
QUIET = "1 hour"
LEASE_SECONDS = 3600
"""The lease of producers that are killed. It is longer than a test, so none ends because the machine stands still."""
FEW_ROWS_BYTES = 250
"""A train of ``pour`` with a handful of rows has fewer bytes."""
_PR_SET_PDEATHSIG = 1
steps = 0
"""How many steps a feed has; set in the process that hosts it."""
told: Callable[[int], object] = lambda _: None  # noqa: E731
"""Called with the number of a step, or of rows, when it is known to be stored."""


def moment(seconds: float) -> str:
    """So many seconds into the day."""
    return str(rt.RowtimeBound(_micros(seconds)).time.isoformat())


def _micros(seconds: float) -> Any:
    import pyarrow as pa

    return pa.scalar(START + round(seconds * SECOND), pa.timestamp("us", "UTC"))


class InOrder:
    """Ten seconds a step: rows in order one by one, and the step's end as a bound."""

    schema = DDL
    sinkOptions: dict[str, Any] = {"onLate": "reject"}

    def run(self, sink: rt.RowSink) -> None:
        """As every adapter that wants no row twice, it stores a checkpoint before its first row."""
        if sink.checkpoint is None:
            sink.flush(checkpoint="0")
        for step in range(int(sink.checkpoint or 0), steps):
            self.send(sink, step, random.Random(step))
            sink.flush(checkpoint=str(step + 1))
            told(step + 1)

    def send(self, sink: rt.RowSink, step: int, dice: random.Random) -> None:
        for n, second in enumerate(sorted(dice.uniform(0, 10) for _ in range(4))):
            sink.sendRow((moment(step * 10 + second), step * 10 + n))
        if dice.random() < 0.3:
            sink.sendRow((moment(max(step * 10 - 1, 0.5)), step * 10 + 9))  # late
        sink.sendRowtimeBound(moment((step + 1) * 10), strict=dice.random() < 0.5)


class Late(InOrder):
    """Rows in disorder, some of them later than is allowed."""

    sinkOptions = {"onLate": "reject", "lateness": "15 seconds"}

    def send(self, sink: rt.RowSink, step: int, dice: random.Random) -> None:
        for part in range(3):
            times = [max(step * 10 + dice.uniform(-25, 10), 0.001) for _ in range(4)]
            sink.sendRows([(moment(time), step * 100 + part * 10 + n) for n, time in enumerate(times)])


class KSorted(Late):
    """Rows at most so many places from where they belong, most of them."""

    sinkOptions = {"onLate": "reject", "kSort": 5}


class Captured(InOrder):
    """Rows in any order, then a bound, every second step."""

    sinkOptions = {"onLate": "reject", "rowsImplyBounds": False}

    def send(self, sink: rt.RowSink, step: int, dice: random.Random) -> None:
        for n in range(3):
            sink.sendRow((moment(step // 2 * 20 + dice.uniform(-1 if step else 0.1, 20)), step * 10 + n))
        if step % 2:
            sink.sendRowtimeBound(moment((step + 1) * 10))


class TwoShops:
    """Two producers of one adapter, a second apart. Each continues from its own checkpoint."""

    schema = DDL
    sinkOptions: dict[str, Any] = {"onLate": "reject"}

    def runProducers(self, sinks: rt.Sinks) -> None:
        shops = [sinks.open("Berlin"), sinks.open("Oslo", lateness="15 seconds")]
        for shop in shops:
            if shop.checkpoint is None:
                shop.flush(checkpoint="0")
        for step in range(min(int(shop.checkpoint or 0) for shop in shops), steps):
            for number, (shop, feed) in enumerate(zip(shops, (InOrder(), Late()), strict=True)):
                if int(shop.checkpoint or 0) == step:
                    feed.send(shop, step, random.Random(f"{step} {number}"))
                    shop.flush(checkpoint=str(step + 1))
            told(step + 1)


class Fleet(InOrder):
    """Five devices, each in order but for some rows: by batch and one by one; bounds of a device, one that leaves."""

    sinkOptions = {"onLate": "reject", "inOrderPer": "n", "keyIdle": "40 seconds"}

    def send(self, sink: Any, step: int, dice: random.Random) -> None:
        times = sorted(step * 10 + dice.uniform(0.001, 10) for _ in range(6))
        sink.sendRows([(moment(time - (n % 5)), n % 5) for n, time in enumerate(times) if time > 5])
        for _ in range(4):
            sink.sendRow((moment(step * 10 + 5 + dice.uniform(-4, 5)), dice.randrange(5)))
        if dice.random() < 0.3:
            sink.sendRowtimeBound(moment((step + 1) * 10), key=dice.randrange(5))
        if dice.random() < 0.2:
            sink.closeKey(dice.randrange(5))


def hosted(pipe: Any, feed: str, path: str, count: int) -> None:
    """Hosts a feed as ``rowtime run`` does, and says which steps are stored."""
    global steps, told
    steps, told = count, pipe.send
    host(f"tests.crash.feeds:{feed}", path, producer="feed", lease=f"{LEASE_SECONDS} s")


def hosted_until(pipe: Any, feed: str, path: str, steps: int, last: int) -> None:
    """Hosts it, and stands still once it has said so many steps."""
    said = count(1)

    def say(step: int) -> None:
        pipe.send(step)
        if next(said) == last:
            threading.Event().wait()

    hosted(SimpleNamespace(send=say), feed, path, steps)


class Ledger:
    """A consumer that keeps rows, bound and position of each train in one line of a file; half a line is none."""

    def __init__(self, file: str) -> None:
        self._file = Path(file)
        whole = lines(file)
        self.checkpoint = whole[-1]["checkpoint"] if whole else None
        with self._file.open("a") as ledger:
            ledger.truncate(sum(len(json.dumps(line)) + 1 for line in whole))
        self._count = sum(len(line["n"]) for line in whole)
        self._line: dict[str, Any] = {"n": []}

    def sendRows(self, rows: Any) -> None:
        self._line["n"] += rows.column("n").to_pylist()

    def sendRowtimeBound(self, t: Any, strict: bool = False) -> None:
        self._line["bound"] = t.isoformat()

    def flush(self, checkpoint: str | None = None) -> None:
        with self._file.open("a") as ledger:
            for part in _halves(json.dumps({**self._line, "checkpoint": checkpoint}) + "\n"):
                ledger.write(part)
                ledger.flush()
        self._count += len(self._line["n"])
        self._line = {"n": []}
        told(self._count)


def _halves(line: str) -> Iterator[str]:
    yield line[: len(line) // 2]
    yield line[len(line) // 2 :]


def lines(file: str) -> list[dict[str, Any]]:
    """The whole lines of a ledger."""
    text = Path(file).read_text() if os.path.exists(file) else ""  # noqa: PTH110
    return [json.loads(line) for line in text.split("\n")[:-1]]


def drain(pipe: Any, path: str, file: str) -> None:
    """Drains a stream into a ledger for ever; says how many rows are in it."""
    global told  # noqa: PLW0603
    told = pipe.send
    rt.openReader(path, order="arrival", follow=True).drainTo(Ledger(file))


def pump(pipe: Any, source: str, target: str, dies: bool = False) -> None:
    """Drains a stream into another for ever; says each position that is stored. Or dies once it has sent rows."""
    with rt.openSink(target, producer="pump", rowsImplyBounds=False, linger="0 s") as sink:
        flush, send = sink.flush, sink.sendRows

        def flush_and_tell(checkpoint: str | None = None) -> None:
            flush(checkpoint=checkpoint)
            pipe.send(checkpoint)

        def send_and_die(rows: Any) -> None:
            send(rows)
            os.kill(os.getpid(), signal.SIGKILL)

        sink.flush = flush_and_tell
        sink.sendRows = send_and_die if dies else send
        rt.openReader(source, follow=True).drainTo(sink)


def call_size(number: int) -> int:
    """How many rows the ``number``-th call of ``pour`` has."""
    return 1 + number * 5 % 13


def pour(pipe: Any, path: str, name: str, generation: int, calls: int = 1_000_000) -> None:
    """Sends rows and bounds as fast as it can, grouped by linger; says what a flush has made durable.

    ``n`` counts the rows of this process; it is (rows, the floor of the last bound).
    """
    dice, rows = random.Random(f"{name} {generation}"), 0
    with rt.openSink(path, producer=name, linger="3 ms", maxTrainRows=40, lease=f"{LEASE_SECONDS} s") as sink:
        for number in range(calls):
            size, base = call_size(number), generation * 10_000
            values = [(moment(base + (rows + i) / 100), generation * 10**9 + rows + i) for i in range(size)]
            sink.sendRow(values[0]) if size == 1 else sink.sendRows(values)
            rows += size
            if dice.random() < 0.2:
                sink.sendRowtimeBound(moment(base + rows / 100))
            if dice.random() < 0.1:
                sink.flush()
                pipe.send((rows, sink.getRowtimeBound().floor))


def pour_in_child(pipe: Any, path: str, name: str, generation: int) -> None:
    """The same in a forked child, while the parent reads a few trains and then closes its reader. They die together."""
    reader, parent = rt.openReader(path, order="arrival", follow=True), os.getpid()
    if not os.fork():
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() == parent:
            pour(pipe, path, name, generation)
        os._exit(0)
    for _ in range(generation % 5):
        reader.read(timeout=1)
    reader.close()
    os.wait()


def pour_objects(pipe: Any, environment: dict[str, str], *arguments: Any) -> None:
    """The same, where every train with more than a few rows is an object of the stream's location."""
    os.environ.update(environment)
    inline.OBJECT_BYTES = FEW_ROWS_BYTES
    pour(pipe, *arguments)


def contend(pipe: Any, path: str) -> None:
    """Each time it is told to, takes the name and sends until it is fenced; says what was flushed, and how it ended."""
    while True:
        turn = pipe.recv()
        with suppress(rt.ProducerFencedError):
            sink = rt.openSink(path, producer="feed", linger=QUIET)
            _send_until_fenced(pipe, sink, turn)
        pipe.send(("fenced", [_outcome(call) for call in _every_call(sink, turn)]))


def _send_until_fenced(pipe: Any, sink: Any, turn: int) -> None:
    for number in range(1_000_000):
        rows = [turn * 10**6 + number * 10 + n for n in range(3)]
        for n in rows:
            sink.sendRow((moment(n / 1000), n))
        sink.sendRowtimeBound(moment(rows[-1] / 1000))
        sink.flush(checkpoint=str(rows[-1]))
        pipe.send(("flushed", rows))


def _every_call(sink: Any, turn: int) -> list[Callable[[], object]]:
    row = (moment((turn + 1) * 10**3 - 1), turn)
    return [
        lambda: sink.flush(checkpoint="stolen"),
        lambda: (sink.sendRow(row), sink.flush()),
        lambda: (sink.sendRows([row]), sink.flush()),
        lambda: (sink.sendRowtimeBound(moment((turn + 2) * 10**3)), sink.flush()),
        sink.close,
    ]


def _outcome(call: Callable[[], object]) -> str:
    try:
        call()
    except rt.RowtimeError as error:
        return type(error).__name__
    return "none"


def persist(pipe: Any, path: str, name: str, count: int) -> None:
    """Sends so many rows, each with a flush of its own, which is repeated while the store is unavailable."""
    sink = patiently(lambda: rt.openSink(path, producer=name, linger=QUIET, lease=None))
    for n in range(count):
        sink.sendRow((moment(n + 1), n))
        patiently(sink.flush)
        pipe.send(n)
    patiently(sink.close)


def patiently(call: Callable[[], Any]) -> Any:
    while True:
        with suppress(rt.StoreUnavailableError):
            return call()
