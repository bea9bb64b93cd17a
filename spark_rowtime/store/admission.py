"""Admission rules that all stores share: what a commit logs, and the errors for refused calls."""

import os
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import pyarrow.compute as pc

from spark_rowtime.bounds.bound import is_end, stronger
from spark_rowtime.bounds.clock import Idled, Sent, Status, completes
from spark_rowtime.bounds.origin import PRODUCER, BoundOrigin, origin_values
from spark_rowtime.bounds.topic_cut import CutBound
from spark_rowtime.bounds.train import floors_between
from spark_rowtime.errors import (
    DataLostError,
    InvalidOptionError,
    LateRowError,
    ProducerFencedError,
    SinkClosedError,
    StoreUnavailableError,
    StreamBusyError,
    StreamCompleteError,
    StreamExistsError,
    StreamSetBackError,
)
from spark_rowtime.store.base import Store
from spark_rowtime.store.commits import REJECTS_ONLY, Commit, Rejected, Staged
from spark_rowtime.store.reach import Reach
from spark_rowtime.store.record import ProducerRecord
from spark_rowtime.types.arguments import did_you_mean, nearest
from spark_rowtime.types.schema import rowtime_micros
from spark_rowtime.types.short_repr import some
from spark_rowtime.types.timestamps import show_micros

_NAMED = 10
"""How many producers an error names."""


def is_next(commit: Commit, last: int, path: str) -> bool:
    """Returns whether ``commit`` follows the producer's ``last`` commit in the store; False: it is that one, repeated.

    Raises DataLostError for any other number: the store and the sink do not know the same commits.
    """
    if commit.number in (last, last + 1):
        return commit.number > last
    what = "lacks commits that it had acknowledged" if commit.number > last else "has commits that the sink never made"
    raise DataLostError(
        f"Producer {commit.producer!r} sends its commit number {commit.number} to {path}, but its last one there is "
        f"number {last}: the stream {what}. It is an older copy, as after a restore, or after a standby took over that "
        "lacked the last commits. Nothing of this commit was stored, and nothing that this sink sends will be. Restore "
        "the newer copy; or open a new sink, and send again what follows the checkpoint, or the rows, that the stream "
        "has of this producer.",
        path=path,
        producer=commit.producer,
        asked=commit.number,
        last=last,
    )


class Landing(NamedTuple):
    """What a commit logs: events, those of trains in their order. ``sends``: it has rows or a new bound.

    With each event comes its train, or the cut that it follows.
    """

    events: tuple[tuple[Sent | Idled, Staged | None, CutBound | None], ...]
    sends: bool


def landing(commit: Commit, trains: Sequence[Staged], own: int | None, status: str, in_force: int | None) -> Landing:
    """Returns what ``commit`` logs, of which ``trains`` were admitted.

    ``own`` is the producer's floor before the commit, ``status`` its status, and ``in_force`` the floor below which its
    rows are late. A commit without rows logs its floor if that is new, or if the producer counts again by sending.
    An idle commit that raises no bound takes an attached producer out of the clock; for another one it changes nothing.
    """
    behind_rows = None if commit.bounds else commit.floor
    floors = floors_between([(t.least, t.largest) for t in trains], behind_rows, own)[1:]
    events: list[tuple[Sent | Idled, Staged | None, CutBound | None]] = [
        (Sent(commit.producer, floor, train.largest), train, None) for train, floor in zip(trains, floors, strict=True)
    ]
    events += [(Sent(commit.producer, bound.floor), None, bound) for bound in commit.bounds]
    raised = stronger(own, commit.floor) != own
    counts_again = status not in (Status.ATTACHED, Status.COMPLETE) and not commit.idle
    if not events and (raised or counts_again):
        events.append((Sent(commit.producer, stronger(in_force, commit.floor)), None, None))
    if commit.idle and (not completes(events[-1][0]) if events else status == Status.ATTACHED):
        behind = None if commit.behind is None else CutBound(0, commit.behind)  # no bound: its floor counts for nothing
        events.append((Idled(commit.producer), None, behind))
    return Landing(tuple(events), bool(trains) or raised)


