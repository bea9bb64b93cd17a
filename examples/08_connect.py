"""Spark Connect: the same query over a remote session. The extension has to be the server's.

`rt.configure(SparkSession.builder.remote("local[2]"))` starts a local server with the jar and the
extension. For a server elsewhere, start it with what java-shim/README.md says. The client needs
`pip install grpcio grpcio-status googleapis-common-protos zstandard`.

It prints:

    [('11:00', 2)] every later row is at or after 2006-09-11T11:00:00.000001Z
"""

import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.functions import col, count, window

import spark_rowtime as rt

CLIENT = ("grpc", "grpc_status", "zstandard")


def main() -> None:
    folder = Path(tempfile.mkdtemp(prefix="rowtime-"))
    orders, hourly = str(folder / "orders.rowtime"), str(folder / "hourly.rowtime")
    rt.createStream(orders, "rowtime TIMESTAMP NOT NULL, units INT")
    spark = rt.configure(SparkSession.builder.remote("local[2]").config("spark.ui.enabled", False)).getOrCreate()

    hours = spark.readStream.format("rowtime").load(orders).groupBy(window("rowtime", "1 hour"))
    query = (
        hours.agg(count("*").alias("orders"))
        .select(col("window.end").alias("rowtime"), "orders")
        .writeStream.format("rowtime")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .start(hourly)
    )
    with rt.openSink(orders, producer="Berlin") as sink:
        sink.sendRows([("2006-09-11T10:05:00Z", 3), ("2006-09-11T10:40:00Z", 4)])
        sink.sendRowtimeBound("2006-09-11T11:00:00Z")
    query.processAllAvailable()
    query.stop()

    for train in rt.openReader(hourly):
        print([(f"{row['rowtime']:%H:%M}", row["orders"]) for row in train.rows.to_pylist()], train.bound)
    spark.stop()


if __name__ == "__main__":
    missing = [name for name in CLIENT if find_spec(name) is None]
    if missing:
        sys.exit(f"Spark Connect needs {', '.join(missing)}; see the top of this file.")
    main()
