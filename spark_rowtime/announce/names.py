"""The names of periods: formats such as %Y-%m-%dT%H, which must tell all periods of a unit apart."""

import re
from collections.abc import Iterator
from datetime import datetime, timedelta

from spark_rowtime.errors import InvalidOptionError
from spark_rowtime.periods import Unit
from spark_rowtime.types.timestamps import DAY_MICROS

_DIRECTIVE = re.compile(r"%(.?)", re.DOTALL)
_DIRECTIVES = "YmdHMSjGVuz%"
_FIRST_DAY, _DAYS = datetime(2023, 1, 1), 29 * 366  # noqa: DTZ001  (a time on the face of a clock)
"""After 28 years the days of years and weeks come again together."""
_FINER = "Add what is missing, such as %Y-%m-%dT%H:%M, or choose longer periods"


class PeriodName:
    """A format of names, with directives of ``strftime`` that do not depend on the locale.

    Law: two periods of ``unit`` have different names. A second hour with the same clock time, after clocks were put
    back, gets the offset from UTC behind its name, as in Dagster, unless the format has it already.
    """

    def __init__(self, pattern: str, option: str, unit: Unit) -> None:
        self.pattern, self._option = pattern, option
        self._require_known()
        self._require_distinct(unit)
        self.hasOffset = "z" in _DIRECTIVE.findall(pattern)

    def of(self, clock: datetime) -> str:
        """The name of the period that begins at the aware time ``clock``."""
        return clock.strftime(self.pattern + ("%z" if clock.fold and not self.hasOffset else ""))

    def _require_known(self) -> None:
        unknown = [letter for letter in _DIRECTIVE.findall(self.pattern) if not letter or letter not in _DIRECTIVES]
        if unknown:
            known = " ".join(f"%{letter}" for letter in _DIRECTIVES)
            raise InvalidOptionError(
                f"{self._option}={self.pattern!r} has %{unknown[0]}, which is not one of {known}. Write %% for a "
                "percent sign.",
                option=self._option,
                value=self.pattern,
            )

    def _require_distinct(self, unit: Unit) -> None:
        seen: dict[str, datetime] = {}
        for clock in _samples(unit):
            same = seen.setdefault(clock.strftime(self.pattern), clock)
            if same != clock:
                raise InvalidOptionError(
                    f"{self._option}={self.pattern!r} gives two periods of {unit.name} the same name: those of {same} "
                    f"and of {clock}. {_FINER}.",
                    option=self._option,
                    value=self.pattern,
                )


def _samples(unit: Unit) -> Iterator[datetime]:
    """The starts of all periods of a day, and of those of all days of some years: what a name must tell apart."""
    day = Unit(max(unit.micros, DAY_MICROS), unit.months)
    yield from _starts(unit, _FIRST_DAY, 1)
    yield from _starts(day, _FIRST_DAY + timedelta(days=1), _DAYS)


def _starts(unit: Unit, first: datetime, days: int) -> Iterator[datetime]:
    clock, end = unit.floor(first), first + timedelta(days=days)
    while clock < end:
        yield clock
        clock = unit.after(clock)
