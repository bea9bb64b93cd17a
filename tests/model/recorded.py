"""A stream that is used step by step, and what was seen of it, as a trace for the model."""

import random
from collections.abc import Sequence
from contextlib import suppress

import pyarrow as pa

from model.traces import AGAIN, DIED, EXPIRED, FENCED, JOINED, LANDED, REPEATED, Event, Step, Trace
from spark_rowtime.errors import ProducerFencedError
from spark_rowtime.store.base import Store
from spark_rowtime.store.commits import Commit
from tests.store.streams import EMPTY, SECOND, START, WHOLE, Writer, at, seconds

LEASE = 10
ANY_ORDER = '{"rowsImplyBounds": false}'


class Recorded:
    """A store whose clock stands still. Each call is a step; ``trace`` has all of them."""

    def __init__(self, store: Store) -> None:
        self.store, self.time, self.steps = store, START, list[Step]()
        store.now = lambda: self.time  # type: ignore[attr-defined]
        self.writers: dict[str, Writer] = {}
        self.last: dict[str, Commit] = {}
        self.promised: dict[str, int] = {}

    @property
    def trace(self) -> Trace:
        return Trace(tuple(self.steps))

    def _see(
        self,
        what: str,
        process: str,
        producer: str,
        rows: tuple[int, ...] = (),
        floor: int = 0,
        late: Sequence[float] = (),
    ) -> None:
        times, rejected = tuple(at(row) or 0 for row in rows), tuple(at(time) or 0 for time in late)
        bound, promised = self.store.head().floor or 0, (at(floor) or 0) if floor else 0
        self.steps.append(Step(what, process, producer, bound, times, promised, rejected))

    def join(self, process: str, producer: str) -> None:
        writer = Writer(self.store, producer, process, ANY_ORDER, LEASE * SECOND)
        self.writers[process] = writer
        self._see(JOINED, process, producer)

    def send(self, process: str, *rows: int, floor: int = 0) -> None:
        writer = self.writers[process]
        self.promised[process] = floor or self.promised.get(process, 0)
        commit = self.last[process] = writer.commit(*([rows] if rows else []), floor=floor or None)
        try:
            receipt = self.store.commit(commit)
        except ProducerFencedError:
            self._see(FENCED, process, writer.name, rows, floor)
            del self.writers[process]
            return
        late = [time for one in receipt.rejected for time in seconds(one.rows)]
        self._see(LANDED, process, writer.name, rows, floor, late)

    def repeat(self, process: str) -> None:
        """The answer of the last commit was lost, so it is sent again."""
        before = self.store.head()
        self.store.commit(self.last[process])
        what = REPEATED if self.store.head() == before else AGAIN
        self._see(what, process, self.writers[process].name)

    def die(self, process: str) -> None:
        name = self.writers.pop(process).name
        self._see(DIED, process, name)

    def expire(self) -> None:
        """As long passes as a lease lasts. Whoever lives renews."""
        before = self.store.head().seq
        self.time += LEASE * SECOND // 2
        self._renew()
        self.time += LEASE * SECOND // 2 + 1
        self._renew()
        self.store.expire()
        for event in log_of(self.store)[before:]:
            self.steps.append(Step(EXPIRED, "", event.producer, event.bound))

    def _renew(self) -> None:
        for writer in self.writers.values():
            with suppress(ProducerFencedError):
                self.store.renew(writer.name, writer.epoch)


def log_of(store: Store) -> list[Event]:
    """The events of a stream's log."""
    least, table = {piece.seq: piece.least for piece in store.slices(EMPTY, WHOLE)}, store.bounds()
    times = [table.column(name).cast(pa.int64()).fill_null(0).to_pylist() for name in ("producerBound", "bound")]
    columns = [table.column(name).to_pylist() for name in ("seq", "event", "producer")]
    rows = zip(*columns, *times, strict=True)
    return [Event(what, who, own, bound, least.get(seq, 0)) for seq, what, who, own, bound in rows]


def live(stream: Recorded, dice: random.Random, steps: int) -> None:
    """A random life of two producers and the processes that take them from each other."""
    for number in range(steps):
        alive = sorted(stream.writers)
        process = dice.choice(alive) if alive else ""
        what = dice.choice(["join", "send", "send", "send", "repeat", "die", "expire"])
        if what == "join" or not alive:
            stream.join(f"p{number}", dice.choice("ab"))
        elif what == "send":
            row = stream.promised.get(process, 0) + dice.randrange(1, 4)
            stream.send(process, *([row] if dice.random() < 0.7 else []), floor=row + 1)
        elif what == "repeat" and stream.steps[-1].what == LANDED:
            stream.repeat(stream.steps[-1].process)
        elif what == "die":
            stream.die(process)
        elif what == "expire" and stream.store.snapshot().records:
            stream.expire()
