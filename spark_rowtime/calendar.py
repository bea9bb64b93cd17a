"""Calendar: the periods, such as hours and days, that the clocks of a time zone show."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo

from spark_rowtime.periods import Unit
from spark_rowtime.types.timestamps import (
    DAY_MICROS,
    END,
    EPOCH,
    HOUR_MICROS,
    both_readings,
    change_between,
    from_micros,
)

_MICROSECOND = timedelta(microseconds=1)
_CYCLE_YEARS = 400
_CYCLE = 146_097 * DAY_MICROS
"""The calendar repeats itself after 400 years, weekdays and the rules of zones included. Python's datetime ends with
the year 9999, so the periods of its last years are computed a cycle earlier."""
_LAST_YEARS = 3 * 366 * DAY_MICROS


@dataclass(frozen=True, slots=True)
class Span:
    """A period as moments: from ``start`` to just before ``end``, in microseconds since the epoch.

    ``clock`` is the time, in the zone, by which the period is named.
    """

    start: int
    end: int
    clock: datetime


class Calendar:
    """Divides time into periods of a unit, which begin where the clocks of a zone say so.

    Laws (tests/announce/test_calendar.py, over many zones):

    - *partition*: each moment lies in one period, and the next one begins where a period ends.
    - *complete*: if ``merges`` is true, no moment from the end of a period on has a clock time that belongs to it, and
      no two periods have the same name.

    When clocks are put back, some clock times occur twice. If ``merges`` is false and the unit is an hour at most, the
    second occurrence is a period of its own: an hour is an hour long, and two have the same clock time. Otherwise both
    are in one period, which ends when none of its clock times can occur again; so a day may have 25 hours. A period
    that the clocks skip does not exist.
    """

    def __init__(self, unit: Unit, zone: tzinfo, *, merges: bool) -> None:
        self.unit, self.zone = unit, zone
        self._merges = merges or unit.micros > HOUR_MICROS

    def holding(self, moment: int) -> Span:
        """The period that contains ``moment``. The last one of the zone's year 9999 lasts until the end of time."""
        if moment < END - _LAST_YEARS:
            return self._period(moment)
        end = self._begin(datetime(10_000 - _CYCLE_YEARS, 1, 1))  # noqa: DTZ001  (a time on the zone's clocks)
        span = self._period(min(moment - _CYCLE, end - 1))
        clock = span.clock.replace(year=span.clock.year + _CYCLE_YEARS)
        return Span(span.start + _CYCLE, END if span.end >= end else min(span.end + _CYCLE, END), clock)

    def _period(self, moment: int) -> Span:
        return self._by_clock(moment) if self._merges else self._by_time(moment)

    def complete(self, moment: int, limit: int) -> Iterator[Span]:
        """Yields the periods from the one that contains ``moment`` on that end at ``limit`` at the latest."""
        while moment < END and (span := self.holding(moment)).end <= limit:
            yield span
            moment = span.end

    def _by_clock(self, moment: int) -> Span:
        first = self.unit.floor(self._least_later(moment))
        return Span(self._begin(first), self._begin(self.unit.after(first)), first.replace(tzinfo=self.zone))

    def _least_later(self, moment: int) -> datetime:
        """The least clock time from ``moment`` on: that of the moment, or the one to which the clocks go back."""
        clock = self._local(moment).replace(tzinfo=None, fold=0)
        if self._offset(moment + DAY_MICROS) >= self._offset(moment):
            return clock
        change = self._change(moment, moment + DAY_MICROS)
        return min(clock, self._local(change).replace(tzinfo=None, fold=0))

    def _begin(self, clock: datetime) -> int:
        """The moment from which all clock times are at or after ``clock``."""
        first, second = both_readings(clock, self.zone)
        if first > second:  # skipped
            return _micros(change_between(second, first, self.zone))
        if first == second:
            return _micros(first)
        change = change_between(first, second, self.zone)
        back_to = change.astimezone(self.zone).replace(tzinfo=None, fold=0)
        return _micros(first if back_to >= clock else second)

    def _by_time(self, moment: int) -> Span:
        start, end = self._start(moment), self._end(moment)
        local = self._local(start)
        clock = self.unit.floor(local.replace(tzinfo=None, fold=0))
        return Span(start, end, clock.replace(tzinfo=self.zone, fold=local.fold))

    def _start(self, moment: int) -> int:
        offset = self._offset(moment)
        start = moment - (moment + offset) % self.unit.micros
        if self._offset(start) == offset:
            return start
        change = self._change(start, moment)
        return change if self._begins_at(change) else self._start(change - 1)

    def _end(self, moment: int) -> int:
        offset = self._offset(moment)
        end = moment - (moment + offset) % self.unit.micros + self.unit.micros
        if self._offset(end) == offset:
            return end
        change = self._change(moment, end)
        return change if self._begins_at(change) else self._end(change)

    def _begins_at(self, change: int) -> bool:
        """Whether a period begins where the offset changes: the clocks then show its start, or have skipped it."""
        before, after = change - 1 + self._offset(change - 1), change + self._offset(change)
        return after % self.unit.micros == 0 or after // self.unit.micros > before // self.unit.micros

    def _change(self, before: int, after: int) -> int:
        """The moment between two, with different offsets, from which the offset is another one."""
        return _micros(change_between(from_micros(before), from_micros(after), self.zone))

    def _offset(self, moment: int) -> int:
        offset = self._local(moment).utcoffset()
        assert offset is not None
        return offset // _MICROSECOND

    def _local(self, moment: int) -> datetime:
        return from_micros(moment).astimezone(self.zone)


def _micros(moment: datetime) -> int:
    return (moment - EPOCH) // _MICROSECOND
