"""Columns that rise with time: times, dates and integers, each as whole numbers of its own unit."""

from datetime import timedelta

import pyarrow as pa

from spark_rowtime.errors import InvalidOptionError
from spark_rowtime.types.arguments import to_count
from spark_rowtime.types.timestamps import DAY_MICROS, EPOCH, show_micros, to_required_interval

Amount = str | timedelta | int
"""How far a column may fall back: an interval for times and dates, a whole number for integers."""


def to_amount(field: pa.Field, value: Amount) -> int:
    """Converts ``value`` to the unit of the column: microseconds, days, or a plain number."""
    name = f"lateness of {field.name!r}"
    if pa.types.is_integer(field.type):
        return _to_whole(value, name)
    if not (pa.types.is_timestamp(field.type) or pa.types.is_date32(field.type)):
        raise InvalidOptionError(
            f"{name} is not possible: the column is {field.type}. lateness needs a TIMESTAMP, DATE or integer column.",
            column=field.name,
        )
    if isinstance(value, int):
        raise InvalidOptionError(
            f"{name}={value!r} must be an interval, such as '1 hour': the column is {field.type}.",
            option=name,
            value=repr(value),
            column=field.name,
        )
    micros = to_required_interval(value, name)
    if pa.types.is_date32(field.type) and micros % DAY_MICROS:
        raise InvalidOptionError(
            f"{name}={value!r} must be whole days, such as '2 days': the column is a DATE.",
            option=name,
            value=repr(value),
            column=field.name,
        )
    return micros // DAY_MICROS if pa.types.is_date32(field.type) else micros


def _to_whole(value: Amount, name: str) -> int:
    if isinstance(value, str) and value.strip().isdecimal():
        value = int(value)
    return to_count(value, name)


def whole_numbers(column: pa.Array) -> pa.Array:
    """The values as 64-bit numbers of the column's unit."""
    if pa.types.is_timestamp(column.type):
        return column.view(pa.int64())
    return (column.view(pa.int32()) if pa.types.is_date32(column.type) else column).cast(pa.int64())


def show_number(kind: pa.DataType, number: int) -> tuple[str, int | None]:
    """The text of a value of a column of type ``kind``, and, if it is a time or a date, its rowtime in microseconds."""
    if pa.types.is_timestamp(kind):
        return show_micros(number), number
    if pa.types.is_date32(kind):
        return (EPOCH + timedelta(days=number)).date().isoformat(), number * DAY_MICROS
    return str(number), None