def whose_bound(store: Store, producer: str, bound: int) -> BoundOrigin:
    """Returns whose bound a row of ``producer`` fell below, if nothing but the log tells it."""
    raised = store.raised(bound)
    if raised is None or (raised.producer == producer and raised.event == "sent"):
        return BoundOrigin(PRODUCER, producer)
    return raised


def require_all_accepted(commit: Commit, rejected: Sequence[Rejected], reach: Reach) -> None:
    """Raises LateRowError or RowtimeAheadError if ``commit.all_or_nothing`` is set, and rows would be ``rejected``."""
    if not commit.all_or_nothing or not rejected:
        return
    ahead = [pc.max(rowtime_micros(one.rows)).as_py() for one in rejected if one.reason == "ahead"]
    if ahead:
        raise reach.error(commit.producer, "The row at", max(ahead))
    late = rejected
    rows, bound, origin = sum(r.rows.num_rows for r in late), late[0].bound, late[0].origin
    raise LateRowError(
        f"{rows} row(s) of producer {commit.producer!r} lie below {show_micros(bound)}, {origin or 'the bound'} at the "
        "commit. Nothing was committed.",
        producer=commit.producer,
        rows=rows,
        bound=bound,
        **origin_values(origin),
    )


def require_open(path: str, producer: str, floor: int | None) -> None:
    """Raises StreamCompleteError if the stream's ``floor`` is the end of time, so that nobody may join."""
    if is_end(floor):
        raise StreamCompleteError(
            f"The stream at {path} is complete: every producer has declared that no row follows, so producer "
            f"{producer!r} cannot join. Create another stream for what comes now.",
            path=path,
            producer=producer,
        )


class Use(NamedTuple):
    """What changes when somebody begins to use a stream: the stream itself, its last event, its registered readers."""

    stream: str
    seq: int
    readers: frozenset[str]


def use_of(store: Store) -> Use:
    """Returns what it is now."""
    now = store.snapshot()
    return Use(now.stream, now.head.seq, frozenset(reader.name for reader in now.readers))


def require_unused(path: str, before: Use | None, now: Use) -> None:
    """Raises StreamBusyError if somebody has used the stream since it was looked at; None: nobody has looked."""
    if before not in (None, now):
        raise StreamBusyError(
            f"{path} was used while it was about to be deleted: it has other events or readers than before. Nothing "
            "was deleted. Look who uses it (`rowtime describe`), and try again.",
            path=path,
        )


def replaced(path: str) -> StreamBusyError:
    """Returns the error for a deletion of a stream of which another one has got the name meanwhile."""
    return StreamBusyError(
        f"Another stream has got the name {path} while the one that had it was about to be deleted. Nothing was "
        "deleted. Look what is there (`rowtime list`), and try again.",
        path=path,
    )


def require_admitted(closed: Sequence[str] | None, producer: str, path: str) -> None:
    """Raises InvalidOptionError if the stream is ``closed`` to all but others; None: anybody may attach."""
    if closed is None or producer in closed:
        return
    names = some([repr(name) for name in closed], _NAMED)
    raise InvalidOptionError(
        f"Producer {producer!r} may not send to {path}: the stream is closed to all but {names}."
        f"{did_you_mean(nearest(producer, closed))} Send under one of these names, or let it join: "
        f"rt.alterStream(path, producers=[{producer!r}]), `rowtime alter STREAM --producer NAME`.",
        producer=producer,
        path=path,
    )


def complete(path: str, producer: str) -> StreamCompleteError:
    """Returns the error for opening a producer that is complete."""
    return StreamCompleteError(
        f"Producer {producer!r} of {path} is complete: it was declared that it never sends again. Send under another "
        "name, or into another stream.",
        path=path,
        producer=producer,
    )


def fenced(producer: str, epoch: int, now: int, status: Status) -> ProducerFencedError:
    """Returns the error for a call that uses an old epoch; ``status`` is that of the producer now."""
    if status in (Status.LEFT, Status.COMPLETE):
        return _closed(producer, epoch, now)
    return ProducerFencedError(
        f"Producer {producer!r} was taken over: this sink has epoch {epoch}, the stream has epoch {now}. "
        "Nothing of this call was committed. Find the other process that uses this name. If this process should "
        "continue instead, open a new sink under the name.",
        producer=producer,
        epoch=epoch,
        current=now,
    )


