"""Records whether the extension tells a source that it is the query's only one."""

from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSourceStreamReader
from pyspark.sql.streaming.datasource import ReadLimit
from pyspark.sql.types import StructType

from spark_rowtime.spark.datasource import RowtimeDataSource
from spark_rowtime.spark.offset import ALONE, PLAN
from spark_rowtime.spark.options import READ, Options
from spark_rowtime.spark.source import RowtimeStreamReader


class AskedReader(RowtimeStreamReader):
    """Creates a file beside the stream for each of the two values."""

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        if PLAN not in start:
            Path(f"{self._path}.{start[ALONE]}-alone").touch()
        return super().latestOffset(start, limit)


class AskedDataSource(RowtimeDataSource):
    """Replaces the real data source."""

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return AskedReader(Options(self.options, READ), len(schema))


def asking(spark: SparkSession) -> SparkSession:
    """A second session, in which ``told_alone`` works for streams."""
    session = spark.newSession()
    session.dataSource.register(AskedDataSource)
    return session


def told_alone(path: str) -> list[str]:
    """The recorded values for the stream at ``path``: "True" if its source was told that it is alone."""
    found = Path(path).parent.glob(f"{Path(path).name}.*-alone")
    return sorted(file.suffix[1:].removesuffix("-alone") for file in found)
