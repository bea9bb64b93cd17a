"""Periods: the folders of a pattern such as ``date=%Y-%m-%d/hour=%H``, and the interval of event time of each."""

import re
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from spark_rowtime.errors import InvalidOptionError
from spark_rowtime.types.timestamps import END, EPOCH, from_micros

_DIRECTIVE = re.compile("%(.?)")
_UNITS = {"Y": "year", "m": "month", "d": "day", "j": "day", "H": "hour", "M": "minute"}
_COARSER = {"month": "year", "day": "year", "hour": "day", "minute": "hour"}
"""The unit without which a unit does not name one interval: hour=14 alone is one of every day."""
_LENGTHS = {"day": timedelta(days=1), "hour": timedelta(hours=1), "minute": timedelta(minutes=1)}
_MINUTE: dict[str, Any] = {"second": 0, "microsecond": 0}
_HOUR = {**_MINUTE, "minute": 0}
_DAY = {**_HOUR, "hour": 0}
_MONTH = {**_DAY, "day": 1}
_STARTS = {"minute": _MINUTE, "hour": _HOUR, "day": _DAY, "month": _MONTH, "year": {**_MONTH, "month": 1}}
"""What the fields of a time are at the start of each unit."""


class Period(NamedTuple):
    """The interval from ``start`` to before ``end``, in microseconds, and its folder."""

    folder: str
    start: int
    end: int


class Pattern:
    """A pattern of folders by event time in UTC. Its finest unit is the length of a period.

    Laws (tests/unit/test_table_periods.py): each time is in one period; the periods of a pattern follow each other
    without a gap, and no two have the same folder.
    """

    def __init__(self, pattern: str) -> None:
        self.text = pattern
        units = {self._unit(letter) for letter in _DIRECTIVE.findall(pattern) if letter != "%"}
        if "j" in _DIRECTIVE.findall(pattern):
            units |= {"month"}
        if not units:
            raise _wrong(pattern, "it has no time in it, so no folder would ever be complete")
        if "day" in units and "month" not in units:
            raise _wrong(pattern, "it has the day, but not the month")
        for unit in units:
            if (coarser := _COARSER.get(unit)) is not None and coarser not in units:
                raise _wrong(pattern, f"it has the {unit}, but not the {coarser}")
        self.unit = next(unit for unit in ("minute", "hour", "day", "month", "year") if unit in units)

    def _unit(self, letter: str) -> str:
        if letter not in _UNITS:
            raise _wrong(self.text, f"%{letter} is not one of %Y, %m, %d, %j, %H, %M and %%")
        return _UNITS[letter]

    @property
    def columns(self) -> list[str]:
        """The names of the columns that readers make of folders such as ``date=...``."""
        return [part.partition("=")[0] for part in self.text.split("/") if "=" in part]

    def period(self, micros: int) -> Period:
        """The period of a time in microseconds."""
        start = from_micros(micros).replace(**_STARTS[self.unit])
        return Period(start.strftime(self.text), _micros(start), self._end(start))

    def _end(self, start: datetime) -> int:
        try:
            if self.unit in _LENGTHS:
                return _micros(start + _LENGTHS[self.unit])
            months = start.month + (0 if self.unit == "month" else 11)
            return _micros(start.replace(year=start.year + months // 12, month=months % 12 + 1))
        except (OverflowError, ValueError):  # the last period, in the year 9999
            return END


def split_pattern(pattern: str) -> tuple[str, str]:
    """The folder before the first part with a time in it, and the rest."""
    parts = pattern.split("/")
    first = next((at for at, part in enumerate(parts) if "%" in part), len(parts))
    return "/".join(parts[:first]), "/".join(parts[first:])


def _micros(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(microseconds=1)


def _wrong(pattern: str, why: str) -> InvalidOptionError:
    return InvalidOptionError(
        f"The folders {pattern!r} cannot be written: {why}. Give a pattern such as date=%Y-%m-%d/hour=%H.",
        option="target",
        value=pattern,
    )
