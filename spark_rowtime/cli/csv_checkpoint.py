"""The checkpoints of a file that is sent: how many of its rows are in the stream, and which files were sent before."""

import hashlib
import json
import sys
from collections.abc import Mapping
from typing import Any

from spark_rowtime.errors import InvalidOptionError
from spark_rowtime.types.arguments import is_whole
from spark_rowtime.types.json_values import load
from spark_rowtime.types.short_repr import short_repr

MOST_FILES = 200
"""How many files a checkpoint remembers as sent."""
_FILE_CHARACTERS = 16
"""How many characters of a remembered file stand for its content and columns; those behind it, for how it was read."""
ALL = sys.maxsize
"""As many rows of a file as there are."""


def require_free(path: str, producer: str, checkpoint: str | None) -> None:
    """Raises InvalidOptionError if the checkpoint is that of another feed, such as an adapter, which would lose it."""
    try:
        ours = checkpoint is None or "csv" in load(checkpoint)
    except (ValueError, TypeError):
        ours = False
    if not ours:
        raise InvalidOptionError(
            f"Producer {producer!r} of {path} has the checkpoint {short_repr(checkpoint)} of another feed, which could "
            "not resume after this file was sent. Send the file under names of its own: another column with "
            "--producer, or --name.",
            producer=producer,
            value=short_repr(checkpoint),
        )


def landed(checkpoint: str | None, identity: dict[str, Any]) -> int | None:
    """Returns how many rows of the file a checkpoint says have landed; None if it says nothing of this file.

    Raises InvalidOptionError if these rows were read in another way. Earlier versions did not note it.
    """
    this = key(identity)
    for file in sent_files(checkpoint):
        if file == this:
            return ALL
        if file[:_FILE_CHARACTERS] == this[:_FILE_CHARACTERS]:
            raise _read_otherwise("All rows of this file are in the stream, read with other options", identity)
    stored, same = _stored(checkpoint), {name: value for name, value in identity.items() if name != "read"}
    if {**stored, **same} != stored:
        return None
    if stored["rows"] and stored.get("read", identity["read"]) != identity["read"]:
        raise _read_otherwise(
            f"{stored['rows']} rows of this file are in the stream, read by {stored['read']}", identity
        )
    return int(stored["rows"])


def _read_otherwise(what: str, identity: Mapping[str, Any]) -> InvalidOptionError:
    return InvalidOptionError(
        f"{what}; now it would be read by {identity['read']}, by which its rows may be other ones. Send it with the "
        "options of then, or into a new stream.",
        value=str(identity["read"]),
    )


def sent_files(checkpoint: str | None) -> list[str]:
    """Returns the keys of the files that a checkpoint says were sent to their end, the oldest first."""
    files = _stored(checkpoint).get("files", [])
    return [file for file in files if isinstance(file, str)] if isinstance(files, list) else []


def _stored(checkpoint: str | None) -> dict[str, Any]:
    """The fields of a checkpoint; none of one that is not of a file, or cannot be read."""
    try:
        stored = load(checkpoint or "{}")
    except ValueError:
        return {}
    if not isinstance(stored, dict) or not is_whole(rows := stored.get("rows", 0)) or rows < 0:
        return {}
    return {**stored, "rows": rows}


def key(identity: Mapping[str, Any]) -> str:
    """A text for a file with its columns of rowtimes and producers, and, in its end, for how the file is read."""
    file, read = (json.dumps(part, sort_keys=True).encode() for part in ({**identity, "read": None}, identity["read"]))
    return hashlib.sha256(file).hexdigest()[:_FILE_CHARACTERS] + hashlib.sha256(read).hexdigest()[:8]
