"""Periods: their lengths on the face of a clock, for announcements of complete periods and for folders by time."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from spark_rowtime.errors import InvalidOptionError
from spark_rowtime.types.short_repr import short_repr
from spark_rowtime.types.timestamps import (
    DAY_MICROS,
    HOUR_MICROS,
    MINUTE_MICROS,
    SECOND_MICROS,
    WEEK_MICROS,
    to_required_interval,
)

_MONTHS = {"month": 1, "quarter": 3, "year": 12}
_MONTH_NAMES = {1: "1month", 3: "1quarter", 12: "1year"}
_SYMBOLS = {"w": WEEK_MICROS, "d": DAY_MICROS, "h": HOUR_MICROS, "min": MINUTE_MICROS, "s": SECOND_MICROS}


@dataclass(frozen=True, slots=True)
class Unit:
    """A length of time that divides a day, or a day, a week from Monday, a month, a quarter or a year.

    ``micros`` is the length on the clock, of months that of 30 days each. ``months`` is 0 for the others.
    """

    micros: int
    months: int = 0

    @property
    def name(self) -> str:
        """The length as a short text, such as "1h", "15min" or "1month"."""
        if self.months:
            return _MONTH_NAMES[self.months]
        symbol, size = next((symbol, size) for symbol, size in _SYMBOLS.items() if self.micros % size == 0)
        return f"{self.micros // size}{symbol}"

    def floor(self, clock: datetime) -> datetime:
        """The start of the period that holds the naive time ``clock``."""
        midnight = clock.replace(hour=0, minute=0, second=0, microsecond=0)
        if self.months:
            return midnight.replace(month=(clock.month - 1) // self.months * self.months + 1, day=1)
        if self.micros == WEEK_MICROS:
            return midnight - timedelta(days=clock.weekday())
        return clock - (clock - midnight) % timedelta(microseconds=self.micros)

    def after(self, start: datetime) -> datetime:
        """The start of the period that follows the one that starts at ``start``."""
        if self.months:
            months = start.month - 1 + self.months
            return start.replace(year=start.year + months // 12, month=months % 12 + 1)
        return start + timedelta(microseconds=self.micros)


def to_unit(every: Any) -> Unit:
    """Converts ``every`` to a unit; InvalidOptionError for a length that the days of a calendar do not have."""
    text = every.strip().lower() if isinstance(every, str) else ""
    name = text.removeprefix("1 ")
    if name in _MONTHS:
        return Unit(_MONTHS[name] * 30 * DAY_MICROS, _MONTHS[name])
    try:
        micros = to_required_interval(f"1 {name}" if name.isalpha() else every, "every")
    except InvalidOptionError:
        micros = 0
    if micros == WEEK_MICROS or (micros >= SECOND_MICROS and micros % SECOND_MICROS == 0 and DAY_MICROS % micros == 0):
        return Unit(micros)
    raise InvalidOptionError(
        f"every={short_repr(every)} is not a period of a calendar. Give whole seconds that divide a day, such as "
        "'15 minutes', '1 hour' or '6 hours'; '1 day'; '1 week', from Monday; '1 month', '1 quarter' or '1 year'.",
        option="every",
        value=short_repr(every),
    )
