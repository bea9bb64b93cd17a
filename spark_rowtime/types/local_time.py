"""LocalTime: what the times of rows mean that have no zone, where a producer has named one."""

from datetime import datetime, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute as pc

from spark_rowtime.errors import InvalidOptionError
from spark_rowtime.types.timestamps import both_readings, show_micros, to_datetime, to_micros, zone_named


class LocalTime:
    """Times without a zone as those of a named zone.

    Law: each is a time that the place's clocks showed exactly once, or it is refused. When a clock is put forward it
    leaves some out; when it is put back it shows some twice. Of those, ``datetime.fold=1`` names the second one.
    """

    def __init__(self, tz: str | tzinfo) -> None:
        self.zone = zone_named(tz)
        if not isinstance(self.zone, ZoneInfo) or not self.zone.key:
            raise InvalidOptionError(f"tz={tz!r} must name a time zone, such as 'Europe/Berlin'.", value=str(tz))
        self.name = self.zone.key

    def aware(self, value: Any) -> Any:
        """A time without a zone as a UTC datetime, anything else as it is. InvalidOptionError where it is refused."""
        try:
            moment = to_datetime(value)
        except InvalidOptionError:  # it is no time: whoever takes it says what it should be
            return value
        if moment.utcoffset() is not None:
            return value
        first, second = both_readings(moment, self.zone)
        if first > second:
            raise InvalidOptionError(
                f"{moment.isoformat()} does not exist in {self.name}: the clocks were put forward over it.",
                value=str(value),
            )
        if first < second and not moment.fold:
            raise InvalidOptionError(
                f"{moment.isoformat()} is there twice in {self.name}, whose clocks were put back: {_shown(first)} and "
                f"{_shown(second)}. Send it with its offset from UTC.",
                value=str(value),
            )
        return second

    def column(self, column: Any) -> Any:
        """An Arrow column of timestamps without a zone, likewise; ArrowInvalid where one is refused."""
        return pc.assume_timezone(column, self.name, ambiguous="raise", nonexistent="raise")


def is_naive(kind: pa.DataType) -> bool:
    """Whether it is Arrow's timestamp without a zone."""
    return bool(pa.types.is_timestamp(kind)) and kind.tz is None


def _shown(moment: datetime) -> str:
    return show_micros(to_micros(moment))
