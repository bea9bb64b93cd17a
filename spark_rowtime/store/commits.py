"""Commits: the rows and bounds that a producer commits at once, what readers get of them, and what was rejected."""

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from spark_rowtime.bounds.key_parts import KeyChanges
from spark_rowtime.bounds.origin import BoundOrigin
from spark_rowtime.bounds.topic_cut import CutBound, TopicCut


@dataclass(frozen=True, slots=True)
class Staged:
    """Rows whose bytes are written but that no reader sees yet. Can be pickled.

    ``rows`` is at least 1. ``least`` and ``largest`` are the limits of the rowtimes, in microseconds.
    Only the store interprets ``location``.
    """

    rows: int
    least: int
    largest: int
    location: Any


@dataclass(frozen=True, slots=True)
class Slice:
    """One train of the log that lies, at least in part, between two positions. Can be pickled."""

    seq: int
    producer: str
    rows: int
    least: int
    largest: int
    size: int
    location: Any


@dataclass(frozen=True, slots=True)
class Rejected:
    """Rows that the stream did not accept. ``reason`` is "late" or "ahead".

    ``bound`` is the floor that late rows lay below, or the ceiling that rows too far ahead exceeded. ``origin`` says
    whose bound late rows lay below; None if it was not recorded.
    """

    reason: str
    bound: int | None
    rows: pa.RecordBatch
    origin: BoundOrigin | None = None


@dataclass(frozen=True, slots=True)
class Rejection:
    """One entry of the log of rejections.

    ``number`` counts the entries from 1 without gaps; a number is never used again. ``time`` is the wall clock, in
    microseconds, when the rejection was committed.
    """

    number: int
    producer: str
    time: int
    rejected: Rejected


@dataclass(frozen=True, slots=True)
class Commit:
    """What one producer commits atomically: all of it becomes visible, or nothing.

    ``number`` counts the producer's commits from 1, across epochs. A commit with the number of the last one that landed
    is a retry and changes nothing; any other number but the next raises DataLostError. ``floor`` is the producer's own
    floor after the commit. If ``checkpoint`` is None, the stored checkpoint stays. ``disorder`` is the
    state of the producer's disorder, from which its next commit continues; ``keys`` are the changes of that part of the
    state that is not written with every commit; None: there are none. If ``all_or_nothing`` is true
    and a row of ``trains`` is late when the commit runs, nothing lands and LateRowError is raised. ``query_status``
    becomes the producer's ReportedStatus as a WRITER; None: that stays. ``bounds`` are the bounds that the producer
    sent, in their order, if it sends cuts; each becomes an event of its own behind the rows. ``floor`` is then that of
    the last one. ``idle``: the producer does not count for the stream's bound from here on, until its next commit that
    is not idle; with ``behind``, a cut, it holds the bound as before at offsets that have not reached this cut.
    ``session``: the one that holds the producer; None: any.
    """

    producer: str
    epoch: int
    number: int
    trains: tuple[Staged, ...] = ()
    floor: int | None = None
    rejected: tuple[Rejected, ...] = ()
    checkpoint: str | None = None
    disorder: str = ""
    all_or_nothing: bool = False
    keys: KeyChanges | None = None
    query_status: str | None = None
    bounds: tuple[CutBound, ...] = ()
    idle: bool = False
    behind: TopicCut | None = None
    session: str | None = None


@dataclass(frozen=True, slots=True)
class Receipt:
    """The result of a commit: the log's seq, the stream's floor, and the rows that only the commit could reject."""

    seq: int
    floor: int | None
    rejected: tuple[Rejected, ...] = ()


REJECTS_ONLY = "rejects only"
"""How the checkpoint of a producer begins that only rejects rows; see ``Store.reject``. Behind it, and a space, is the
digest of what it has rejected last, unless an earlier version wrote it. A producer with one is not forgotten."""


def rejects_only(checkpoint: str | bytes | None) -> bool:
    """Whether a producer with this checkpoint only rejects rows."""
    return isinstance(checkpoint, str) and checkpoint.startswith(REJECTS_ONLY)
