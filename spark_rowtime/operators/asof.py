"""asofJoin: for each left row, the right row that was current at its time."""

from collections.abc import Sequence
from datetime import timedelta
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql.types import StructField, StructType

from spark_rowtime.errors import InvalidOptionError, SchemaMismatchError
from spark_rowtime.operators.asof_batch import joined_in_batch
from spark_rowtime.operators.asof_match import AsOf
from spark_rowtime.operators.asof_pack import LEFT, RIGHT, packed
from spark_rowtime.operators.asof_processor import AsOfProcessor
from spark_rowtime.operators.bucketed import BUCKETS, passed
from spark_rowtime.operators.columns import (
    check_columns,
    check_streaming,
    in_arrow,
    kept_field,
    keys_of,
    quoted,
    unmarked,
    unpacked_fields,
)
from spark_rowtime.operators.current_rows import HASH
from spark_rowtime.types.arguments import known_keywords, to_choice
from spark_rowtime.types.timestamps import to_interval


@known_keywords
def asofJoin(
    left: DataFrame,
    right: DataFrame,
    on: str = "rowtime",
    by: str | Sequence[str] = (),
    *,
    direction: str = "backward",
    tolerance: str | timedelta | None = None,
    how: str = "left",
    buckets: int = BUCKETS,
) -> DataFrame:
    """Gives each row of ``left`` the row of ``right`` with the same key that was current at its time.

    A left row with time t is emitted when the bounds of both streams are above t, in the order of its time; with
    ``direction`` "forward" or "nearest", when they are above t + ``tolerance``. The bound of the output is the weaker
    one of both streams, less ``tolerance`` for these directions. With a non-strict bound of 12:00 a row at 12:00
    waits, since a right row at 12:00 may follow.

    Of several right rows with the same key and time the last that arrived counts, in the order of the commits and of
    the rows in them. That order is known where ``right`` is read from one stream, also through filters and
    projections. Above an aggregation, a join, a union or ``repartition`` it is not, nor with ``order=rowtime`` where
    different times become the same (``date_trunc``): let times there be unique for each key.

    A null in a key matches nothing, and neither does a null time. A left row without a time is emitted at once.

    The state holds the rows of both sides that are not complete, and of each key the last right row below the bound,
    for good: no bound says that a key does not come again. With ``tolerance`` that row is freed, too, at the latest
    when the bound of the output is above its time by twice that.

    Args:
        left: A streaming DataFrame with a watermarked TIMESTAMP column ``on``, or a batch DataFrame.
        right: Another one, of the same kind: both are streams, or both are not.
        on: The name of the column with the event time, in both.
        by: The column or columns that form the key, which both sides have with the same types. By default, all
            rows have the same key.
        direction: ``"backward"``: the last right row at or before the left row. ``"forward"``: the first one at or
            after it. ``"nearest"``: the nearer of these two; the earlier one if both are as near.
        tolerance: How far a right row may be from the left row: an interval such as ``"1 hour"``, or a timedelta.
            Without it, any right row counts. On streams, "forward" and "nearest" need it: without it no bound says
            which right row is the next.
        how: ``"left"``: a left row without a match is emitted with nulls. ``"inner"``: it is left out.
        buckets: The number of parts into which the keys are divided, which limits the number of parallel
            tasks. It belongs to the checkpoint, as the number of shuffle partitions does.

    Returns:
        A DataFrame with one row for each row of ``left``: all its columns, and those of ``right`` but ``by`` and
        ``on``. To have the time of the right row, copy it before: ``rates.withColumn("ratedAt", "rowtime")``.

    Raises:
        InvalidOptionError: An argument is not possible, ``on`` has no watermark, or the session does not use the
            RocksDB state store.
        SchemaMismatchError: A column is missing, not unique, on both sides, or its type or name cannot be used.
        ExtraNotInstalledError: The pip extra ``operators`` is not installed.

    Example:
        ```python
        asofJoin(orders, rates, by="currency", tolerance="1 day")
        ```
    """
    to_choice(direction, "direction", "backward", "forward", "nearest")
    asof = AsOf(keys_of(by), on, direction, to_interval(tolerance, "tolerance"))
    inner = to_choice(how, "how", "left", "inner") == "inner"
    _check_sides(left, right, asof)
    added = [name for name in right.columns if name not in (*asof.by, on)]
    rows, matchable = _matchable(left, asof) if inner else left, _matchable(right, asof)
    if not left.isStreaming:
        return joined_in_batch(rows, matchable, asof, added, inner=inner)
    if direction != "backward" and asof.tolerance is None:
        raise InvalidOptionError(
            f"direction={direction!r} needs tolerance on streams: without it, a left row would wait until its key has "
            "another right row, and no bound says when that comes. Give for example tolerance='1 hour'.",
            option="tolerance",
        )
    for side in (left, right):
        check_streaming(side, on, buckets)
    return _streaming(rows, matchable, asof, added, buckets, inner=inner)


def _streaming(
    left: DataFrame, right: DataFrame, asof: AsOf, added: list[str], buckets: int, *, inner: bool
) -> DataFrame:
    sides = [packed(df, side, asof.by, asof.on, buckets) for df, side in ((left, LEFT), (right, RIGHT))]
    fields = [StructField(f.name, f.dataType, True, unmarked(f)) for f in right.schema.fields if f.name in added]
    processor = AsOfProcessor(asof, in_arrow(StructType(fields)), inner=inner)
    schema = StructType(unpacked_fields(left.schema, asof.on) + fields)
    kept = kept_field(str(asof), buckets)
    return passed(sides[0].unionAll(sides[1]), processor, kept, schema, asof.on, asof.following)


def _matchable(df: DataFrame, asof: AsOf) -> DataFrame:
    """Returns the rows that can have a match: those without a null in their key and time."""
    return reduce(DataFrame.where, [column.isNotNull() for column in quoted([*asof.by, asof.on])], df)


def _check_sides(left: DataFrame, right: DataFrame, asof: AsOf) -> None:
    if left.isStreaming != right.isStreaming:
        raise InvalidOptionError(
            "asofJoin takes two streams, or two batch DataFrames, but one side is a stream and the other is not. For a "
            "table that does not change, use an ordinary join of the stream with the table."
        )
    for side in (left, right):
        check_columns(side.schema, asof.by, asof.on, HASH)
    for name in asof.by:
        kinds = [side.schema[name].dataType.simpleString() for side in (left, right)]
        if kinds[0] != kinds[1]:
            raise SchemaMismatchError(
                f"by: {name!r} is {kinds[0]} on the left and {kinds[1]} on the right. Cast one of them.", column=name
            )
    shared = [name for name in right.columns if name in left.columns and name not in (*asof.by, asof.on)]
    if shared or len(set(right.columns)) < len(right.columns):
        raise SchemaMismatchError(
            f"The columns {shared or right.columns} would not be unique in the result. Rename them on the right side."
        )
