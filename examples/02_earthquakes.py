"""A month of earthquakes: 15 seismic networks, each a producer, some silent for days.

    python examples/02_earthquakes.py usgs-quakes-2025-05.csv

The file is any CSV of the US Geological Survey's catalogue. `rowtime send` sorts it, attaches a
producer per network, and promises each hour as the feed passes it, so that a silent network holds
nobody back. Spark counts per hour and network and finds the largest magnitude; each hour is in the
results while the feed still runs. At the end the results are compared with a batch over the CSV.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import spark_rowtime as rt

COLUMNS = "time TIMESTAMP, net STRING, mag DOUBLE, place STRING"


def per_hour(quakes: DataFrame) -> DataFrame:
    """Count and largest magnitude per hour and network; the same for the stream and for the batch."""
    hours = quakes.groupBy(F.window("rowtime", "1 hour"), "net")
    counts = hours.agg(F.count("*").alias("n"), F.max("mag").alias("largest"))
    return counts.select(F.col("window.end").alias("rowtime"), "net", "n", "largest")


def ended(process: subprocess.Popen) -> bool:
    """Whether it ends within a moment."""
    try:
        process.wait(timeout=0.2)
    except subprocess.TimeoutExpired:
        return False
    return True


def main(file: str) -> None:
    folder = Path(tempfile.mkdtemp(prefix="rowtime-"))
    quakes, hourly = str(folder / "quakes.rowtime"), str(folder / "hourly.rowtime")
    builder = SparkSession.builder.master("local[2]").config("spark.sql.shuffle.partitions", 1)
    for name, value in (("spark.ui.enabled", "false"), ("spark.ui.showConsoleProgress", "false")):
        builder = builder.config(name, value)
    spark = rt.configure(builder.config("spark.sql.session.timeZone", "UTC")).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")

    rt.createStream(quakes, f"rowtime TIMESTAMP NOT NULL, {COLUMNS}")
    source = spark.readStream.format("rowtime").load(quakes)
    query = per_hour(source).writeStream.format("rowtime").option("checkpointLocation", str(folder / "c")).start(hourly)
    query.processAllAvailable()

    csv = spark.read.csv(file, header=True, inferSchema=True).withColumn("rowtime", F.col("time").cast("timestamp"))
    final = csv.select(F.date_trunc("hour", F.max("rowtime")) + F.expr("INTERVAL 1 HOUR")).first()[0]
    send = [sys.executable, "-m", "spark_rowtime.cli", "send", quakes, "--csv", file, "--columns", "time,net,mag,place"]
    send += ["--rowtime", "time", "--producer", "net", "--bounds", "1h", "--final", f"{final.isoformat()}Z"]
    feed = subprocess.Popen(send)
    early = 0
    while not ended(feed):
        early = rt.describeStream(hourly).rows
    assert feed.returncode == 0
    query.processAllAvailable()
    query.stop()

    streamed = {tuple(row) for row in spark.read.format("rowtime").load(hourly).collect()}
    batch = {tuple(row) for row in per_hour(csv).collect()}
    info = rt.describeStream(quakes)
    print(f"{info.rows} earthquakes of {len(info.producers)} networks, {info.rejected} rejected")
    print(f"{len(streamed)} hourly results, {early} of them while the feed still ran")
    print(f"the bound on them: {rt.describeStream(hourly).bound}")
    print(f"as the batch over the CSV: {streamed == batch}")
    assert streamed == batch
    spark.stop()


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(*sys.argv[1:])
