"""Declarative pipelines: a flow reads a rowtime stream, and its results go into another one. For Spark 4.1 and later.

`spark-pipelines run` starts Spark itself, so the jar and the extension are its arguments. A run takes what is there,
and the last hour is in the results, because the stream's bound has closed it. It needs
`pip install grpcio grpcio-status googleapis-common-protos zstandard pyyaml`.

It prints:

    10:00 to 11:00: 2 orders, 7 units
    every later row is at or after 2006-09-11T11:00:00.000001Z
"""

import os
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

import spark_rowtime as rt

NEEDED = ("grpc", "grpc_status", "zstandard", "yaml", "pyspark.pipelines")

FLOWS = """
import os

from pyspark import pipelines as dp
from pyspark.sql import SparkSession, functions as f

spark = SparkSession.active()
folder = os.environ["ORDERS"]


@dp.temporary_view
def hours():
    orders = spark.readStream.format("rowtime").load(f"{folder}/orders.rowtime")
    totals = f.count("*").alias("orders"), f.sum("units").alias("units")
    sums = orders.groupBy(f.window("rowtime", "1 hour")).agg(*totals)
    return sums.select(f.col("window.end").alias("rowtime"), "orders", "units")


dp.create_sink("hourly_stream", "rowtime", {"path": f"{folder}/hourly.rowtime"})


@dp.append_flow(target="hourly_stream", name="hourly")
def hourly():
    return spark.readStream.table("hours")
"""


def run(folder: Path) -> None:
    """Runs the pipeline until all that is there is in its results."""
    (folder / "flows.py").write_text(FLOWS)
    spec = "name: orders\nstorage: file://{0}/state\nlibraries:\n  - glob:\n      include: flows.py\n"
    (folder / "spark-pipeline.yml").write_text(spec.format(folder))
    program = Path(sys.executable).with_name("spark-pipelines")
    extension = ["--jars", rt.jarPath(), "--conf", "spark.sql.extensions=sparkrowtime.RowtimeExtensions"]
    environment = {**os.environ, "ORDERS": str(folder), "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run(
        [program, "run", *extension, "--spec", folder / "spark-pipeline.yml"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(done.stdout + done.stderr)


def main() -> None:
    folder = Path(tempfile.mkdtemp(prefix="rowtime-"))
    orders, hourly = str(folder / "orders.rowtime"), str(folder / "hourly.rowtime")
    rt.createStream(orders, "rowtime TIMESTAMP NOT NULL, units INT")
    with rt.openSink(orders, producer="Berlin") as sink:
        sink.sendRows([("2006-09-11T10:05:00Z", 3), ("2006-09-11T10:40:00Z", 4)])
        sink.sendRowtimeBound("2006-09-11T11:00:00Z")
    run(folder)

    for train in rt.openReader(hourly):
        for row in train.rows.to_pylist():
            end = row["rowtime"]
            print(f"{end.hour - 1}:00 to {end:%H:%M}: {row['orders']} orders, {row['units']} units")
        print(train.bound)


if __name__ == "__main__":
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        sys.exit(f"Declarative pipelines need {', '.join(missing)}; see the top of this file.")
    main()
