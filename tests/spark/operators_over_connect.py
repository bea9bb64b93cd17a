"""A program that runs the operators over Spark Connect, with a server of its own, and writes the results as JSON."""

import json
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

import spark_rowtime as rt
from spark_rowtime.operators import asofJoin, matchRecognize
from tests.spark.test_match_recognize import V
from tests.sparksession import SETTINGS
from tests.streams import drained

SQL = "SELECT o.*, r.rate FROM orders o ASOF JOIN rates r MATCH_CONDITION (o.rowtime >= r.rowtime) USING (ticker)"


def main(folder: str) -> None:
    builder = SparkSession.builder.remote("local[2]").config("spark.sql.join.asofJoin.enabled", "true")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    spark = rt.configure(builder).getOrCreate()
    orders, rates, prices = (
        spark.readStream.format("rowtime").load(f"{folder}/{name}.rowtime") for name in ("orders", "rates", "prices")
    )
    orders.createOrReplaceTempView("orders")
    rates.createOrReplaceTempView("rates")
    said = {
        "joined": rows(folder, "joined", asofJoin(orders, rates, by="ticker")),
        "sql": rows(folder, "sql", spark.sql(SQL)),
        "matched": rows(folder, "matched", matchRecognize(prices, "ticker", **V, within="10 minutes")),
    }
    spark.stop()
    Path(folder, "said.json").write_text(json.dumps(said, default=str))


def rows(folder: str, name: str, frame: DataFrame) -> list[tuple[Any, ...]]:
    """The rows that a query over the frame has written."""
    sink = frame.writeStream.format("rowtime").option("checkpointLocation", f"{folder}/{name}-checkpoint")
    query = sink.trigger(availableNow=True).start(f"{folder}/{name}.rowtime")
    query.awaitTermination()
    with rt.openReader(f"{folder}/{name}.rowtime", order="arrival") as reader:
        return drained(reader)


if __name__ == "__main__":
    main(*sys.argv[1:])
