"""History: everything that a store holds of a stream as of one moment, in a form that every store can read and write.

It is how a stream is copied from one kind of store to another: rows, bounds, producers with their checkpoints, rejected
rows, positions of readers, and the numbers of all events, so that readers and queries go on with the copy.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple, Protocol

import pyarrow as pa

from spark_rowtime.bounds.topic_cut import LoggedCut
from spark_rowtime.store.commits import Rejection, Staged
from spark_rowtime.store.snapshot import READS_COPIED, WRITER, ReaderInfo, ReportedStatus, Snapshot


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
    """An entry of the log of rejections, and the commit that it belongs to; ``at_commit``: only the commit found it."""

    rejection: Rejection
    commit: int
    at_commit: bool


class Forgotten(NamedTuple):
    """How many producers ``gc`` has forgotten, their rows, and the largest of their epochs."""

    producers: int
    accepted: int
    rejected: int
    epoch: int


class History(Protocol):
    """A full snapshot, and what it does not have. The parts are read once each, in this order."""

    snapshot: Snapshot
    """The stream, its schema, settings and uptime are known at once, all else behind the events."""

    def events(self) -> Iterator[LoggedEvent]:
        """Yields the log from its horizon on."""

    def rejections(self) -> Iterator[KeptRejection]:
        """Yields the rejections that are kept, in the order of their numbers."""

    def cuts(self) -> Iterator[LoggedCut]:
        """Yields the cuts of all events, also of those that were removed."""


def forgotten(snapshot: Snapshot) -> Forgotten:
    """Returns what is counted of the producers that are forgotten: what is missing from those that are there."""
    known = snapshot.records.values()
    accepted = snapshot.head.rows - sum(record.accepted for record in known)
    rejected = snapshot.rejected - sum(record.rejected for record in known)
    return Forgotten(snapshot.forgotten, accepted, rejected, snapshot.forgotten_epoch)


def writers(snapshot: Snapshot) -> list[ReportedStatus]:
    """Returns the statuses of the queries that write the stream. Others did not report to the copy."""
    return [status for status in snapshot.statuses if status.role == WRITER]


def copied_readers(snapshot: Snapshot) -> list[ReaderInfo]:
    """Returns the readers as a copy has them, which does not know whose they are.

    Laws, until somebody registers it there (tests/store/test_postgres_folding.py): what a user has registered who may
    only read keeps cuts in the copy, too, and lets none be folded (*a reader lets nothing go*); and it keeps them for
    HELD_MICROS alone (*not for ever*).
    """
    return [one if one.trusted else replace(one, reads=READS_COPIED) for one in snapshot.readers]


def key_parts(snapshot: Snapshot) -> Iterator[tuple[str, int, bytes]]:
    """Yields what commits have stored of key columns, each numbered in the order in which its producer stored it."""
    return ((name, at, part) for name, parts in snapshot.keys.items() for at, part in enumerate(parts, 1))
