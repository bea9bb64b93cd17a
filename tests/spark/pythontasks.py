"""Records which tasks of a rowtime sink were run by a Python worker."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSourceStreamWriter
from pyspark.sql.types import StructType

from spark_rowtime.spark.datasource import RowtimeDataSource
from spark_rowtime.spark.options import WRITE, Options
from spark_rowtime.spark.sink import RowtimeStreamWriter
from spark_rowtime.spark.task_output import TaskOutput


class WatchedWriter(RowtimeStreamWriter):
    """Creates a file beside the stream for each number of trains that a Python worker has staged in a task."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskOutput:
        output = super().write(iterator)
        Path(f"{self._path}.{len(output.trains)}-trains").touch()
        return output


class WatchedDataSource(RowtimeDataSource):
    """Replaces the real data source."""

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        assert not overwrite
        return WatchedWriter(Options(self.options, WRITE), schema)


def watching(spark: SparkSession) -> SparkSession:
    """A second session, in which ``python_tasks`` works for sinks."""
    session = spark.newSession()
    session.dataSource.register(WatchedDataSource)
    return session


def python_tasks(path: str | Path) -> list[str]:
    """The recorded tasks of the sink at ``path``: ``1-trains`` for tasks that staged one train."""
    return [file.suffix[1:] for file in Path(path).parent.glob(f"{Path(path).name}.*-trains")]
