"""Small streams for the store's tests: times are seconds after START, written as plain numbers."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from spark_rowtime.bounds.topic_cut import CutBound, TopicCut
from spark_rowtime.store.base import Store
from spark_rowtime.store.commits import Commit, Receipt, Rejected
from spark_rowtime.store.difference import rows_between
from spark_rowtime.store.position import Position
from spark_rowtime.store.record import ProducerInfo
from spark_rowtime.types.schema import rowtime_micros, stream_schema
from spark_rowtime.types.timestamps import END as END_OF_TIME

SCHEMA = stream_schema("rowtime TIMESTAMP NOT NULL, n BIGINT")
START = 1_000_000_000_000_000
SECOND = 1_000_000
END = 1 << 40

NewStream = Callable[..., "Opener"]
Opener = Callable[[], Store]


def at(seconds: float | None) -> int | None:
    """The rowtime of ``seconds`` in microseconds."""
    return None if seconds is None else START + round(seconds * SECOND)


def batch(*seconds: float) -> pa.RecordBatch:
    """Rows at ``seconds``. ``n`` is the second, truncated."""
    times = pa.array([at(s) for s in seconds], pa.int64()).cast(SCHEMA.field("rowtime").type)
    return pa.RecordBatch.from_arrays([times, pa.array([int(s) for s in seconds], pa.int64())], schema=SCHEMA)


def names(folder: Path | str) -> list[str]:
    """The names of the entries of ``folder``, sorted."""
    return sorted(entry.name for entry in Path(folder).iterdir())


def infos(store: Store) -> list[ProducerInfo]:
    """What the store knows of all producers, as the log has them."""
    return [record.info for record in store.snapshot().records.values()]


def seconds(rows: pa.RecordBatch | pa.Table) -> list[float]:
    """The times of rows, in seconds: the reverse of ``batch``."""
    return [(t - START) / SECOND for t in rowtime_micros(rows).to_pylist()]


def without_times(rejected: pa.Table) -> pa.Table:
    """A table of rejections without the wall clock, to compare two streams."""
    return rejected.drop_columns(["rejectedAt"])


class Writer:
    """A producer of a store, with its commit numbers."""

    def __init__(
        self, store: Store, name: str, session: str = "", declaration: str = "{}", lease: int | None = None
    ) -> None:
        self.store, self.name = store, name
        info = store.attach(name, session or name, declaration, lease)
        self.epoch, self.number = info.epoch, info.number

    def commit(self, *trains: Iterable[float], floor: float | None = None, late: Any = (), **more: Any) -> Commit:
        """The next commit, not yet executed, with one train per sequence of times."""
        self.number += 1
        staged = tuple(self.store.stage(batch(*train)) for train in trains)
        rejected = (Rejected("late", at(floor), batch(*late)),) if late else ()
        return Commit(self.name, self.epoch, self.number, staged, at(floor), rejected, **more)

    def send(self, *trains: Iterable[float], floor: float | None = None, **more: Any) -> Receipt:
        """Commits the trains; the producer's own floor after them is ``floor``. What fails uses no number."""
        before = self.number
        try:
            return self.store.commit(self.commit(*trains, floor=floor, **more))
        except BaseException:
            self.number = before
            raise

    def complete(self, *trains: Iterable[float]) -> Receipt:
        """Commits the trains and the end of time: the producer will never send again."""
        return self.store.commit(self.complete_commit(*trains))

    def complete_commit(self, *trains: Iterable[float]) -> Commit:
        """The commit of ``complete``, not yet executed."""
        return replace(self.commit(*trains), floor=END_OF_TIME)

    def promise(self, *bounds: tuple[float, TopicCut | None]) -> Receipt:
        """Commits bounds, each with the cut that it follows."""
        given = tuple(CutBound(at(floor) or 0, cut) for floor, cut in bounds)
        return self.store.commit(replace(self.commit(floor=bounds[-1][0]), bounds=given))

    def leave(self, cut: TopicCut | None = None) -> None:
        self.store.leave(self.name, self.epoch, cut)


def place(seq: int, cut: float | None = None) -> Position:
    """A position. Without ``cut``, all rows up to ``seq`` have been read."""
    return Position(seq, at(cut), None)


EMPTY, WHOLE = place(0), place(END)


def read(store: Store, after: Position = EMPTY, upto: Position = WHOLE) -> list[float]:
    """The times of all rows between two positions, in the order of the log."""
    found = []
    for piece in store.slices(after, upto):
        found += seconds(rows_between(store.read(piece), piece.seq, after, upto))
    return found


def lock_gate(connection: Any, stream: int) -> None:
    """Lets the connection have the lock of a stream in PostgreSQL until it rolls back."""
    from spark_rowtime.store.postgres.stream_locks import lock_stream

    connection.execute("BEGIN")
    connection.execute(*lock_stream(stream))
