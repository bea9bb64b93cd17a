"""What a message of a watched topic says of later ones: the least time that they may have."""

from collections.abc import Callable
from datetime import tzinfo
from typing import Any

from spark_rowtime.errors import InvalidOptionError
from spark_rowtime.kafka.decoding import MESSAGE_TIME, Decoder, bound_function, time_of_record
from spark_rowtime.kafka.malformed import MalformedError
from spark_rowtime.kafka.topic_adapter import ROWS
from spark_rowtime.kafka.watermarks import FORMATS, bound_of
from spark_rowtime.types.short_repr import short_repr
from spark_rowtime.types.timestamps import SECOND_MICROS, to_micros

Floor = Callable[[Any], int | None]
"""Takes a message; returns the floor of later ones in microseconds, None if it says nothing. Raises MalformedError."""


def message_floor(bounds: Any, records: Decoder, rowtime: str, unit: str | None, zone: tzinfo, lateness: int) -> Floor:
    """Returns the function that says what a message promises.

    ``zone`` is that of texts without one; ``lateness`` is in microseconds. Both are for "rows".
    """
    if bounds == ROWS:
        return _within_range(_of_time(records, rowtime, unit, zone, lateness))
    bound_of = _of_format(records, bounds) if isinstance(bounds, str) else bound_function(bounds)

    def floor(message: Any) -> int | None:
        bound = bound_of(message)
        return None if bound is None else bound.floor

    return _within_range(floor)


def _within_range(floor_of: Floor) -> Floor:
    """The function, for which a time that is no rowtime, such as Go's of the year 1, is one of a malformed message."""

    def floor(message: Any) -> int | None:
        try:
            return floor_of(message)
        except InvalidOptionError as error:
            raise MalformedError(str(error)) from None

    return floor


def _of_time(records: Decoder, rowtime: str, unit: str | None, zone: tzinfo, lateness: int) -> Floor:
    """A message at a time says that later ones are not further than ``lateness`` below it. A tombstone says nothing."""
    time_of = time_of_record(rowtime, unit)
    if rowtime == MESSAGE_TIME:
        return lambda message: to_micros(time_of(message, None)) - lateness

    def floor(message: Any) -> int | None:
        if message.value() is None:
            return None
        micros = to_micros(time_of(message, _record(records, message)), zone)
        return (_by_double(micros) if unit == "s" else micros) - lateness

    return floor


def _by_double(micros: int) -> int:
    """The time that Spark makes of a DOUBLE with the seconds, if that is earlier."""
    return min(micros, int(micros / SECOND_MICROS * SECOND_MICROS))


def _of_format(records: Decoder, bounds: str) -> Callable[[Any], Any]:
    watermark = FORMATS[bounds]
    return lambda message: None if message.value() is None else bound_of(watermark, _record(records, message), message)


def _record(records: Decoder, message: Any) -> dict[str, Any]:
    record = records(message)
    if type(record) is dict:
        return record
    raise MalformedError(f"its value {short_repr(record)} is not a record with fields")
