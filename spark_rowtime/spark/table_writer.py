"""tableWriter: puts a query's batches, with their bounds, into commits of a Delta or Iceberg table."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import SparkContext
from pyspark.sql import DataFrame

from spark_rowtime.bounds.bound import RowtimeBound
from spark_rowtime.drain.properties import (
    BATCH,
    COLUMN,
    OFFSETS,
    QUERY,
    QUERY_STATUS,
    bound_in,
    bound_properties,
    require_at_or_after,
)
from spark_rowtime.drain.tables.open import open_table
from spark_rowtime.drain.tables.table import Table
from spark_rowtime.errors import InvalidOptionError
from spark_rowtime.spark.output_bound import SPARK_QUERY_ID, currentRowtimeBound, local_property, of_this_query
from spark_rowtime.spark.query_batch import hash_of_end
from spark_rowtime.spark.table_batch import is_written, last_written, lost, require_ours
from spark_rowtime.types.arguments import to_text
from spark_rowtime.types.schema import ROWTIME, cast_to_field, columns_of


def tableWriter(target: str, column: str = ROWTIME) -> Callable[[DataFrame, int], None]:
    """Makes a function for ``foreachBatch`` that writes each batch into a Delta or Iceberg table.

    The batch's rows, the bound on what later batches emit, the query's id, the batch's number and what ``rt.whyTable``
    asks about the query are one commit of the table. A batch that Spark runs again is not written again. A batch
    without rows is committed if the bound has moved, and if it is the query's first: give the function each batch. The
    rows pass through the driver, as Arrow.

    Args:
        target: ``delta:PATH`` or ``iceberg:CATALOG.NAMESPACE.TABLE``. The table is made with the batch's columns if
            there is none. Only one query may write to it through this function.
        column: The output column that the bound is about, as for ``currentRowtimeBound``, such as ``"window.end"``.

    Returns:
        The function, for ``writeStream.foreachBatch`` of classic Spark in append mode.

    Raises:
        ExtraNotInstalledError: ``delta`` or ``iceberg`` needs the pip extra of that name. This and what follows ends
            the query.
        SchemaMismatchError: The table has other columns, or cannot have these.
        ProducerFencedError: Another query or a drain has committed to the table, or this one has with a newer
            checkpoint.
        DisorderedOutputError: A row is below the bound that the table has.
        DataLostError: The table was set back, or dropped, so batches of the query are no longer in it.

    Example:
        ```python
        hours.writeStream.foreachBatch(rt.tableWriter("delta:/lake/hourly", "window.end")).start()
        ```
    """
    to_text(target, "target")
    to_text(column, "column")

    def write(batch: DataFrame, batchId: int) -> None:
        if type(batch).__module__.startswith("pyspark.sql.connect."):
            raise InvalidOptionError(
                "rt.tableWriter is not possible over Spark Connect, whose foreachBatch does not know the query and its "
                "bound. Write a rowtime stream instead (writeStream.format('rowtime')), and drain it into the table: "
                f"rowtime drain STREAM {target}.",
                option="target",
                value=target,
            )
        query = local_property(SPARK_QUERY_ID)
        if query is None:
            raise InvalidOptionError("tableWriter's function is for foreachBatch: there is no streaming query here.")
        rows = _arrow_of(batch)
        told = {QUERY: query, BATCH: str(batchId), OFFSETS: hash_of_end(local_property), **_status(target)}
        missing = lost(target, told) if batchId else None
        _append(open_table(target, rows.schema, missing), rows, column, told)

    return write


def _status(target: str) -> dict[str, str]:
    """What the query tells about the batch, as much of it as the format's own sink writes."""
    status = of_this_query(QUERY_STATUS, local_property)
    if status is None:
        return {}
    jvm: Any = SparkContext._jvm  # noqa: SLF001  (PySpark has no public name for it)
    return {QUERY_STATUS: jvm.sparkrowtime.query.BriefStatus.of(status) if target.startswith("iceberg:") else status}


def _arrow_of(batch: DataFrame) -> pa.Table:
    """The batch's rows, with the types that a stream of these columns has."""
    rows = batch.toArrow()
    schema = columns_of(rows.schema)
    return pa.table([cast_to_field(rows.column(field.name), field) for field in schema], schema)


def _append(table: Table, rows: pa.Table, column: str, batch: dict[str, str]) -> None:
    last = table.properties
    require_ours(table, batch[QUERY])
    done = last_written(table, batch[QUERY])
    if is_written(table, done, batch):
        return
    before, now = bound_in(last), currentRowtimeBound(column)
    _require_above(before, rows, column, table.target)
    _require_same_column(last, column, table.target)
    bound = before if now is None else now if before is None else max(before, now)
    if done < 0 or rows.num_rows or bound != before:
        table.append(rows, {**bound_properties(bound), **({COLUMN: column} if bound else {}), **batch})


def _require_same_column(last: Mapping[str, str], column: str, target: str) -> None:
    """Refuses another column than that whose bound the table has: a bound is a promise about one column."""
    before = last.get(COLUMN, column)
    if before != column:
        raise InvalidOptionError(
            f"The bound of {target} is about the column {before!r}, and this query would go on with {column!r}. Give "
            f"rt.tableWriter(..., column={before!r}), or write to another table.",
            option="column",
            value=column,
        )


def _require_above(bound: RowtimeBound | None, rows: pa.Table, column: str, target: str) -> None:
    times = _times(rows, column)
    if bound is None or not rows.num_rows:
        return
    least = pc.min(times.cast(pa.int64())).as_py()
    if least is not None:
        require_at_or_after(bound, least, column, target, " Give the column that carries the query's bound.")


def _times(rows: pa.Table, column: str) -> pa.ChunkedArray:
    """The output column, or the field of a struct, at a path such as ``window.end``."""
    whole = column.strip("`").replace("``", "`")
    names = [whole] if whole in rows.schema.names else column.split(".")
    found = rows.column(names[0]) if names[0] in rows.schema.names else None
    for name in names[1:]:
        inside = found is not None and pa.types.is_struct(found.type) and found.type.get_field_index(name) >= 0
        found = pc.struct_field(found, name) if inside else None
    if found is None or not pa.types.is_timestamp(found.type):
        raise InvalidOptionError(
            f"column={column!r} is no time among the batch's columns {rows.schema.names}. The times there are "
            f"{', '.join(_paths(rows.schema)) or 'none'}.",
            option="column",
            columns=rows.schema.names,
        )
    return found


def _paths(fields: Iterable[pa.Field], within: str = "") -> Iterator[str]:
    """The times among the columns, and among the fields of structs."""
    for field in fields:
        if pa.types.is_timestamp(field.type):
            yield within + field.name
        elif pa.types.is_struct(field.type):
            yield from _paths(field.type, f"{within}{field.name}.")
