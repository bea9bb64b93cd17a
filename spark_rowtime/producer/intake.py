"""Intake: converts what an adapter sends into rows of the stream's schema, each with a rowtime."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import pyarrow as pa

from spark_rowtime.bounds.train import Timed
from spark_rowtime.errors import InvalidOptionError, SchemaMismatchError
from spark_rowtime.producer.row_buffer import RowBuffer
from spark_rowtime.types.checks import is_valid
from spark_rowtime.types.local_time import LocalTime, is_naive
from spark_rowtime.types.schema import ROWTIME, TIMESTAMP, batch_to_schema, rows_to_batch
from spark_rowtime.types.timestamps import LARGEST, LEAST, from_micros, to_datetime
from spark_rowtime.types.values import named


class Intake:
    """Converts rows of any accepted form; raises SchemaMismatchError, and then takes none of the rows.

    ``promoted``: the column that fills rowtime; ``now`` returns microseconds; ``local``: the zone of times that have
    none, None: UTC.
    """

    def __init__(
        self,
        schema: pa.Schema,
        promoted: str | None,
        now: Callable[[], int],
        local: LocalTime | None = None,
    ) -> None:
        if promoted is not None and (promoted == ROWTIME or promoted not in schema.names):
            raise InvalidOptionError(
                f"rowtime={promoted!r} is not a column that can fill rowtime. The columns are {schema.names}.",
                option="rowtime",
            )
        self._schema, self._promoted, self._now = schema, promoted, now
        self._at = schema.get_field_index(ROWTIME)
        self._not_null = [i for i, field in enumerate(schema) if not field.nullable and i != self._at]
        self._flat = all(_is_flat(field.type) for field in schema if field.name != ROWTIME)
        self._like = schema
        self._buffer = RowBuffer(schema, rises=False, naive=local is None)
        self.gives: bool | None = None
        """True if this sink gives rows the time now, False if rows bring their rowtime, None before the first row."""
        self._now_gives = False
        self._local = local
        self._zoned = [(i, field.name) for i, field in enumerate(schema) if field.type == TIMESTAMP]
        if local is not None:
            _refuse_nested_times(schema)

    def row(self, row: Any, floor: int | None) -> Any:
        """Returns one row as a plain mapping or sequence whose rowtime is a datetime, if it can be converted."""
        row = named(row)
        self._check_kinds([_lacks_rowtime(row)])
        if isinstance(row, Mapping):
            row = self._with_rowtime(row, self._default(floor)) if ROWTIME not in row else dict(row)
            row = self._placed(row, 0)
            return {**row, ROWTIME: _as_datetime(row[ROWTIME])} if ROWTIME in row else row
        if isinstance(row, Sequence) and not isinstance(row, str | bytes) and len(row) > self._at:
            row = self._placed(row, 0)
            return [*row[: self._at], _as_datetime(row[self._at]), *row[self._at + 1 :]]
        return row

    def checked(self, row: Any) -> Timed:
        """Converts one row that ``row`` returned into a batch, and checks it."""
        return Timed(rows_to_batch([row], self._schema))

    def rows(self, rows: pa.RecordBatch | pa.Table | Iterable[Any], floor: int | None) -> Timed | None:
        """Converts many rows into one batch; None if there are none.

        The schema of the batch may declare a column nullable that is NOT NULL in the stream.
        """
        timed = self._as_is(rows) if isinstance(rows, pa.RecordBatch) else None
        if timed is not None:
            self._check_kinds([False])
            return timed
        batch = self._as_batch(rows, floor)
        return Timed(batch) if batch.num_rows else None

    def _as_batch(self, rows: pa.RecordBatch | pa.Table | Iterable[Any], floor: int | None) -> pa.RecordBatch:
        if isinstance(rows, pa.RecordBatch | pa.Table):
            self._check_kinds([ROWTIME not in rows.schema.names] * bool(rows.num_rows))
            return batch_to_schema(self._arrow_placed(self._arrow_with_rowtime(rows, floor)), self._schema)
        frame = type(rows).__name__ == "DataFrame"
        if frame or isinstance(rows, Mapping | str | bytes) or not isinstance(rows, Iterable):
            raise SchemaMismatchError(
                f"sendRows takes Arrow data or an iterable of rows, not a {type(rows).__name__}; {_advice(rows)}."
            )
        given = [named(row) for row in rows]
        lacks = [_lacks_rowtime(row) for row in given]
        self._check_kinds(lacks)
        default = self._default(floor)
        filled = [self._with_rowtime(row, default) if lack else row for row, lack in zip(given, lacks, strict=True)]
        placed = filled if self._local is None else [self._placed(row, at) for at, row in enumerate(filled)]
        return self._plain(placed) or rows_to_batch(placed, self._schema)

    def taken(self) -> None:
        """Records that the rows of the last call were taken."""
        self.gives = self._now_gives

    def _check_kinds(self, lacks: list[bool]) -> None:
        """Raises SchemaMismatchError if some rows of this sink have a rowtime and others do not.

        ``lacks``: for each row, whether it has no rowtime.
        """
        if self._promoted is not None or not lacks:
            return
        first = lacks[0] if self.gives is None else self.gives
        if (not first) in lacks:
            raise _of_both_kinds(lacks.index(not first), gives=not first)
        self._now_gives = first

    def _placed(self, row: Any, at: int) -> Any:
        """Row number ``at`` with its naive times placed in the producer's zone; values of no row form unchanged."""
        if self._local is None or not isinstance(row, Mapping | Sequence) or isinstance(row, str | bytes):
            return row
        names = isinstance(row, Mapping)
        placed: Any = dict(row) if isinstance(row, Mapping) else list(row)
        for i, name in self._zoned:
            key = name if names else i
            if (name in row) if names else (i < len(row)):
                placed[key] = self._aware(placed[key], name, at)
        return placed

    def _aware(self, value: Any, column: str, at: int) -> Any:
        assert self._local is not None
        try:
            return self._local.aware(value)
        except InvalidOptionError as error:
            raise SchemaMismatchError(f"Row {at}: {column}: {error}", row=at, column=column) from None

    def _arrow_placed(self, rows: pa.RecordBatch | pa.Table) -> pa.RecordBatch | pa.Table:
        """Does the same for Arrow data."""
        for _, name in self._zoned if self._local is not None else ():
            at = rows.schema.get_field_index(name)
            if at < 0 or not is_naive(kind := _value_type(rows.schema.field(at).type)):
                continue
            try:
                rows = rows.set_column(at, name, self._local.column(rows.column(at).cast(kind)))  # type: ignore[union-attr]
            except pa.ArrowInvalid as error:
                raise SchemaMismatchError(
                    f"Column {name!r}: {' '.join(str(error).split())}. Send times with their offset from UTC.",
                    column=name,
                ) from None
        return rows

    def _as_is(self, batch: pa.RecordBatch) -> Timed | None:
        """The batch, if it has the stream's columns and is valid; otherwise None. This takes a few microseconds."""
        if not batch.num_rows or not self._alike(batch.schema) or not is_valid(batch):
            return None
        for i in self._not_null:
            if batch.column(i).null_count:
                return None
        try:
            timed = Timed(batch)
        except pa.ArrowInvalid:  # a rowtime is null
            return None
        return timed if timed.least >= LEAST and timed.largest <= LARGEST else None

    def _alike(self, given: pa.Schema) -> bool:
        """Whether the names and types are the stream's, all flat; the contents of nested columns need a check."""
        if not self._flat or (
            not given.equals(self._like)
            and [(f.name, f.type) for f in given] != [(f.name, f.type) for f in self._schema]
        ):
            return False
        self._like = given
        return True

    def _plain(self, rows: Sequence[Any]) -> pa.RecordBatch | None:
        """Rows of plain Python values as a batch; None if a row has other values."""
        self._buffer.open(None, None, len(rows))
        try:
            if all(map(self._buffer.take, rows)):
                batches = self._buffer.drain()
                return batches[0] if len(batches) == 1 else None
            return None
        finally:
            self._buffer.clear()

    def _default(self, floor: int | None) -> datetime:
        """The time now, but never below the bound in force; all rows of a call get the same time."""
        return from_micros(max(self._now(), floor or LEAST))

    def _with_rowtime(self, row: Mapping[Any, Any], default: datetime) -> Mapping[Any, Any]:
        if self._promoted is None:
            return {**row, ROWTIME: default}
        return {**row, ROWTIME: row[self._promoted]} if self._promoted in row else row

    def _arrow_with_rowtime(self, rows: pa.RecordBatch | pa.Table, floor: int | None) -> pa.RecordBatch | pa.Table:
        if ROWTIME in rows.schema.names:
            return rows
        if self._promoted is not None:
            has = self._promoted in rows.schema.names
            return rows.append_column(ROWTIME, rows.column(self._promoted)) if has else rows
        return rows.append_column(ROWTIME, pa.repeat(pa.scalar(self._default(floor), TIMESTAMP), rows.num_rows))


