"""What the extension tells the Python side of a source: whether it is the query's only one."""

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
    """Leaves a file beside the stream for each answer."""

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        if PLAN not in start:
            Path(f"{self._path}.{start[ALONE]}-alone").touch()
        return super().latestOffset(start, limit)


class AskedDataSource(RowtimeDataSource):
    """In place of the real one."""

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        del schema
        return AskedReader(Options(self.options, READ))


def asking(spark: SparkSession) -> SparkSession:
    """A session beside the given one in which ``told_alone`` can be asked of a stream."""
    session = spark.newSession()
    session.dataSource.register(AskedDataSource)
    return session


def told_alone(path: str) -> list[str]:
    """Of the stream at ``path``: "True" where its source was told that it is alone."""
    found = Path(path).parent.glob(f"{Path(path).name}.*-alone")
    return sorted(file.suffix[1:].removesuffix("-alone") for file in found)
