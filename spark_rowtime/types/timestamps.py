"""Times and intervals in the one unit of this project: whole microseconds, UTC.

A time without a zone is in UTC, unless a zone is named. Finer digits are cut off towards the past, which is exact for
a strict bound and safe for the others.
"""

import re
import time
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from spark_rowtime.errors import InvalidOptionError
from spark_rowtime.types.short_repr import REPR_CHARACTERS, short_repr

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LEAST = 1
"""The first legal rowtime: Spark's watermark starts at the epoch, and rows that are not later would be lost."""
LARGEST = 253_402_300_799_999_998
"""The last legal rowtime: the end of the year 9999, less one microsecond for END."""
END = LARGEST + 1
"""The floor of a bound that no row can follow: the end of time, which only a complete producer promises."""

SECOND_MICROS, MINUTE_MICROS = 1_000_000, 60_000_000
HOUR_MICROS, DAY_MICROS, WEEK_MICROS = 60 * MINUTE_MICROS, 1440 * MINUTE_MICROS, 10_080 * MINUTE_MICROS
_MICROSECOND = timedelta(microseconds=1)
_UNITS = {
    **dict.fromkeys(("us", "microsecond", "microseconds"), 1),
    **dict.fromkeys(("ms", "millisecond", "milliseconds"), 1_000),
    **dict.fromkeys(("s", "sec", "second", "seconds"), SECOND_MICROS),
    **dict.fromkeys(("m", "min", "minute", "minutes"), MINUTE_MICROS),
    **dict.fromkeys(("h", "hour", "hours"), HOUR_MICROS),
    **dict.fromkeys(("d", "day", "days"), DAY_MICROS),
    **dict.fromkeys(("w", "week", "weeks"), WEEK_MICROS),
}
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d|[01]\d)(?::([0-5]?\d)(?::([0-5]\d))?)?")
"""An offset from UTC, as Spark writes it."""
_PART = re.compile(r"\s*([+-]?\d+(?:\.\d+)?)\s*([a-z]+)\s*", re.IGNORECASE)


def wall_clock() -> int:
    """The time now, in microseconds; the default wherever a clock can be injected."""
    return time.time_ns() // 1000


def to_micros(t: Any, tz: str | tzinfo | None = None) -> int:
    """Converts a time to microseconds since the epoch.

    Takes an aware or naive datetime, an ISO 8601 string, a pandas Timestamp or a pyarrow timestamp
    scalar. A naive time is in ``tz``, or in UTC. If the clocks of the zone showed it twice, it is the earlier moment
    (unless ``fold=1``); if they skipped it, it is the moment at which they were put forward. Raises
    InvalidOptionError for anything else and for times outside 1970-01-01T00:00:00.000001Z ..
    9999-12-31T23:59:59.999998Z.
    """
    moment = to_datetime(t)
    if moment.utcoffset() is None:
        moment = _in_zone(moment, zone_named(tz))
    try:
        micros = (moment - EPOCH) // _MICROSECOND
    except OverflowError:
        micros = LARGEST + 1
    return check_range(micros, t)


def check_range(micros: int, value: Any) -> int:
    """Returns ``micros`` if it is a legal rowtime; otherwise raises InvalidOptionError, which shows ``value``."""
    if LEAST <= micros <= LARGEST:
        return micros
    raise InvalidOptionError(
        f"{short_repr(value)} cannot be a rowtime: it must be later than 1970-01-01T00:00:00Z (Spark's "
        "watermark starts there and would silently drop earlier rows) and at most 9999-12-31T23:59:59.999998Z.",
        value=short_repr(value),
    )


def from_micros(micros: int) -> datetime:
    """The aware UTC datetime of ``micros``."""
    return EPOCH + timedelta(microseconds=micros)


def show_micros(micros: int | None) -> str:
    """ISO 8601 text with Z, with a fraction only if it is not zero; "none" for None."""
    if micros is None:
        return "none"
    return from_micros(micros).isoformat().replace("+00:00", "Z")


def show_interval(interval: timedelta) -> str:
    """An interval as "1 day", "2 days, 1:00:00" or "0:05:00"."""
    return str(interval).removesuffix(", 0:00:00")


def to_interval(value: str | timedelta | None, name: str) -> int | None:
    """Converts an interval (``"1 hour"``, ``"1 hour 30 minutes"``, ``"100 ms"`` or a timedelta) to microseconds.

    None stays None. ``name`` is the name of the value in errors. Raises InvalidOptionError for text that is no
    interval, for a negative interval, and for one that is longer than any distance between rowtimes.
    """
    return None if value is None else to_required_interval(value, name)


def to_required_interval(value: str | timedelta, name: str) -> int:
    """Does the same for an interval that must be given."""
    micros = to_signed_interval(value, name)
    if not 0 <= micros <= LARGEST:
        raise InvalidOptionError(
            f"{name} must not be negative, and not longer than the years 1970 to 9999, but is {value!r}.",
            option=name,
            value=str(value),
        )
    return micros


def to_signed_interval(value: str | timedelta, name: str) -> int:
    """Does the same for an interval that may be negative."""
    return value // _MICROSECOND if isinstance(value, timedelta) else _parse_interval(value, name)


