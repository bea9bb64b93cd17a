"""A chain of three queries over orders, by the format's own sink: silver, gold by ten minutes, and day by hour.

``python -m tests.lakehouse.chain FORMAT FOLDER PLACE QUERY`` is a Spark driver that runs one of them until a test kills
it. FOLDER: of the checkpoints. PLACE: of Delta the folder of the tables, of Iceberg that of the catalog, and the
namespace.
"""

import sys
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

import spark_rowtime as rt
from tests.lakehouse.formats import DeltaTables, Tables

COLUMNS = {
    "silver": "at TIMESTAMP, k STRING",
    "gold": "end TIMESTAMP, k STRING, count BIGINT",
    "day": "end TIMESTAMP, count BIGINT",
}
BOUNDS = {"silver": "at", "gold": "end", "day": "end"}
"""The column of the bound of each table."""
TABLES = tuple(COLUMNS)


class Chain:
    """Queries from table to table. Each writes the bound of its output into each commit.

    ``folder``: of the checkpoints.
    """

    def __init__(self, spark: SparkSession, folder: Path, tables: Tables | None = None) -> None:
        self.spark, self.folder = spark, folder
        self.tables = DeltaTables(folder) if tables is None else tables

    def frame(self, name: str) -> DataFrame:
        """What a query writes."""
        if name == "silver":
            rows = rt.punctuate(self.tables.read(self.spark, "orders", maxFilesPerTrigger="1"), "ts")
            return rows.where("k <> 'noise'").select(f.col("ts").alias("at"), "k")
        if name == "gold":
            rows = rt.punctuate(self.tables.read(self.spark, "silver").where("at IS NOT NULL"), "at")
            minutes = rows.groupBy(f.window("at", "10 minutes"), "k").count()
            return minutes.select("window.end", "k", "count")
        ends = rt.punctuate(self.tables.read(self.spark, "gold").where("end IS NOT NULL"), "end")
        last = f.col("end") - f.expr("INTERVAL 10 MINUTES")
        hours = ends.withColumn("start", last).groupBy(f.window("start", "1 hour")).agg(f.sum("count").alias("count"))
        return hours.select("window.end", "count")

    def start(self, name: str, **trigger: Any) -> Any:
        writer = self.frame(name).writeStream.option("checkpointLocation", str(self.checkpoint(name)))
        writer = writer.option("rowtimeBound", BOUNDS[name])
        return self.tables.write(writer.trigger(**trigger) if trigger else writer, name)

    def checkpoint(self, name: str) -> Path:
        return self.folder / f"checkpoint-{name}"

    def made(self) -> None:
        """Makes the tables, which queries read before they are written."""
        for table, columns in COLUMNS.items():
            self.tables.make(self.spark, table, columns)


def opened(kind: str, folder: Path, *place: str) -> Chain:
    """The chain of a driver, in a session of its own."""
    from tests.crash.driver import SETTINGS
    from tests.lakehouse.iceberg_tables import IcebergTables, settings
    from tests.sparksession import make_session
    from tests.tables.jars import table_jars
    from tests.tables.spark_reader import DELTA

    more = DELTA if kind == "delta" else settings(Path(place[0]))
    tables = DeltaTables(Path(place[0])) if kind == "delta" else IcebergTables(place[1])
    return Chain(make_session(**SETTINGS, **more, **{"spark.jars": table_jars(kind)}), folder, tables)


def main(kind: str, folder: str, *rest: str) -> None:
    *place, name = rest
    opened(kind, Path(folder), *place).start(name).awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
