"""LocalTime: interprets row times without a zone in the zone that a producer has named."""

from datetime import datetime, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute as pc

from spark_rowtime.errors import InvalidOptionError
from spark_rowtime.types.timestamps import both_readings, show_micros, to_datetime, to_micros, zone_named

NAIVE_MICROS, UTC_MICROS = pa.timestamp("us"), pa.timestamp("us", "UTC")
TABLE_END_MICROS = 2_114_380_800_000_000
"""2037-01-01. Arrow knows the clock changes that a zone's file lists, up to then, but not its rule for later ones."""


class LocalTime:
    """Interprets times without a zone as times of a named zone.

    Law: a time is accepted only if the clocks of the zone showed it exactly once. A clock that is put forward skips
    some times; a clock that is put back shows some times twice. ``datetime.fold=1`` names the second of two such times
    and is accepted.
    """

    def __init__(self, tz: str | tzinfo) -> None:
        self.zone = zone_named(tz)
        if not isinstance(self.zone, ZoneInfo) or not self.zone.key:
            raise InvalidOptionError(f"tz={tz!r} must name a time zone, such as 'Europe/Berlin'.", value=str(tz))
        self.name = self.zone.key

    def aware(self, value: Any) -> Any:
        """A time without a zone as a UTC datetime, any other value unchanged; InvalidOptionError if it is refused."""
        try:
            moment = to_datetime(value)
        except InvalidOptionError:  # not a time: the check of the row's values reports it
            return value
        if moment.utcoffset() is not None:
            return value
        try:
            first, second = both_readings(moment, self.zone)
        except OverflowError:
            raise InvalidOptionError(
                f"{moment.isoformat()} in {self.name} lies outside the years 1 to 9999 in UTC.", value=str(value)
            ) from None
        if first > second:
            raise InvalidOptionError(
                f"{moment.isoformat()} does not exist in {self.name}: the clocks were put forward past it. By "
                f"the clock before the change it is {_shown(first)}, by the one after it {_shown(second)}. Send it "
                "with its offset from UTC.",
                value=str(value),
            )
        if first < second and not moment.fold:
            raise InvalidOptionError(
                f"{moment.isoformat()} occurs twice in {self.name}, because the clocks were put back: "
                f"{_shown(first)} and {_shown(second)}. Send it with its offset from UTC.",
                value=str(value),
            )
        return second

    def column(self, column: Any) -> Any:
        """Does the same for an Arrow column of timestamps without a zone; ArrowInvalid if one is refused."""
        micros = column.cast(NAIVE_MICROS, safe=False)
        if (pc.max(micros.cast(pa.int64())).as_py() or 0) < TABLE_END_MICROS:
            return pc.assume_timezone(column, self.name, ambiguous="raise", nonexistent="raise")
        try:
            aware = pa.array([self.aware(time) for time in micros.to_pylist()], UTC_MICROS)
        except InvalidOptionError as error:
            raise pa.ArrowInvalid(str(error)) from None
        return pa.chunked_array([aware]) if isinstance(column, pa.ChunkedArray) else aware


def is_naive(kind: pa.DataType) -> bool:
    """Whether ``kind`` is Arrow's timestamp without a zone."""
    return bool(pa.types.is_timestamp(kind)) and kind.tz is None


def _shown(moment: datetime) -> str:
    return show_micros(to_micros(moment))