def set_back(producer: str, path: str) -> StreamSetBackError:
    """Returns the error for a call of a sink whose epoch another one has got since."""
    return StreamSetBackError(
        f"Another sink holds producer {producer!r} of {path} under the number that this one got when it was opened: "
        "since then the stream was replaced by an older copy, as from a backup. Rows that this sink had acknowledged "
        "may be gone. Nothing of this call was stored, and nothing that this sink sends will be. Open a new sink, and "
        "send again what follows the checkpoint, or the rows, that the stream has of this producer.",
        path=path,
        producer=producer,
    )


def has_rejected(record: ProducerRecord, number: int, digest: str, path: str) -> bool:
    """Whether the stream has these rows of a producer that only rejects rows; see ``Store.reject``."""
    if number > record.number:
        return False
    last = str(record.checkpoint or "").removeprefix(REJECTS_ONLY).strip()
    if not last or (number, digest) == (record.number, last):
        return True
    batch, kept = number - 1, record.number - 1
    those = "those of that batch from another part of the topics" if batch == kept else f"those of batch {kept}"
    raise ProducerFencedError(
        f"The late rows of batch {batch} of {record.name} cannot be kept in {path}: it has {those}. Another process "
        "runs this query, or its checkpoint was copied, or is an older copy. None of these rows was kept, and the "
        "batch was not committed. Continue with the newest checkpoint, in one process; where it is gone, start the "
        "query with a new checkpoint and a new output.",
        producer=record.name,
        path=path,
        batch=batch,
    )


def _closed(producer: str, epoch: int, now: int) -> ProducerFencedError:
    return ProducerFencedError(
        f"Producer {producer!r} was closed by somebody else (`rowtime close`, or closeProducer), or by a sink that "
        f"had taken it over: this sink has epoch {epoch}, the stream {now}. The stream no longer waits for it. Nothing "
        "of this call has landed. Open a new sink under the name if this process is to go on; rows below the "
        "stream's bound are late then.",
        producer=producer,
        epoch=epoch,
        current=now,
    )


def never_attached(producer: str, known: Iterable[str], path: str) -> InvalidOptionError:
    """Returns the error for a call with the name of a producer that the stream does not know; it knows ``known``."""
    names = sorted(known)
    hint = did_you_mean(nearest(producer, names))
    return InvalidOptionError(
        f"No producer {producer!r} was ever attached to {path}.{hint} Its producers are: "
        f"{some([repr(name) for name in names], _NAMED) or 'none'}.",
        producer=producer,
        path=path,
    )


def interrupted(path: str) -> StoreUnavailableError:
    """Returns the error for a call within another one, as of a signal's handler: both would follow the same event."""
    return StoreUnavailableError(
        f"A call on the stream at {path} was made while another one was interrupted in the same thread, as by a "
        "signal's handler. Nothing of this call has landed; call it again after the other has returned.",
        path=path,
    )


def elsewhere(path: str, process: int) -> SinkClosedError:
    """Returns the error for a call in another process than the one that opened the stream."""
    return SinkClosedError(
        f"The stream at {path} was opened in process {process} and used in process {os.getpid()}, which was forked "
        "from it. Open it in each process.",
        path=path,
    )


def exists(path: str) -> StreamExistsError:
    """Returns the error for a path at which a stream in memory or in a database is."""
    return StreamExistsError(
        f"There is a stream at {path} already. Choose another path; createStream(..., existOk=True), "
        "`rowtime create --exist-ok`, uses the stream that is there.",
        path=path,
    )


def closed(path: str) -> SinkClosedError:
    """Returns the error for a call after ``close``."""
    return SinkClosedError(f"The stream at {path} was closed. Open it again.", path=path)


def redeclared(producer: str, stored: str, given: str) -> InvalidOptionError:
    """Returns the error for attaching a producer with another declaration of order."""
    return InvalidOptionError(
        f"Producer {producer!r} was declared as {stored}, not {given}. The state of its declared order cannot be "
        "converted. Open it with the same declaration, or under another name.",
        producer=producer,
        stored=stored,
        given=given,
    )
