"""A chain of three queries over the table of orders, by Delta's own sink: silver, gold by ten minutes, and day by hour.

``python -m tests.lakehouse.chain FOLDER QUERY`` is a Spark driver that runs one of them until a test kills it; with
``all`` it runs one after the other, and ends when all data is processed.
"""

import sys
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

import spark_rowtime as rt

TABLES, ALL = ("silver", "gold", "day"), "all"


class Chain:
    """Queries from table to table in a folder. Each writes the bound of its output into each commit."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.folder = spark, folder

    def frame(self, name: str) -> tuple[DataFrame, str]:
        """What a query writes, and the column of its bound."""
        if name == "silver":
            rows = rt.punctuate(self.read("orders", maxFilesPerTrigger="1"), "ts").where("k <> 'noise'")
            return rows.select(f.col("ts").alias("at"), "k"), "at"
        if name == "gold":
            rows = rt.punctuate(self.read("silver").where("at IS NOT NULL"), "at")
            minutes = rows.groupBy(f.window("at", "10 minutes"), "k").count()
            return minutes.select("window.end", "k", "count"), "end"
        ends = rt.punctuate(self.read("gold").where("end IS NOT NULL"), "end")
        last = f.col("end") - f.expr("INTERVAL 10 MINUTES")
        hours = ends.withColumn("start", last).groupBy(f.window("start", "1 hour")).agg(f.sum("count").alias("count"))
        return hours.select("window.end", "count"), "end"

    def read(self, table: str, **options: str) -> DataFrame:
        return self.spark.readStream.format("delta").options(**options).load(str(self.folder / table))

    def start(self, name: str, **trigger: Any) -> Any:
        frame, column = self.frame(name)
        writer = frame.writeStream.format("delta").option("checkpointLocation", str(self.checkpoint(name)))
        writer = writer.option("rowtimeBound", column)
        return (writer.trigger(**trigger) if trigger else writer).start(str(self.folder / name))

    def checkpoint(self, name: str) -> Path:
        return self.folder / f"checkpoint-{name}"

    def made(self) -> None:
        """Makes the tables, which queries read before they are written."""
        for table, columns in (("silver", "at TIMESTAMP, k STRING"), ("gold", "end TIMESTAMP, k STRING, count BIGINT")):
            self.spark.sql(f"CREATE TABLE IF NOT EXISTS delta.`{self.folder / table}` ({columns}) USING delta")


def main(folder: Path, name: str) -> None:
    from tests.crash.driver import SETTINGS
    from tests.sparksession import make_session
    from tests.tables.jars import table_jars
    from tests.tables.spark_reader import DELTA

    chain = Chain(make_session(**SETTINGS, **DELTA, **{"spark.jars": table_jars("delta")}), folder)
    if name == ALL:
        for each in TABLES:
            chain.start(each, availableNow=True).awaitTermination()
        chain.spark.stop()
    else:
        chain.start(name).awaitTermination()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
