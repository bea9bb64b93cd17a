"""Declarative pipelines over Delta tables with bounds in their commits. For Spark 4.1 and 4.2.

A drain fills the table of orders. Silver has those of a shop, gold counts silver by hour; both flows write the bound of
their output into the commits of their tables. So the last hour is in gold after one run, and whoever reads gold knows
up to when it is complete. `spark-pipelines run` starts Spark itself, so jars and extensions are its arguments. It needs
`pip install 'pyspark~=4.2.0' 'spark-rowtime[delta]' grpcio grpcio-status googleapis-common-protos zstandard pyyaml`.

The first run fetches Delta's jars from Maven Central. An argument names jars that are there already, separated by
commas.

It prints:

    gold: 11:00 2 orders, 12:00 1 orders
    gold is complete up to 12:00
"""

import os
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder
from pyspark import __version__

import spark_rowtime as rt

NEEDED = ("grpc", "grpc_status", "zstandard", "yaml", "pyspark.pipelines")
EXTENSIONS = "spark.sql.extensions=io.delta.sql.DeltaSparkSessionExtension,sparkrowtime.RowtimeExtensions"
PACKAGE = f"io.delta:delta-spark_{'.'.join(__version__.split('.')[:2])}_2.13:4.4.0"
DAY = "2026-01-05T{}:00Z"

FLOWS = """
import os

from pyspark import pipelines as dp
from pyspark.sql import SparkSession, functions as f

import spark_rowtime as rt

spark = SparkSession.active()


@dp.table(format="delta", spark_conf={"spark.rowtime.tableBound": "rowtime"})
def silver():
    orders = spark.readStream.format("delta").load(os.environ["ORDERS"])
    return rt.punctuate(orders, "rowtime").where("shop IS NOT NULL")


@dp.table(format="delta", spark_conf={"spark.rowtime.tableBound": "end"})
def gold():
    orders = rt.punctuate(spark.readStream.table("silver").where("rowtime IS NOT NULL"), "rowtime")
    return orders.groupBy(f.window("rowtime", "1 hour")).count().select("window.end", "count")
"""


SPEC = """
name: lake
storage: file://{}/state
libraries:
  - glob:
      include: flows.py
configuration:
  spark.sql.catalog.spark_catalog: org.apache.spark.sql.delta.catalog.DeltaCatalog
  spark.sql.shuffle.partitions: "1"
  spark.databricks.delta.snapshotPartitions: "1"
"""


def orders(lake: Path) -> str:
    """A stream of orders that is drained into a table; returns the path of that."""
    stream, table = str(lake / "orders.rowtime"), str(lake / "orders")
    rt.createStream(stream, "rowtime TIMESTAMP NOT NULL, shop STRING")
    with rt.openSink(stream, producer="shop") as sink:
        sink.sendRows([(DAY.format(time), "Berlin") for time in ("10:05", "10:20", "11:30")])
        sink.sendRowtimeBound(DAY.format("12:00"))
    with rt.openReader(stream) as reader, rt.openTableSink(f"delta:{table}", reader.schema) as sink:
        reader.drainTo(sink)
    return table


def run(lake: Path, table: str, jars: str) -> None:
    """Runs the pipeline until all that is there is in its results."""
    (lake / "flows.py").write_text(FLOWS)
    (lake / "spark-pipeline.yml").write_text(SPEC.format(lake))
    program = Path(sys.executable).with_name("spark-pipelines")
    of_delta = ["--jars", f"{rt.jarPath()},{jars}"] if jars else ["--jars", rt.jarPath(), "--packages", PACKAGE]
    environment = {**os.environ, "ORDERS": table, "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run(
        [program, "run", *of_delta, "--conf", EXTENSIONS, "--spec", lake / "spark-pipeline.yml"],
        cwd=lake,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(done.stdout + done.stderr)


def main(jars: str = "") -> None:
    lake = Path(tempfile.mkdtemp(prefix="rowtime-"))
    run(lake, orders(lake), jars)

    gold = lake / "spark-warehouse" / "gold"
    found = QueryBuilder().register("gold", DeltaTable(str(gold))).execute("SELECT * FROM gold")
    hours = sorted((row["end"], row["count"]) for row in pa.table(found).to_pylist())
    print("gold: " + ", ".join(f"{end:%H:%M} {count} orders" for end, count in hours))
    bound = rt.readTableBound(f"delta:{gold}")
    print(f"gold is complete up to {bound.time:%H:%M}" if bound else "gold has no bound")


if __name__ == "__main__":
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        sys.exit(f"Declarative pipelines need {', '.join(missing)}; see the top of this file.")
    main(*sys.argv[1:])
