"""The aggregates over frames: which ones are supported, the types of their results, and their computation."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import (
    ByteType,
    DataType,
    DateType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from spark_rowtime.errors import InvalidOptionError
from spark_rowtime.operators.columns import twice
from spark_rowtime.operators.ranges import HOLISTIC, Array, combined, differences, whole_sums
from spark_rowtime.operators.sorted_rows import Index, Ranges
from spark_rowtime.types.short_repr import short_repr

FUNCTIONS = ("count", "sum", "avg", "min", "max", *HOLISTIC)
IN_SEQUENCE = ("first", "last")
"""The functions whose result depends on the order of rows with the same time."""
_WHOLE = (ByteType, ShortType, IntegerType, LongType)
_FLOATS = (FloatType, DoubleType)
_TIMES = (DateType, TimestampType, TimestampNTZType)
_UPPER_HALF = 2.0**32
_UPPER_LIMITS = np.iinfo(np.int32)


@dataclass(frozen=True)
class Aggregate:
    """One aggregate: ``function`` over ``column``, with Spark's type ``result``. For count, ``column`` may be "*".

    Results are those of Spark: nulls do not count (but first and last take them as values), a frame without
    values gives null (count gives 0), NaN is larger than all numbers, whole numbers sum to BIGINT and floats
    to DOUBLE.
    """

    name: str
    function: str
    column: str
    result: DataType

    def over(self, rows: pa.Table, ranges: Ranges) -> pa.Array:
        """Returns one value for each range of ``rows``, which are sorted by key and time."""
        low, high, _ = ranges
        if self.column == "*":
            return pa.array(high - low)
        values = rows.column(self.column)
        if self.function in HOLISTIC:
            return HOLISTIC[self.function](values, ranges)
        present = np.asarray(pc.is_valid(values)).astype(np.int64)
        counts = differences(present, low, high)
        if self.function == "count":
            return pa.array(counts)
        found = self._combine(_numbers(values, self.result), low, high)
        if self.function == "avg":
            found = found / np.maximum(counts, 1)
        return self._as_result(pa.array(found, mask=counts == 0), values.type)

    def _combine(self, values: pa.ChunkedArray, low: Index, high: Index) -> Array:
        if self.function in ("sum", "avg"):
            summed = _sums if self.function == "sum" else _totals
            return summed(pc.fill_null(values, 0).to_numpy(), low, high)
        floats, limits = pa.types.is_floating(values.type), np.iinfo(np.int64)
        if self.function == "max":
            least = -np.inf if floats else limits.min
            return combined(pc.fill_null(values, least).to_numpy(), low, high, np.maximum, least)
        # NaN is the largest value: fmin returns it only if there is no other.
        most = np.nan if floats else limits.max
        return combined(pc.fill_null(values, most).to_numpy(), low, high, np.fmin, most)

    def _as_result(self, found: pa.Array, source: pa.DataType) -> pa.Array:
        if isinstance(self.result, DateType):
            found = found.cast(pa.int32())
        return found.cast(source if self.function in ("min", "max") else found.type)


def aggregates(asked: Mapping[str, tuple[str, str]], schema: StructType) -> list[Aggregate]:
    """Returns the requested aggregates over rows of ``schema``. Raises InvalidOptionError if one is not possible."""
    if not isinstance(asked, Mapping) or not all(map(_is_one, asked.items())):
        raise InvalidOptionError(
            f"aggregates={short_repr(asked)} must be a dict such as {{'avgUnits': ('avg', 'units')}}.",
            option="aggregates",
        )
    if not asked:
        raise InvalidOptionError("aggregates is empty. Give for example {'avgUnits': ('avg', 'units')}.")
    if (name := twice(asked, schema.names)) is not None:
        raise InvalidOptionError(f"aggregates: there is already a column {name!r}. Give the result another name.")
    return [_aggregate(name, what, schema) for name, what in asked.items()]


def _is_one(asked: tuple[Any, Any]) -> bool:
    match asked:
        case (str(), (str(), str())):
            return True
    return False


def _aggregate(name: str, what: tuple[str, str], schema: StructType) -> Aggregate:
    function, column = what
    if function not in FUNCTIONS:
        raise InvalidOptionError(
            f"aggregates: {function!r} is not one of {', '.join(FUNCTIONS)}.", option="aggregates", value=repr(function)
        )
    if function == "count" and column == "*":
        return Aggregate(name, function, column, LongType())
    if column not in schema.names:
        raise InvalidOptionError(f"aggregates: {name!r} is over {column!r}, but the columns are {schema.names}.")
    return Aggregate(name, function, column, _result(function, column, schema[column].dataType))


def _result(function: str, column: str, source: DataType) -> DataType:
    if function == "count" or (function == "rank" and isinstance(source, _WHOLE + _FLOATS + _TIMES)):
        return LongType()
    if function == "median" and isinstance(source, _WHOLE + _FLOATS):
        return DoubleType()
    if function in IN_SEQUENCE:
        return source
    if function in ("min", "max") and isinstance(source, _WHOLE + _FLOATS + _TIMES):
        return source
    if function in ("sum", "avg") and isinstance(source, _WHOLE + _FLOATS):
        return LongType() if function == "sum" and isinstance(source, _WHOLE) else DoubleType()
    raise InvalidOptionError(
        f"aggregates: {function} of {column!r} is not possible for {source.simpleString()}; it takes integers and "
        "floats (min, max and rank also times; first and last any type). Cast the column first: a decimal to "
        "DOUBLE, or multiplied by 100 to BIGINT.",
        column=column,
    )


def _numbers(values: pa.ChunkedArray, result: DataType) -> pa.ChunkedArray:
    if isinstance(result, DateType):
        values = values.cast(pa.int32())
    if pa.types.is_floating(values.type):
        return values if isinstance(result, FloatType) else values.cast(pa.float64())
    return values.cast(pa.int64())


def _sums(values: Array, low: Index, high: Index) -> Array:
    if values.dtype != np.int64:
        return combined(values, low, high, np.add, 0)
    upper, _ = whole_sums(values, low, high)
    if (upper < _UPPER_LIMITS.min).any() or (upper > _UPPER_LIMITS.max).any():
        raise OverflowError("a sum of integers does not fit into BIGINT; cast the column to DOUBLE first.")
    return differences(values, low, high)  # right without the check of each step: what overflows comes back


def _totals(values: Array, low: Index, high: Index) -> Array:
    """Returns the sums as floats, for averages: a sum that does not fit into BIGINT can have an average that does."""
    if values.dtype != np.int64:
        return combined(values, low, high, np.add, 0)
    upper, lower = whole_sums(values, low, high)
    found: Array = upper * _UPPER_HALF + lower
    return found