def _advice(rows: Any) -> str:
    """What to do with a value that is no rows."""
    if type(rows).__name__ != "DataFrame":
        return "sendRow takes one row"
    if hasattr(rows, "to_arrow"):
        return "df.to_arrow() converts it to Arrow"
    if hasattr(rows, "toArrow"):
        return "df.write.format('rowtime') writes it, and df.toArrow() brings its rows here as Arrow"
    return "pa.Table.from_pandas(df, preserve_index=False) converts it to Arrow"


def gathered(rows: Any) -> Any:
    """The rows of an iterable, such as a generator, as a list; all other values unchanged.

    An iterable runs code of the user, which may block: it is read before the sink takes its lock.
    """
    if isinstance(rows, pa.RecordBatch | pa.Table | Mapping | str | bytes) or not isinstance(rows, Iterable):
        return rows
    return rows if type(rows).__name__ == "DataFrame" else list(rows)


def _of_both_kinds(at: int, *, gives: bool) -> SchemaMismatchError:
    """The error for row number ``at``, the first that differs from earlier rows in having a rowtime.

    ``gives``: the row has no rowtime, so that the sink would give it the time now.
    """
    earlier = "had one" if gives else "had none, so each got the time now"
    return SchemaMismatchError(
        f"Row {at} comes {'without' if gives else 'with'} a rowtime, but earlier rows of this sink {earlier}. Give "
        "a rowtime in each row of a sink or in none, or name the column that holds the time (openSink(rowtime=...)).",
        row=at,
        column=ROWTIME,
    )


def _refuse_nested_times(schema: pa.Schema) -> None:
    nested = [field.name for field in schema if field.type != TIMESTAMP and str(TIMESTAMP) in str(field.type)]
    if nested:
        raise InvalidOptionError(
            f"tz is for TIMESTAMP columns; {nested} have TIMESTAMPs within a STRUCT, ARRAY or MAP. Leave tz out, and "
            "send times with their offset from UTC.",
            columns=nested,
        )


def _lacks_rowtime(row: Any) -> bool:
    return isinstance(row, Mapping) and ROWTIME not in row


def _as_datetime(value: Any) -> Any:
    """A rowtime of another form as a datetime; a value that is no time unchanged, since it is refused later."""
    try:
        return to_datetime(value)
    except InvalidOptionError:
        return value


def _is_flat(kind: pa.DataType) -> bool:
    types = pa.types
    numbers = types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind) or types.is_boolean(kind)
    return bool(numbers) or kind in (pa.string(), pa.binary())


def _value_type(kind: pa.DataType) -> pa.DataType:
    """The type of the values, also of a column that has them in a dictionary."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind
