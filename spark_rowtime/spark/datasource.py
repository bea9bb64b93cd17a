"""``format("rowtime")``: what Spark asks for by that name."""

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, DataSourceStreamWriter
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from spark_rowtime.errors import InvalidOptionError
from spark_rowtime.spark.batch import RowtimeBatchReader, view_schema
from spark_rowtime.spark.hosted import ensure_stream
from spark_rowtime.spark.options import READ, VIEWS, WRITE, Options
from spark_rowtime.spark.sink import RowtimeStreamWriter
from spark_rowtime.spark.source import RowtimeStreamReader


class RowtimeDataSource(DataSource):
    """Made by Spark in a Python process of its own for each read and write; cheap to make."""

    @classmethod
    def name(cls) -> str:
        """The short name."""
        return "rowtime"

    def schema(self) -> StructType:
        """The stream's schema, or that of the chosen view; called when a read is analysed."""
        options = Options(self.options, READ).check_read()
        if adapter := options.get("adapter"):
            ensure_stream(adapter, options.path)
        return from_arrow_schema(view_schema(options.path, options.choice("view", *VIEWS)))

    def reader(self, schema: StructType) -> DataSourceReader:
        """A batch read: all that is committed."""
        del schema
        return RowtimeBatchReader(Options(self.options, READ))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """A streaming read."""
        del schema
        options = Options(self.options, READ)
        if options.choice("view", *VIEWS) != "rows":
            raise InvalidOptionError("view is for batch reads (spark.read); a stream is read as rows.")
        return RowtimeStreamReader(options)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        """A streaming write, append mode only."""
        if overwrite:
            raise InvalidOptionError(
                "A rowtime sink takes outputMode('append') only: complete mode emits every result again in each "
                "batch. With bounds, append mode gives each result once, as soon as it is final."
            )
        return RowtimeStreamWriter(Options(self.options, WRITE), schema)
