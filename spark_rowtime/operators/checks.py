"""What the operators need of a DataFrame: its columns, its watermark, the state store of its session."""

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructType, TimestampType, VariantType

from spark_rowtime.errors import InvalidOptionError, SchemaMismatchError
from spark_rowtime.operators.columns import WATERMARK
from spark_rowtime.types.arguments import to_count
from spark_rowtime.types.extras import import_extra

_PROVIDER = "spark.sql.streaming.stateStore.providerClass"


def keys_of(by: str | Sequence[str]) -> list[str]:
    """Returns the names of the key's columns."""
    return [by] if isinstance(by, str) else list(by)


def check_columns(schema: StructType, by: list[str], rowtime: str, reserved: str) -> None:
    """Raises SchemaMismatchError if a column is missing or not unique, or its type or name cannot be used."""
    for name in (*by, rowtime):
        if schema.names.count(name) != 1:
            raise SchemaMismatchError(f"There must be one column {name!r}; the columns are {schema.names}.")
    if not isinstance(schema[rowtime].dataType, TimestampType):
        kind = schema[rowtime].dataType.simpleString()
        raise SchemaMismatchError(f"{rowtime!r} must be TIMESTAMP, but is {kind}.", column=rowtime)
    if reserved in schema.names:
        raise SchemaMismatchError(f"A column has the reserved name {reserved!r}. Rename it.", column=reserved)
    for name in by:
        _check_key(name, schema[name].dataType)


def _check_key(name: str, kind: DataType) -> None:
    if isinstance(kind, (ArrayType, MapType, StructType, VariantType)):
        raise SchemaMismatchError(
            f"by: {name!r} is {kind.simpleString()}, which cannot be a key. Select its fields as columns of their own.",
            column=name,
        )
    if isinstance(kind, StringType) and not kind.isUTF8BinaryCollation():
        raise SchemaMismatchError(
            f"by: {name!r} is {kind.simpleString()}, but keys are compared byte by byte. Select lower(...) of it, or "
            "cast it to STRING COLLATE UTF8_BINARY.",
            column=name,
        )


def check_streaming(df: DataFrame, rowtime: str, buckets: int) -> None:
    """Raises an error if the session or the DataFrame cannot have a state function by ``rowtime``."""
    to_count(buckets, "buckets", 1)
    import_extra("google.protobuf", "operators", "Spark's transformWithState")
    if WATERMARK not in df.schema[rowtime].metadata:
        raise InvalidOptionError(
            f"{rowtime!r} has no watermark, so no row would ever be complete. Read with format('rowtime') and "
            "keep its rowtime column, or call withWatermark before. The rows of a slidingAggregate with following come "
            "later than their time: write its rows to a rowtime stream, and read that stream.",
            column=rowtime,
        )
    provider = df.sparkSession.conf.get(_PROVIDER) or ""
    if "RocksDB" not in provider:
        raise InvalidOptionError(
            f"Spark's transformWithState needs the RocksDB state store, but {_PROVIDER} is {provider}. Set it to "
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider.",
            provider=provider,
        )
