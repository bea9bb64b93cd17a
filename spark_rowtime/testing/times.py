"""Times of a test's day, such as "14:30"."""

import re
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from spark_rowtime.types.values import named

_CLOCK = re.compile(r"\d{1,2}:\d{2}(:\d{2}(\.\d{1,6})?)?")


class Times:
    """Completes clock times to times of one day in UTC; all other values are left as they are.

    Example:
        >>> Times("2026-01-05").of("9:30")
        '2026-01-05T09:30:00Z'
        >>> Times("2026-01-05").of("2026-01-06T09:30:00Z")
        '2026-01-06T09:30:00Z'
    """

    def __init__(self, day: str | None) -> None:
        """``day``: the date in ISO 8601; None: no value is completed."""
        self._day = day

    def of(self, value: Any) -> Any:
        """The value; if it is a clock time, as H:MM, HH:MM or HH:MM:SS, that time of the day in ISO 8601."""
        if self._day is None or not isinstance(value, str) or not _CLOCK.fullmatch(value):
            return value
        hours, minutes, *seconds = value.split(":")
        return f"{self._day}T{int(hours):02d}:{minutes}:{seconds[0] if seconds else '00'}Z"

    def row(self, row: Any, schema: pa.Schema) -> Any:
        """A row, as for ``sendRow``, whose clock times in TIMESTAMP columns are completed."""
        row, times = named(row), {field.name for field in schema if pa.types.is_timestamp(field.type)}
        if isinstance(row, Mapping):
            return {name: self.of(value) if name in times else value for name, value in row.items()}
        if isinstance(row, tuple | list) and len(row) == len(schema):
            return tuple(self.of(v) if name in times else v for name, v in zip(schema.names, row, strict=True))
        return row
