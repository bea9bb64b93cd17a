"""The settings of a stream. Stores keep them as a JSON object, in which those are missing that are not set.

Somebody may have written them who is no version of this project. So each is checked before it is used.
"""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from datetime import timedelta
from typing import Any

from spark_rowtime.bounds.clock import StreamClock
from spark_rowtime.bounds.members import Members, SortedMembers
from spark_rowtime.types.json_values import load
from spark_rowtime.types.short_repr import short_repr
from spark_rowtime.types.timestamps import DAY_MICROS

REJECTED_BYTES = 256 << 20
"""Default of ``retainRejected``: how many bytes of rejected rows a stream keeps."""


@dataclass(frozen=True, slots=True)
class StreamSettings:
    """The settings of a stream. Intervals are in microseconds, sizes in bytes."""

    boundsBeforeRows: bool = True
    maxLag: int | None = None
    idleTimeout: int | None = None
    maxAhead: int | None = None
    retainAge: int | None = None
    retainBytes: int | None = None
    retainRejected: int = REJECTED_BYTES
    location: str | None = None
    """The URL where trains are that are too large for the database; None: all are in the store."""
    closed: tuple[str, ...] | None = None
    """The only producers that may attach; None: anybody may."""

    def clock(self, members: Members | None = None) -> StreamClock:
        """Returns the clock of a new stream. ``members`` is where it keeps its producers; None: in memory."""
        return StreamClock(
            self.boundsBeforeRows, self.maxLag, producers=SortedMembers() if members is None else members
        )


Change = Callable[[StreamSettings], StreamSettings]
"""Makes other settings of those that a stream has. It may be called again with what it has made."""
NEW_STREAM = StreamSettings(maxAhead=DAY_MICROS)
"""The settings of a new stream unless others are given: ``maxAhead`` is a day. Older streams may have none."""

_NUMBERS = dict.fromkeys((field.name for field in fields(StreamSettings)), int)
_KINDS: dict[str, type] = {**_NUMBERS, "boundsBeforeRows": bool, "location": str, "closed": list}
_MAY_BE_NULL = {field.name for field in fields(StreamSettings) if field.default is None}


def settings_text(settings: StreamSettings) -> str:
    """Returns the settings as a store keeps them."""
    return json.dumps({name: value for name, value in asdict(settings).items() if value is not None})


def settings_of(text: str) -> StreamSettings:
    """Returns the settings that a store has kept. Raises TypeError or ValueError if they cannot be read."""
    values = load(text)
    if not isinstance(values, dict):
        raise ValueError("they are no object of JSON")  # noqa: TRY004  (the caller says what it means)
    wrong = [name for name, value in values.items() if not _fits(name, value)]
    if wrong:
        raise ValueError(f"no version writes {short_repr(wrong[0])} so")
    closed = values.get("closed")
    return StreamSettings(**{**values, "closed": None if closed is None else tuple(closed)})


def _fits(name: str, value: Any) -> bool:
    """Returns whether the setting has such a value."""
    if value is None:
        return name in _MAY_BE_NULL
    if type(value) is not _KINDS.get(name):
        return False
    if type(value) is list:
        return all(type(one) is str for one in value)
    return type(value) is not int or value >= 0


def not_default(settings: StreamSettings) -> dict[str, Any]:
    """The settings that are not the default of a new stream; intervals as timedelta."""
    changed = {name: value for name, value in asdict(settings).items() if value != getattr(NEW_STREAM, name)}
    plain = ("boundsBeforeRows", "retainBytes", "retainRejected", "location", "closed")
    return {
        name: value if name in plain or value is None else timedelta(microseconds=value)
        for name, value in changed.items()
    }
