"""A Spark driver that tests kill. It writes counts of ten minutes from a stream with bounds into another stream.

``python -m tests.crash.driver FOLDER...`` runs a query for each folder. It reads commands from its standard input, one
per line: ``go`` processes all available data; ``reference`` does the same in one run, into another stream. It answers
with the same line.
"""

import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming import StreamingQuery

from tests.crash.killing import IN_TASK, Hit, KillingDataSource
from tests.crash.places import location_of, stream_in
from tests.sparksession import NATIVE_WRITE, make_session, settle

FAT = 150_000
"""How long a text of the output is where it has a location: more than travels in a task's message."""
SETTINGS = {"spark.master": "local[2,2]"}
"""Tasks are tried twice."""


def counts(spark: SparkSession, folder: Path) -> DataFrame:
    """The query. Its batches are small, each with a bound, so there are many moments to kill it."""
    rows = spark.readStream.format("rowtime").option("maxRowsPerTrigger", "30").load(stream_in(folder, "source"))
    tumbling = rows.groupBy(F.window("rowtime", "10 minutes"), "k").agg(
        F.count("*").alias("rows"), F.sum("n").alias("n")
    )
    columns = [F.col("window.end").alias("rowtime"), "k", "rows", "n"]
    return tumbling.select(*columns, *([F.repeat(F.col("k"), F.lit(FAT)).alias("text")] if location_of(folder) else []))


def go_on(spark: SparkSession, folder: Path) -> StreamingQuery:
    """Starts the query of that folder from its checkpoint. It writes through Python if a task is to be hit."""
    spark.dataSource.register(KillingDataSource)
    path = stream_in(folder, "counts")
    if hit := Hit.laid(path):
        spark.conf.set(NATIVE_WRITE, str(hit.point != IN_TASK).lower())
    sink = counts(spark, folder).writeStream.format("rowtime")
    return sink.option("checkpointLocation", str(folder / "checkpoint")).start(path)


def undisturbed(spark: SparkSession, folder: Path) -> None:
    """Runs the query from the beginning, in one run, into another stream."""
    sink = counts(spark, folder).writeStream.format("rowtime").option("checkpointLocation", str(folder / "undisturbed"))
    sink.trigger(availableNow=True).start(stream_in(folder, "reference")).awaitTermination()


def main(folders: list[Path]) -> None:
    spark = make_session(**SETTINGS)
    queries: list[StreamingQuery] = []
    for command in map(str.strip, sys.stdin):
        if command == "go":
            queries = queries or [go_on(spark, folder) for folder in folders]
            for query in queries:
                settle(query)
        elif command == "reference":
            for folder in folders:
                undisturbed(spark, folder)
        print(command, flush=True)
    for query in queries:
        query.stop()
    spark.stop()


if __name__ == "__main__":
    main([Path(folder) for folder in sys.argv[1:]])
