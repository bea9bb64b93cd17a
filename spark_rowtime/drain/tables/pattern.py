"""Pattern: the folders of a pattern such as ``date=%Y-%m-%d/hour=%H``, and the interval of event time of each."""

import re
from datetime import UTC, tzinfo
from typing import NamedTuple

from spark_rowtime.calendar import Calendar
from spark_rowtime.errors import InvalidOptionError
from spark_rowtime.periods import Unit, to_unit
from spark_rowtime.types.timestamps import DAY_MICROS, HOUR_MICROS, MINUTE_MICROS

_DIRECTIVE = re.compile("%(.?)")
_URL = re.compile("[a-zA-Z][a-zA-Z0-9+.-]+:/")
_LETTERS = {"Y": "year", "m": "month", "d": "day", "j": "day", "H": "hour", "M": "minute"}
_COARSER = {"month": "year", "day": "year", "hour": "day", "minute": "hour"}
"""The unit without which a unit does not name one interval: hour=14 alone is one of every day."""
_UNITS = {
    "minute": Unit(MINUTE_MICROS),
    "hour": Unit(HOUR_MICROS),
    "day": Unit(DAY_MICROS),
    "month": to_unit("1 month"),
    "year": to_unit("1 year"),
}
"""From the finest on."""


class Period(NamedTuple):
    """The interval from ``start`` to before ``end``, in microseconds, and its folder."""

    folder: str
    start: int
    end: int


class Pattern:
    """A pattern of folders by event time in a time zone. Its finest unit is the length of a period.

    Laws (tests/unit/test_table_periods.py): each time is in one period; the periods of a pattern follow each other
    without a gap, and no two have the same folder. So an hour that comes twice, where clocks are put back, is one.
    """

    def __init__(self, pattern: str, zone: tzinfo = UTC) -> None:
        self.text, self.zone = pattern, str(zone)
        units = {self._named(letter) for letter in _DIRECTIVE.findall(pattern) if letter != "%"}
        if "j" in _DIRECTIVE.findall(pattern):
            units |= {"month"}
        if not units:
            raise _wrong(pattern, "it has no time in it, so no folder would ever be complete")
        if "day" in units and "month" not in units:
            raise _wrong(pattern, "it has the day, but not the month")
        for unit in units:
            if (coarser := _COARSER.get(unit)) is not None and coarser not in units:
                raise _wrong(pattern, f"it has the {unit}, but not the {coarser}")
        self._calendar = Calendar(next(unit for name, unit in _UNITS.items() if name in units), zone, merges=True)

    def _named(self, letter: str) -> str:
        if letter not in _LETTERS:
            raise _wrong(self.text, f"%{letter} is not one of %Y, %m, %d, %j, %H, %M and %%")
        return _LETTERS[letter]

    @property
    def columns(self) -> list[str]:
        """The names of the columns that readers make of folders such as ``date=...``."""
        return [part.partition("=")[0] for part in self.text.split("/") if "=" in part]

    def period(self, micros: int) -> Period:
        """The period of a time in microseconds."""
        span = self._calendar.holding(micros)
        return Period(span.clock.strftime(self.text), span.start, span.end)


def split_pattern(pattern: str) -> tuple[str, str]:
    """The folder before the first part with a time in it, and the rest. Raises InvalidOptionError for a URL."""
    if _URL.match(pattern):
        raise InvalidOptionError(
            f"parquet:{pattern}: Parquet files are written to a folder of this machine, not to a URL. Give the path of "
            "a folder, or a table: delta:URL, iceberg:CATALOG.NAMESPACE.TABLE.",
            option="target",
            value=pattern,
        )
    parts = pattern.split("/")
    first = next((at for at, part in enumerate(parts) if "%" in part), len(parts))
    return "/".join(parts[:first]) or pattern[: pattern.startswith("/")], "/".join(parts[first:])


def _wrong(pattern: str, why: str) -> InvalidOptionError:
    return InvalidOptionError(
        f"The folders {pattern!r} cannot be written: {why}. Give a pattern such as date=%Y-%m-%d/hour=%H.",
        option="target",
        value=pattern,
    )