def _parse_interval(text: Any, name: str) -> int:
    total, at = 0.0, 0
    plain = re.sub(r"^\s*interval\s+", "", text, flags=re.IGNORECASE) if isinstance(text, str) else ""
    for part in _PART.finditer(plain):
        if part.start() != at or part[2].lower() not in _UNITS:
            break
        total, at = total + float(part[1]) * _UNITS[part[2].lower()], part.end()
    if not plain or at != len(plain) or abs(total) > LARGEST:
        raise InvalidOptionError(
            f"{name}={short_repr(text)} is not an interval. Write a number and a unit, such as '1 hour', '100 ms' "
            "or '1 hour 30 minutes', or give a timedelta.",
            option=name,
            value=short_repr(text),
        )
    return round(total)


def to_datetime(t: Any) -> datetime:
    """Converts a time of any form that :func:`to_micros` takes to a datetime, cut to microseconds towards the past."""
    if isinstance(t, str):
        return _parse_iso(t)
    if hasattr(t, "as_py"):
        t = _from_arrow(t)
    if isinstance(t, datetime) and t == t:  # noqa: PLR0124  (pandas.NaT is a datetime unequal to itself)
        return t.to_pydatetime(warn=False) if hasattr(t, "to_pydatetime") else t
    if isinstance(t, datetime):
        raise InvalidOptionError("the time is missing (NaT). Give a time, or leave the row out.", value=short_repr(t))
    raise InvalidOptionError(
        f"{short_repr(t)} ({type(t).__name__}) is not a time. Give a datetime, an ISO 8601 string, or a pandas or "
        f"pyarrow timestamp.{_conversion(t)}",
        value=short_repr(t),
    )


def _conversion(t: Any) -> str:
    """How a number or a date, which say a time only together with a unit or a time of day, becomes a time."""
    if isinstance(t, int | float) and not isinstance(t, bool):
        return " Of seconds since 1970, datetime.fromtimestamp(seconds, UTC) makes one."
    if isinstance(t, date):
        return " Of a date, datetime.combine(day, time(), UTC) makes its first moment."
    return ""


def _from_arrow(scalar: Any) -> Any:
    import pyarrow as pa  # noqa: PLC0415  (imported only for Arrow scalars)

    if not pa.types.is_timestamp(scalar.type):
        return scalar.as_py()
    try:
        return scalar.cast(pa.timestamp("us", scalar.type.tz), safe=scalar.type.unit != "ns").as_py()
    except (pa.ArrowInvalid, OverflowError, ValueError):
        ticks = f"{scalar.value} of {scalar.type}"
        raise InvalidOptionError(f"{ticks} is out of the range of times.", value=ticks) from None


def _parse_iso(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text.strip())
    except ValueError as error:
        raise InvalidOptionError(
            f"{short_repr(text)} is not a time: {str(error)[:REPR_CHARACTERS]}. "
            "Write ISO 8601, such as '2006-09-11T12:05:00Z'.",
            value=short_repr(text),
        ) from None


def both_readings(moment: datetime, zone: tzinfo) -> tuple[datetime, datetime]:
    """A naive time on the clocks of ``zone``, converted to UTC with ``fold=0`` and with ``fold=1``.

    The two differ only at changes of the clocks: the first is the earlier one if the clocks showed the time twice,
    and the later one if they skipped it.
    """
    local = moment.replace(tzinfo=zone)
    return local.replace(fold=0).astimezone(UTC), local.replace(fold=1).astimezone(UTC)


def _in_zone(moment: datetime, zone: tzinfo) -> datetime:
    try:
        first, second = both_readings(moment, zone)
    except OverflowError:  # near the first or the last year of Python's datetime
        return moment.replace(tzinfo=UTC)
    if first > second:
        return change_between(second, first, zone)
    return second if moment.fold else first


def is_skipped(t: Any, tz: str | tzinfo | None) -> bool:
    """Whether ``t`` is a naive time that the clocks of ``tz`` skipped, so that :func:`to_micros` gives a later one."""
    moment = to_datetime(t)
    if moment.utcoffset() is not None:
        return False
    try:
        first, second = both_readings(moment, zone_named(tz))
    except OverflowError:
        return False
    return first > second


def change_between(before: datetime, after: datetime, zone: tzinfo) -> datetime:
    """The moment from which ``zone`` has another offset than at ``before``."""
    old = before.astimezone(zone).utcoffset()
    while after - before > _MICROSECOND:
        middle = before + (after - before) // 2
        before, after = (middle, after) if middle.astimezone(zone).utcoffset() == old else (before, middle)
    return after


def zone_named(tz: str | tzinfo | None) -> tzinfo:
    """The time zone of that name, or of an offset such as "+02:00"; a tzinfo unchanged; UTC for None."""
    if tz is None or tz == "Z":
        return UTC
    if isinstance(tz, tzinfo):
        return tz
    if isinstance(tz, str) and (offset := _OFFSET.fullmatch(tz)):
        hours, minutes, seconds = (int(part or 0) for part in offset.groups()[1:])
        east = timedelta(hours=hours, minutes=minutes, seconds=seconds)
        return timezone(east if offset[1] == "+" else -east)
    try:
        return ZoneInfo(tz)
    except (ZoneInfoNotFoundError, ValueError, TypeError, OSError):
        raise InvalidOptionError(
            f"tz={tz!r} is not a time zone. Give a name such as 'Europe/Berlin', or an offset such as '+02:00'.",
            value=tz,
        ) from None
