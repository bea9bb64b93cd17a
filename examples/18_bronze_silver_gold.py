"""Bronze, silver, gold: three Delta tables, and hours that close in gold once bronze says that they are complete.

A feed goes into bronze by a drain. Silver is a query that cleans the rows of bronze, gold one that counts silver by
hour. Both write with Delta's own sink, and the bound of their output into each commit. The last hour comes out although
no later order follows; with withWatermark it does not. Somebody else's order for a complete hour is late.

    pip install 'pyspark~=4.2.0' 'spark-rowtime[delta]'
    python examples/18_bronze_silver_gold.py

The first run fetches Delta's jars from Maven Central. An argument names jars that are there already, separated by
commas.

It prints:

    bronze is complete up to 12:00
    silver is complete up to 12:00
    gold is complete up to 12:00
    gold: 11:00 3 orders, 12:00 2 orders
    withWatermark: 11:00 3 orders
    late in silver: 1
"""

import sys
import tempfile
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import write_deltalake
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, window

import spark_rowtime as rt

DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
JARS = {"spark.jars.packages": "io.delta:delta-spark_4.2_2.13:4.4.0"}
DAY = "2026-01-05T{}:00Z"


class Lake:
    """A folder with the tables, the stream that bronze is filled from, and the checkpoints."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark, self._folder, self._stream = spark, folder, str(folder / "orders.rowtime")
        rt.createStream(self._stream, "rowtime TIMESTAMP NOT NULL, shop STRING")

    def feed(self, bound: str, *orders: str) -> None:
        """Sends orders and their bound, and drains them into bronze."""
        with rt.openSink(self._stream, producer="shop") as sink:
            sink.sendRows([(DAY.format(time), "Berlin") for time in orders])
            sink.sendRowtimeBound(DAY.format(bound))
        with rt.openReader(self._stream) as reader, rt.openTableSink(self.target("bronze"), reader.schema) as bronze:
            reader.drainTo(bronze)

    def stray(self, time: str) -> None:
        """Appends an order to bronze, as somebody does who knows nothing of bounds."""
        row = {"rowtime": datetime.fromisoformat(DAY.format(time)), "shop": "Oslo"}
        schema = pa.schema(
            [pa.field("rowtime", pa.timestamp("us", "UTC"), nullable=False), pa.field("shop", pa.string())]
        )
        write_deltalake(str(self._folder / "bronze"), pa.Table.from_pylist([row], schema), mode="append")

    def target(self, table: str) -> str:
        return f"delta:{self._folder / table}"

    def read(self, table: str) -> DataFrame:
        return self._spark.readStream.format("delta").load(str(self._folder / table))

    def write(self, frame: DataFrame, table: str, **options: str) -> Any:
        checkpoint = str(self._folder / f"checkpoint-{table}")
        writer = frame.writeStream.format("delta").option("checkpointLocation", checkpoint).options(**options)
        return writer.start(str(self._folder / table))

    def hours(self, table: str) -> str:
        rows = self._spark.read.format("delta").load(str(self._folder / table)).orderBy("end").collect()
        return ", ".join(f"{row.end:%H:%M} {row['count']} orders" for row in rows)


def by_hour(orders: DataFrame) -> DataFrame:
    return orders.groupBy(window("rowtime", "1 hour")).count().select("window.end", "count")


def main(*jars: str) -> None:
    settings = {"spark.ui.enabled": "false", "spark.sql.session.timeZone": "UTC", "spark.sql.shuffle.partitions": "1"}
    given = {"spark.jars": jars[0]} if jars else JARS
    builder = SparkSession.builder.master("local[2]").config(map={**settings, **DELTA, **given})
    spark = rt.configure(builder).getOrCreate()
    lake = Lake(spark, Path(tempfile.mkdtemp(prefix="rowtime-")))

    lake.feed("10:30", "10:05", "10:20")
    clean = rt.punctuate(lake.read("bronze"), "rowtime").where(col("shop").isNotNull())
    silver = lake.write(clean, "silver", rowtimeBound="rowtime")
    silver.processAllAvailable()
    rows = lake.read("silver").where("rowtime IS NOT NULL")
    gold = lake.write(by_hour(rt.punctuate(rows, "rowtime")), "gold", rowtimeBound="end")
    plain = lake.write(by_hour(rows.withWatermark("rowtime", "10 minutes")), "plain")

    lake.feed("11:00", "10:50")
    lake.feed("12:00", "11:30", "11:45")
    for query in (silver, gold, plain):
        query.processAllAvailable()
    lake.stray("10:59")
    silver.processAllAvailable()

    for table in ("bronze", "silver", "gold"):
        bound = rt.readTableBound(lake.target(table))
        print(f"{table} is complete up to {bound.time:%H:%M}" if bound else f"{table} has no bound")
    print(f"gold: {lake.hours('gold')}")
    print(f"withWatermark: {lake.hours('plain')}")
    late = [int(source.metrics["rowsLate"]) for p in silver.recentProgress if p.numInputRows for source in p.sources]
    print(f"late in silver: {sum(late)}")
    for query in (silver, gold, plain):
        query.stop()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
