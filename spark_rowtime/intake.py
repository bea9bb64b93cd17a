"""Intake: what an adapter hands over, as rows of the stream's schema with a rowtime."""

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from spark_rowtime.errors import InvalidOptionError, SchemaMismatchError
from spark_rowtime.schema import TIMESTAMP, batch_to_schema, row_values, rows_to_batch, rowtime_micros
from spark_rowtime.store.base import Rejected
from spark_rowtime.timestamps import LEAST, from_micros, to_micros
from spark_rowtime.train import ROWTIME


class Values(NamedTuple):
    """One checked row: its rowtime in microseconds and all its values in schema order."""

    rowtime: int
    values: Sequence[Any]


_INT_RANGES = {pa.int8(): 1 << 7, pa.int16(): 1 << 15, pa.int32(): 1 << 31, pa.int64(): 1 << 63}


class Intake:
    """Turns rows of any accepted form into the stream's; raises SchemaMismatchError, takes nothing then.

    ``promoted``: the column that fills rowtime; ``now`` in microseconds; ``max_ahead``: see
    ``createStream``.
    """

    def __init__(self, schema: pa.Schema, promoted: str | None, now: Callable[[], int], max_ahead: int | None) -> None:
        if promoted is not None and (promoted == ROWTIME or promoted not in schema.names):
            raise InvalidOptionError(
                f"rowtime={promoted!r} is no column to fill rowtime from; there are {schema.names}."
            )
        self._schema, self._promoted, self._now, self._max_ahead = schema, promoted, now, max_ahead
        self._at = schema.get_field_index(ROWTIME)
        self._checks = [_plain_check(field) for field in schema]

    def row(self, row: Any, floor: int | None) -> Values:
        """One row. Values of plain Python types are checked by type alone, others by converting them."""
        row = self._with_rowtime(row, self._default(floor)) if _lacks_rowtime(row) else row
        values = list(row_values(row, 0, self._schema.names))
        rowtime = self._rowtime(values[self._at])
        for check, value in zip(self._checks, values, strict=True):
            if not check(value):
                values = copy.deepcopy(values)  # lists and the like stay the caller's
                self.batch([Values(rowtime, values)])
                break
        return Values(rowtime, values)

    def batch(self, rows: Sequence[Values]) -> pa.RecordBatch:
        """Checked rows as one batch."""
        return checked_batch(rows, self._schema)

    def rows(self, rows: pa.RecordBatch | pa.Table | Iterable[Any], floor: int | None) -> pa.RecordBatch:
        """Many rows as one batch, maybe empty."""
        if isinstance(rows, pa.RecordBatch | pa.Table):
            return batch_to_schema(self._arrow_with_rowtime(rows, floor), self._schema)
        if isinstance(rows, Mapping | str | bytes) or not isinstance(rows, Iterable):
            raise SchemaMismatchError(
                f"sendRows takes Arrow data or an iterable of rows, not a {type(rows).__name__}; sendRow takes one row."
            )
        default = self._default(floor)
        filled = [self._with_rowtime(row, default) if _lacks_rowtime(row) else row for row in rows]
        return rows_to_batch(filled, self._schema)

    def ahead(self, rowtime: int) -> bool:
        """Whether a row is further ahead of the wall clock than the stream allows."""
        return self._max_ahead is not None and rowtime > self._now() + self._max_ahead

    def split_ahead(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, list[Rejected]]:
        """The rows that are not too far ahead of the wall clock, and a rejection of those that are."""
        if self._max_ahead is None:
            return batch, []
        ceiling = self._now() + self._max_ahead
        fits = pc.less_equal(rowtime_micros(batch), ceiling)
        if pc.all(fits).as_py():
            return batch, []
        return batch.filter(fits), [Rejected("ahead", ceiling, batch.filter(pc.invert(fits)))]

    def _default(self, floor: int | None) -> datetime:
        """Now, but never below the bound in force; one for all rows of a call."""
        return from_micros(max(self._now(), floor or LEAST))

    def _with_rowtime(self, row: Mapping[Any, Any], default: datetime) -> Mapping[Any, Any]:
        if self._promoted is None:
            return {**row, ROWTIME: default}
        return {**row, ROWTIME: row[self._promoted]} if self._promoted in row else row

    def _arrow_with_rowtime(self, rows: pa.RecordBatch | pa.Table, floor: int | None) -> pa.RecordBatch | pa.Table:
        if ROWTIME in rows.schema.names:
            return rows
        if self._promoted in rows.schema.names:
            return rows.append_column(ROWTIME, rows.column(self._promoted))
        return rows.append_column(ROWTIME, pa.repeat(pa.scalar(self._default(floor), TIMESTAMP), rows.num_rows))

    def _rowtime(self, value: Any) -> int:
        try:
            return to_micros(value)
        except InvalidOptionError as error:
            raise SchemaMismatchError(f"rowtime is unusable: {error}", value=repr(value)) from None


def _lacks_rowtime(row: Any) -> bool:
    return isinstance(row, Mapping) and ROWTIME not in row


def checked_batch(rows: Sequence[Values], schema: pa.Schema) -> pa.RecordBatch:
    """Rows that Intake has checked, as one batch."""
    return rows_to_batch([row.values for row in rows], schema, [row.rowtime for row in rows])


def _plain_check(field: pa.Field) -> Callable[[Any], bool]:
    """A quick test that surely lets through only what Arrow will take for this column."""
    kind, nullable = field.type, field.nullable
    if field.name == ROWTIME:
        return lambda _: True
    if kind in _INT_RANGES:
        most = _INT_RANGES[kind]
        return lambda value: -most <= value < most if type(value) is int else value is None and nullable
    if kind == pa.string():
        return lambda value: value.isascii() if type(value) is str else value is None and nullable
    exact = {pa.float64(): float, pa.bool_(): bool, pa.binary(): bytes, TIMESTAMP: datetime}.get(kind)
    return lambda value: type(value) is exact or (value is None and nullable)
