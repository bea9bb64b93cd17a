"""Retention: what ``gc`` may remove from a stream, and which positions have lost rows by it.

The trains that ``gc`` has removed are always the first ones of the log, up to the *horizon*. The bound
had released all of them, so the horizon's largest rowtime lies below the stream's floor.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import unquote

from spark_rowtime.errors import DataLostError, InvalidOptionError, StoreUnavailableError
from spark_rowtime.store.position import Head, Position
from spark_rowtime.types.timestamps import DAY_MICROS, show_micros

PORTION_EVENTS = 1000
"""How many events one transaction looks at, or removes, at most: a few milliseconds."""
PORTION_PRODUCERS = 200
"""How many producers one transaction forgets at most."""
LIMIT_PARTS = 8
"""The retention limit is divided into this many parts. Commits remove old rows after each part that passes."""
MOST_PORTIONS = 20
"""How many portions one commit removes at most. The next commits continue."""
UNRELEASED = "the bound has not released it"
STAGED_RETENTION_MICROS = DAY_MICROS
"""How long staged bytes are kept without a commit: a day, since a Spark batch may still commit them."""
STAGED_ROWS = "staged rows"
"""What the stream lacks, in the values of the error, where such bytes were removed, or may not be on the disk."""


HELD_MICROS = 30 * DAY_MICROS
"""For how long something is kept for a reader of a user who may only read: 30 days of uptime."""
SEEN_SECONDS = 60.0
"""A registered reader renews its registration at this interval, even if no rows arrive."""
_JOINS = " (joins)"
_QUERY = re.compile(r"(?:file:/*)?(/.*)/sources/\d+(?: \(joins\))?")
"""The name under which a query is registered: the checkpoint folder of one of its sources, on a local file system."""
_TEMPORARY = re.compile(r".*/temporary-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/sources/\d+")
"""The same for a query with a temporary checkpoint, which Spark deletes when the query ends."""


def is_temporary(reader: str) -> bool:
    """Returns whether ``reader`` is a query that cannot be restarted, because its checkpoint is a temporary one."""
    return _TEMPORARY.fullmatch(reader) is not None


def of_joins(reader: str) -> str:
    """Returns the name under which the rows that the joins of the query ``reader`` may ask about are registered."""
    return f"{reader}{_JOINS}"


def checkpoint_gone(reader: str) -> bool:
    """Returns whether ``reader`` is a query whose checkpoint no longer exists on this machine; False if unknown."""
    found = _QUERY.fullmatch(reader)
    return found is not None and not any(Path(place).exists() for place in (found[1], unquote(found[1])))


def lost(position: Position, horizon: Head) -> bool:
    """Returns whether rows that are unread at ``position`` have been removed."""
    if position.seq < horizon.seq:
        return True
    return position.cut is not None and horizon.largest is not None and horizon.largest >= position.cut


def require_kept(position: Position, horizon: Head, path: str) -> None:
    """Raises DataLostError if rows that are unread at ``position`` have been removed."""
    if not lost(position, horizon):
        return
    asked = f"the rows after seq {position.seq}"
    if position.cut is not None:
        asked += f", and of those before it the ones from {show_micros(position.cut)} on"
    raise lost_error(asked, horizon, path)


def require_same(position: Position, made: Mapping[int, int], path: str) -> None:
    """Raises DataLostError if the log has another event at ``position`` than the one that was read.

    ``made``: when events of the log were committed.
    """
    found = made.get(position.seq, position.made)
    if found != position.made and position.made is not None:
        raise DataLostError(
            f"This reader has read {path} up to seq {position.seq}, which was committed at "
            f"{show_micros(position.made)}, but the event with that number in its log is of {show_micros(found)}: it "
            "is an older copy that has grown since, as after a failover to a standby that lacked the last commits, or "
            "a restored backup. The reader would skip rows. Bring the newer one back, or start again from the "
            "beginning (a query: with a new checkpoint).",
            path=path,
            asked=position.seq,
        )


class Replayed(Head):
    """The end of the log on a standby server, which has not replayed all that its primary has."""


def require_there(position: Position, head: Head, path: str) -> None:
    """Raises DataLostError if the log ends before ``position``; StoreUnavailableError if it goes on elsewhere."""
    if position.seq > head.seq:
        require_replayed(head, position.seq, path)
        raise DataLostError(
            f"This reader has read {path} up to seq {position.seq}, but its log ends at {head.seq}: it is an older "
            "copy, or lost its last commits in a power failure. The reader would skip new rows. Restore the newer "
            "copy, or start again from the beginning (a query: with a new checkpoint).",
            path=path,
            asked=position.seq,
            last=head.seq,
        )


def require_replayed(head: Head, seq: int, path: str) -> None:
    """Raises StoreUnavailableError on a standby. Call it where the log up to ``seq``, or what it names, is missing."""
    if isinstance(head, Replayed):
        raise StoreUnavailableError(
            f"{path} is read from a standby that has not replayed all of it yet: the log there ends at seq {head.seq}, "
            f"and seq {seq} was asked for. Call again when the standby has caught up, or have "
            "target_session_attrs=read-write in the path to read from the server that writes.",
            path=path,
            asked=seq,
            last=head.seq,
        )


def lost_error(asked: str, horizon: Head, path: str) -> DataLostError:
    """Returns the error for a request for ``asked``, which was removed."""
    return DataLostError(
        f"{path} no longer has {asked}: gc has removed the {horizon.rows} rows up to seq {horizon.seq}, with rowtimes "
        f"up to {show_micros(horizon.largest)}. Start at 'earliest' to read the rows that are left (a query: with a "
        "new checkpoint). gc keeps the rows that named readers, and queries with the extension, still need.",
        path=path,
        horizon=horizon.seq,
        rows=horizon.rows,
        largest=horizon.largest,
    )


def needs(readers: Iterable[tuple[str, Position]], head: Head, force: bool) -> list[tuple[str, Position]]:
    """Returns the positions after which nothing may be removed, each with the reason why."""
    unreleased = Position(head.seq, 0 if head.floor is None else head.floor + 1, None)
    return [*((f"reader {name!r} needs it", at) for name, at in readers if not force), (UNRELEASED, unreleased)]


def never_registered(reader: str, readers: Iterable[str]) -> InvalidOptionError:
    """Returns the error for forgetting a reader that the stream does not know."""
    known = ", ".join(map(repr, sorted(readers))) or "none"
    return InvalidOptionError(
        f"No reader {reader!r} is registered; the registered readers are: {known}.", reader=reader
    )


def unsynced(path: str) -> StoreUnavailableError:
    """Returns the error for committing rows of which it is not known whether they are on the disk."""
    return StoreUnavailableError(
        f"Rows that were written to {path} may not be on its disk: a sync of them has failed, or was interrupted. "
        "Nothing of this commit was stored: send its rows again, and check the disk.",
        path=path,
        lacks=STAGED_ROWS,
    )


def staged_gone(path: str) -> StoreUnavailableError:
    """Returns the error for committing rows that ``gc`` removed after ``STAGED_RETENTION_MICROS`` without a commit."""
    return StoreUnavailableError(
        f"gc removed rows that were written to {path} more than a day ago and never committed. Nothing of this "
        "commit was stored: send its rows again.",
        path=path,
        lacks=STAGED_ROWS,
    )
