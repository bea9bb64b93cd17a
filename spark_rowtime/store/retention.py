"""What may be removed from a stream, and what it means for a position that the horizon has passed.

The trains that ``gc`` has removed are always the first of the log, up to the *horizon*. All of them
were released, so the horizon's largest rowtime lies below the stream's floor.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote

from spark_rowtime.errors import DataLostError, InvalidOptionError, StoreUnavailableError
from spark_rowtime.store.base import Head, Position, ReaderInfo
from spark_rowtime.types.timestamps import show_micros

UNRELEASED = "the bound has not released it"
STAGED_RETENTION_MICROS = 86_400_000_000
"""Bytes that were put down and are not committed stay for a day, in microseconds: a Spark batch may still commit."""


SEEN_SECONDS = 60.0
"""A registered reader says so often that it still reads, also where nothing comes."""
_QUERY = re.compile(r"(?:file:/*)?(/.*)/sources/\d+")
"""What a query is registered as: where its checkpoint keeps one of its sources; here on a local file system."""
_TEMPORARY = re.compile(r".*/temporary-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/sources/\d+")
"""The same for a query without a checkpoint of its own: Spark deletes the folder when the query ends."""


def is_temporary(reader: str) -> bool:
    """Whether ``reader`` is a query that cannot be run again, as its checkpoint is one that Spark made for one run."""
    return _TEMPORARY.fullmatch(reader) is not None


def checkpoint_gone(reader: str) -> bool:
    """Whether ``reader`` is a query whose checkpoint is no longer on this machine; False where that cannot be told."""
    found = _QUERY.fullmatch(reader)
    return found is not None and not any(Path(place).exists() for place in (found[1], unquote(found[1])))


def lost(position: Position, horizon: Head) -> bool:
    """Whether rows that are unread at ``position`` are gone."""
    if position.seq < horizon.seq:
        return True
    return position.cut is not None and horizon.largest is not None and horizon.largest >= position.cut


def require_kept(position: Position, horizon: Head, path: str) -> None:
    """DataLostError where rows that are unread at ``position`` are gone."""
    if not lost(position, horizon):
        return
    asked = f"the rows after seq {position.seq}"
    if position.cut is not None:
        asked += f", and of those before it the ones from {show_micros(position.cut)} on"
    raise lost_error(asked, horizon, path)


def require_there(position: Position, head: Head, path: str) -> None:
    """DataLostError where the log ends before ``position``."""
    if position.seq > head.seq:
        raise DataLostError(
            f"This reader has read {path} up to seq {position.seq}, but its log ends at {head.seq}: it is an older "
            "copy, or has lost its last commits with the power. What is sent now would be skipped. Bring the newer "
            "copy back, or start anew, queries with a new checkpoint.",
            path=path,
            asked=position.seq,
            last=head.seq,
        )


def lost_error(asked: str, horizon: Head, path: str) -> DataLostError:
    """The error for ``asked``, which was removed."""
    return DataLostError(
        f"Asked for {asked} of {path}, but gc has removed the {horizon.rows} rows up to seq {horizon.seq}, with "
        f"rowtimes up to {show_micros(horizon.largest)}; what came after them is left. Start at 'earliest' to read "
        "that, queries with a new checkpoint. Named readers and queries with the extension keep what they need.",
        path=path,
        horizon=horizon.seq,
        rows=horizon.rows,
        largest=horizon.largest,
    )


def needs(readers: Sequence[ReaderInfo], head: Head, force: bool) -> list[tuple[str, Position]]:
    """The positions behind which nothing is removed, and whose they are."""
    unreleased = Position(head.seq, 0 if head.floor is None else head.floor + 1, None)
    return [*((f"reader {r.name!r} needs it", r.position) for r in readers if not force), (UNRELEASED, unreleased)]


def never_registered(reader: str, readers: Sequence[ReaderInfo]) -> InvalidOptionError:
    """The error for forgetting a reader that the stream does not know."""
    known = ", ".join(repr(r.name) for r in readers) or "none"
    return InvalidOptionError(f"No reader {reader!r} is registered here; there are: {known}.", reader=reader)


def staged_gone(path: str) -> StoreUnavailableError:
    """The error for a commit of rows that lay staged for longer than ``STAGED_RETENTION_MICROS``, and were removed."""
    return StoreUnavailableError(
        f"Rows that were put down in {path} more than a day ago and never committed were removed by gc. Nothing of "
        "this commit has landed: send its rows again.",
        path=path,
    )
