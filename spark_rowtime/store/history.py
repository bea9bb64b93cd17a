"""History: everything that a store holds of a stream as of one moment, in a form that every store can read and write.

It is how a stream is copied from one kind of store to another: rows, bounds, producers with their checkpoints, rejected
rows, positions of readers, and the numbers of all events, so that readers and queries go on with the copy.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import pyarrow as pa

from spark_rowtime.bounds.origin import BoundOrigin
from spark_rowtime.bounds.topic_cut import LoggedCut
from spark_rowtime.store.base import Position, Staged, StreamSettings
from spark_rowtime.store.record import ProducerRecord


@dataclass(frozen=True, slots=True)
class About:
    """What a stream is, and its totals. ``uptime`` is when the copy was made, in microseconds of uptime."""

    stream: str
    ancestors: Mapping[str, int]
    schema: pa.Schema
    settings: StreamSettings
    uptime: int
    rejected_removed: int
    forgotten: int
    forgotten_accepted: int
    forgotten_rejected: int
    forgotten_epoch: int


class LoggedEvent(NamedTuple):
    """One event of the log, and the end of the log after it."""

    seq: int
    kind: str
    producer: str
    time: int
    floor: int | None
    stream_floor: int | None
    stream_largest: int | None
    stream_rows: int
    rows: int | None
    """The number of rows; of the last event that was removed, it is known although the rows are gone."""
    train: tuple[Staged, pa.RecordBatch] | None
    """The rows; the Staged has their number and limits, and the location of the other store."""


class KeptRejection(NamedTuple):
    """An entry of the log of rejections, and the commit that it belongs to."""

    number: int
    producer: str
    commit: int
    time: int
    reason: str
    bound: int | None
    at_commit: bool
    origin: BoundOrigin | None
    rows: pa.RecordBatch


class KnownReader(NamedTuple):
    """A registered reader. ``seen`` is in microseconds of uptime."""

    name: str
    position: Position
    seen: int


class KnownAccount(NamedTuple):
    """An account, with the uptime in microseconds at which it was reported."""

    role: str
    name: str
    seen: int
    content: str


class History(Protocol):
    """The parts are read once each, in this order. The totals in ``about`` are right behind the producers."""

    about: About

    def events(self) -> Iterator[LoggedEvent]:
        """Yields the log from its horizon on."""

    def producers(self) -> Iterator[ProducerRecord]:
        """Yields all producers that are not forgotten."""

    def rejections(self) -> Iterator[KeptRejection]:
        """Yields the rejections that are kept, in the order of their numbers."""

    def readers(self) -> Iterator[KnownReader]:
        """Yields the registered readers."""

    def key_floors(self) -> Iterator[tuple[str, int, bytes]]:
        """Yields the bounds of values of key columns: a producer, its commit, and what that commit stored."""

    def cuts(self) -> Iterator[LoggedCut]:
        """Yields the cuts of all events, also of those that were removed."""

    def accounts(self) -> Iterator[KnownAccount]:
        """Yields the accounts of the queries that write the stream. Others did not report to the copy."""
