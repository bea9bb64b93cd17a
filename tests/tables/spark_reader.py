"""A Spark session of its own that reads a table, in SQL: ``python -m tests.tables.spark_reader KIND FOLDER JARS OUT``.

It writes the rows into OUT as an Arrow file, whose metadata has the table's bound, found without this project.
"""

import json
import sys
from collections.abc import Callable
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",  # VACUUM makes so many tasks, 10,000 by default
}
SETTINGS: dict[str, dict[str, str]] = {"delta": DELTA, "parquet": {}}


def session(kind: str, jars: str) -> SparkSession:
    """A session as a user makes it for tables of this format, without this project."""
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.session.timeZone", "UTC").config("spark.sql.shuffle.partitions", "1")
    return builder.config(map={**SETTINGS[kind], **({"spark.jars": jars} if jars else {})}).getOrCreate()


def delta(spark: SparkSession, folder: str) -> tuple[Any, str]:
    log = spark.read.json(f"{folder}/delta/_delta_log/*.json")
    commits = log.select("commitInfo.timestamp", "commitInfo.`rowtime.bound`").where("`rowtime.bound` IS NOT NULL")
    return spark.sql(f"SELECT * FROM delta.`{folder}/delta`"), commits.orderBy("timestamp").collect()[-1][1]


def parquet(spark: SparkSession, folder: str) -> tuple[Any, str]:
    state = spark.read.json(f"{folder}/parquet/_rowtime/state.json")
    return spark.read.parquet(f"{folder}/parquet").drop("date", "hour"), state.collect()[0]["rowtime.bound"]


READERS: dict[str, Callable[[SparkSession, str], tuple[Any, str]]] = {
    "delta": delta,
    "parquet": parquet,
}


def main(kind: str, folder: str, jars: str, out: str) -> None:
    spark = session(kind, jars)
    spark.sparkContext.setLogLevel("ERROR")
    frame, bound = READERS[kind](spark, folder)
    rows = frame.orderBy("rowtime").toArrow()
    schema = rows.schema.with_metadata({"said": json.dumps({"bound": bound})})
    with pa.OSFile(out, "wb") as file, pa.ipc.new_file(file, schema) as writer:
        writer.write_table(rows.replace_schema_metadata(schema.metadata))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
