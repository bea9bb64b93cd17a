"""``format("rowtime")``: the data source that Spark finds under that name."""

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from spark_rowtime.errors import InvalidOptionError, SchemaMismatchError, StreamNotFoundError
from spark_rowtime.spark.batch_reader import RowtimeBatchReader, view_schema
from spark_rowtime.spark.batch_writer import RowtimeBatchWriter
from spark_rowtime.spark.hosted_adapter import ensure_stream
from spark_rowtime.spark.hosted_watch import ensure_watched
from spark_rowtime.spark.marked_source import MarkedStreamReader, packed_type, rows_type
from spark_rowtime.spark.options import READ, VIEWS, WATCH, WRITE, WRITE_BATCH, Options
from spark_rowtime.spark.rejected_source import RejectedStreamReader
from spark_rowtime.spark.sink import RowtimeStreamWriter
from spark_rowtime.spark.source import RowtimeStreamReader
from spark_rowtime.spark.versioned_pickle import VersionedPickle
from spark_rowtime.types.added_columns import added_names


class RowtimeDataSource(VersionedPickle, DataSource):
    """The data source. Spark creates one in a separate Python process for each read and write, so creation is cheap."""

    @classmethod
    def name(cls) -> str:
        """Returns the short name of the data source."""
        return "rowtime"

    def schema(self) -> StructType:
        """Returns the stream's schema, or that of the chosen view. Called when a read is analysed."""
        options = Options(self.options, READ).check_read()
        own = _own_schema(options)
        return packed_type(own) if options.bounds == "markers" else own

    def reader(self, schema: StructType) -> DataSourceReader:
        """Returns a reader for a batch read of everything that is committed."""
        options = Options(self.options, READ)
        if options.bounds == "markers":
            raise InvalidOptionError("bounds=markers is for streaming queries. Leave it out of a batch read.")
        return RowtimeBatchReader(_of_own_schema(options, schema), len(schema))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Returns a reader for a streaming read."""
        options = Options(self.options, READ)
        if options.bounds == "markers":
            rows = rows_type(schema)
            return MarkedStreamReader(_of_own_schema(options, rows), len(rows))
        options = _of_own_schema(options, schema)
        view = options.choice("view", *VIEWS)
        if view in ("bounds", "producers"):
            raise InvalidOptionError(
                f"view={view} is for batch reads (spark.read). A streaming query reads the rows, or view=rejected."
            )
        reader = RejectedStreamReader if view == "rejected" else RowtimeStreamReader
        return reader(options, len(schema))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Returns a writer for a batch write in append mode, the only mode supported."""
        if overwrite:
            raise InvalidOptionError(
                "A rowtime stream is append-only: nothing in it can be overwritten. Write with mode('append') or "
                "INSERT INTO, or create another stream (rt.createStream)."
            )
        return RowtimeBatchWriter(Options(self.options, WRITE_BATCH), schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        """Returns a writer for a streaming write in append mode, the only mode supported."""
        if overwrite:
            raise InvalidOptionError(
                "A rowtime sink takes outputMode('append') only: complete mode emits every result again in each "
                "batch. With bounds, append mode gives each result once, as soon as it is final."
            )
        return RowtimeStreamWriter(Options(self.options, WRITE), schema)


def _own_schema(options: Options) -> StructType:
    if adapter := options.get("adapter"):
        ensure_stream(adapter, options.written_path, options.adapter_arguments)
    elif watch := options.get(WATCH):
        ensure_watched(options.path, watch)
    return from_arrow_schema(_arrow_schema(options), prefer_timestamp_ntz=True)


def _arrow_schema(options: Options) -> pa.Schema:
    try:
        return view_schema(options.path, options.choice("view", *VIEWS))
    except StreamNotFoundError as error:
        if not options.ends_with_session:
            raise
        raise StreamNotFoundError(
            f"{error} A relative path is one of the server's; give an absolute one.", **error.values
        ) from error


def _of_own_schema(options: Options, given: StructType) -> Options:
    """Returns ``options`` if ``given`` is the stream's own schema, or was it before columns were added.

    ``given`` may come from ``.schema(...)``, or from a DataFrame that is older than the columns.
    """
    own = _own_schema(options)
    columns = [(f.name, f.dataType, f.nullable) for f in own]
    least = len(own) - len(added_names(_arrow_schema(options)))
    if len(given) < least or [(f.name, f.dataType, f.nullable) for f in given] != columns[: len(given)]:
        raise SchemaMismatchError(
            f"The stream at {options.path} has the columns {_shown(own)}; .schema(...) says {_shown(given)}. Leave it "
            "out: a stream knows its schema. For other columns or types, select and cast; a view of a table is read by "
            "its path.",
            path=options.path,
        )
    return options


def _shown(schema: StructType) -> str:
    return ", ".join(f"{f.name} {f.dataType.simpleString()}{'' if f.nullable else ' not null'}" for f in schema)
