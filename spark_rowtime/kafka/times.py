"""Times in messages: ISO 8601 texts, and numbers in a unit."""

from collections.abc import Callable, Mapping
from datetime import datetime
from decimal import MAX_EMAX, MIN_EMIN, ROUND_FLOOR, Context, Decimal, InvalidOperation
from typing import Any

from spark_rowtime.errors import InvalidOptionError
from spark_rowtime.kafka.malformed import MalformedError
from spark_rowtime.types.arguments import is_whole, to_choice
from spark_rowtime.types.short_repr import short_repr
from spark_rowtime.types.timestamps import check_range, from_micros, to_datetime

TSO_LOGICAL_BITS = 18
"""TiDB's timestamps are milliseconds, followed by so many bits of a counter."""

LARGEST_POWER = 30
"""No time in any unit has more digits."""


_FLOORING = Context(prec=100, rounding=ROUND_FLOOR, Emin=MIN_EMIN, Emax=MAX_EMAX)


def time_reader(unit: str | None) -> Callable[[Any], datetime]:
    """Returns the function that reads a time in this unit from a message; it raises MalformedError.

    None: an ISO 8601 text. "s", "ms", "us", "ns": a number since 1970. "hlc": CockroachDB's ``updated``, nanoseconds
    with a counter behind the point. "tso": TiDB's commit timestamp. Times are cut to microseconds towards the past.
    """
    if unit is None:
        return _text
    micros = _UNITS[to_choice(unit, "timeUnit", *_UNITS)]

    def read(value: Any) -> datetime:
        try:
            return from_micros(check_range(micros(value), value))
        except (ValueError, ArithmeticError, InvalidOptionError):
            raise MalformedError(f"{short_repr(value)} is not a time in the unit {unit!r}") from None

    return read


def _text(value: Any) -> datetime:
    try:
        return datetime.fromisoformat(value)
    except (ValueError, TypeError):
        return _other(value)


def _other(value: Any) -> datetime:
    if isinstance(value, int | float | Decimal):
        raise MalformedError(f"its time is the number {short_repr(value)}; set timeUnit, such as 'ms'")
    try:
        return to_datetime(value)
    except InvalidOptionError as error:
        raise MalformedError(str(error)) from None


def _scaled(power: int) -> Callable[[Any], int]:
    def micros(value: Any) -> int:
        if is_whole(value):
            return value * 10**power if power >= 0 else int(value // 10**-power)
        if not isinstance(value, float | Decimal) or (number := Decimal(str(value))).adjusted() > LARGEST_POWER:
            raise InvalidOperation
        return int(number.scaleb(power, _FLOORING).__floor__())

    return micros


def _hlc(value: Any) -> int:
    if not isinstance(value, str):
        raise InvalidOperation
    whole, _, logical = value.partition(".")
    if not (whole.isascii() and whole.isdecimal() and (logical or "0").isdecimal()):
        raise InvalidOperation
    return int(whole) // 1000


def _tso(value: Any) -> int:
    if not is_whole(value):
        raise InvalidOperation
    return (value >> TSO_LOGICAL_BITS) * 1000


_UNITS: Mapping[str, Callable[[Any], int]] = {
    "s": _scaled(6),
    "ms": _scaled(3),
    "us": _scaled(0),
    "ns": _scaled(-3),
    "hlc": _hlc,
    "tso": _tso,
}
