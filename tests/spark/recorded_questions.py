"""Records what the extension asks a source for news."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSourceStreamReader
from pyspark.sql.types import StructType

from spark_rowtime.spark.datasource import RowtimeDataSource
from spark_rowtime.spark.options import READ, Options
from spark_rowtime.spark.questions import Offset
from spark_rowtime.spark.source import RowtimeStreamReader


class AskedReader(RowtimeStreamReader):
    """Writes each question for news into a file beside the stream."""

    def _has_events(self, start: Offset, *, seconds: float, streams: Sequence[str]) -> bool:
        with _file(self._path).open("a") as file:
            file.write(json.dumps({"seconds": seconds, "streams": streams}) + "\n")
        return super()._has_events(start, seconds=seconds, streams=streams)


class AskedDataSource(RowtimeDataSource):
    """Replaces the real data source."""

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return AskedReader(Options(self.options, READ), len(schema))


def asking(spark: SparkSession) -> SparkSession:
    """A second session, in which ``asked`` works for streams."""
    session = spark.newSession()
    session.dataSource.register(AskedDataSource)
    return session


def asked(path: str) -> list[dict[str, Any]]:
    """The questions for news that were asked in the source of the stream at ``path``, without the last, cut line."""
    file = _file(path)
    return [json.loads(line) for line in file.read_text().split("\n")[:-1]] if file.exists() else []


def _file(path: str) -> Path:
    return Path(f"{path}.asked")
