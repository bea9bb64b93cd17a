"""A test of one's own pipeline, with pytest: `pytest examples/10_test_own_pipeline.py`.

Rules that make such a test exact and quick: the bounds are explicit; `linger` is long, so that rows
become visible with `flush` alone; `processAllAvailable` waits, the test never sleeps; the streamed
result is compared with the same query as a batch, whatever the order in which rows came.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import spark_rowtime as rt

DAY = "2006-09-11T{}:00Z"


def busiest_shop(orders: DataFrame) -> DataFrame:
    """The pipeline under test: the most units of one order per hour and shop."""
    hours = orders.groupBy(F.window("rowtime", "1 hour"), "shop").agg(F.max("units").alias("units"))
    return hours.select(F.col("window.end").alias("rowtime"), "shop", "units")


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", False)
    session = rt.configure(builder.config("spark.sql.session.timeZone", "UTC")).getOrCreate()
    yield session
    session.stop()


class Pipeline:
    """The pipeline between two streams in a folder of the test's own."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark, self._orders, self._out = spark, str(folder / "orders.rowtime"), str(folder / "out.rowtime")
        rt.createStream(self._orders, "rowtime TIMESTAMP NOT NULL, shop STRING, units INT")
        rt.createStream(self._out, "rowtime TIMESTAMP NOT NULL, shop STRING, units INT")
        self.sink = rt.openSink(self._orders, producer="test", linger="1 hour", rowsImplyBounds=False)
        self._results = rt.openReader(self._out)
        self.query = (
            busiest_shop(spark.readStream.format("rowtime").load(self._orders))
            .writeStream.format("rowtime")
            .option("checkpointLocation", str(folder / "checkpoint"))
            .start(self._out)
        )

    def send(self, *rows: tuple[str, str, int], bound: str | None = None) -> None:
        """Rows and a bound in one commit; times as HH:MM."""
        self.sink.sendRows([(DAY.format(clock), shop, units) for clock, shop, units in rows])
        if bound is not None:
            self.sink.sendRowtimeBound(DAY.format(bound))
        self.sink.flush()

    def new_results(self) -> list[tuple[str, str, int]]:
        """What came out since the last call, sorted."""
        self.query.processAllAvailable()
        rows = [row for train in self._results for row in train.rows.to_pylist()]
        return sorted((f"{row['rowtime']:%H:%M}", row["shop"], row["units"]) for row in rows)

    def as_a_batch(self) -> list[tuple[str, str, int]]:
        """The same query over all rows at once."""
        rows = busiest_shop(self._spark.read.format("rowtime").load(self._orders))
        return sorted(tuple(row) for row in rows.select(F.date_format("rowtime", "HH:mm"), "shop", "units").collect())


@pytest.fixture
def pipeline(spark: SparkSession, tmp_path: Path) -> Iterator[Pipeline]:
    pipeline = Pipeline(spark, tmp_path)
    yield pipeline
    pipeline.sink.close()
    pipeline.query.stop()


def test_an_hour_comes_out_once_its_bound_has_passed(pipeline: Pipeline) -> None:
    pipeline.send(("09:10", "Berlin", 3), ("09:50", "Berlin", 5), ("10:20", "Oslo", 1))
    assert pipeline.new_results() == [], "nobody has promised anything"
    pipeline.send(bound="10:00")
    first = pipeline.new_results()
    assert first == [("10:00", "Berlin", 5)]
    pipeline.send(("10:05", "Berlin", 2), bound="11:00")
    assert first + pipeline.new_results() == pipeline.as_a_batch()


if __name__ == "__main__":
    sys.exit(pytest.main(["-q", __file__]))
