"""A cluster: feeds, a query whose tasks run on two workers, and a reader share streams in PostgreSQL.

All of it is started here, each in a process of its own: a PostgreSQL server, Spark's master and workers, two feeds, a
reader; this process is the driver. On several machines only the addresses differ; docs/howto/cluster.md says what each
needs. It takes half a minute, and needs `pip install 'spark-rowtime[postgres]'` and a PostgreSQL server.

It prints:

    Berlin: 3 orders, complete until 11:00
    Oslo: 2 orders, complete until 10:30
    2 executors have counted
    hour until 10:00: 4 orders
    every later row is at or after 2006-09-11T10:30:00.000001Z
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from cluster_processes import WORKERS, postgres, spark_cluster
from pyspark.sql import SparkSession
from pyspark.sql.functions import col, count, window

import spark_rowtime as rt

DAY = "2006-09-11T{}:00Z"
FEEDS = {"Berlin": (["09:05", "09:40", "10:20"], "11:00"), "Oslo": (["09:10", "09:50"], "10:30")}


def feed(orders: str, name: str) -> None:
    """On the machine of a shop: sends its orders, and says how far they are complete."""
    times, until = FEEDS[name]
    with rt.openSink(orders, producer=name) as sink:
        sink.sendRows([(DAY.format(time), 1) for time in times])
        sink.sendRowtimeBound(DAY.format(until))
        sink.flush()
        print(f"{name}: {len(times)} orders, complete until {until}")
        sys.stdout.flush()
        sys.stdin.read()  # it has more to send, so the stream waits for it


def count_hours(spark: SparkSession, orders: str, hours: str, checkpoint: Path) -> None:
    """The driver: a query over all that is there. Its tasks reach neither the database nor this machine's disk."""
    stream = spark.readStream.format("rowtime").load(orders)
    counts = stream.groupBy(window("rowtime", "1 hour")).agg(count("*").alias("orders"))
    query = (
        counts.select(col("window.end").alias("rowtime"), "orders")
        .writeStream.format("rowtime")
        .option("checkpointLocation", str(checkpoint))
        .start(hours)
    )
    query.processAllAvailable()
    query.stop()


def read(hours: str) -> None:
    """On the machine of a consumer."""
    with rt.openReader(hours) as reader:
        for train in reader:
            for hour in train.rows.to_pylist():
                print(f"hour until {hour['rowtime']:%H:%M}: {hour['orders']} orders")
        print(reader.getRowtimeBound())


def session(master: str) -> SparkSession:
    """The jar is shipped to the executors. Few rows travel with the tasks and need nothing else there."""
    builder = SparkSession.builder.master(master).config("spark.driver.host", "127.0.0.1")
    builder = builder.config("spark.executor.memory", "512m").config("spark.sql.shuffle.partitions", WORKERS)
    builder = builder.config("spark.scheduler.minRegisteredResourcesRatio", 1.0).config("spark.cores.max", WORKERS)
    builder = builder.config("spark.scheduler.maxRegisteredResourcesWaitingTime", "5min")
    builder = builder.config("spark.ui.enabled", False).config("spark.ui.showConsoleProgress", False)
    spark = rt.configure(builder).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def main(folder: Path) -> None:
    with postgres(folder / "postgres") as database, spark_cluster(folder) as master:
        orders, hours = f"{database}/shop/orders", f"{database}/shop/hours"
        rt.createStream(orders, "rowtime TIMESTAMP NOT NULL, units INT", producers=list(FEEDS))
        feeds = [started("feed", orders, name) for name in FEEDS]
        for process in feeds:
            print(process.stdout.readline().decode(), end="")
        spark = session(master)
        count_hours(spark, orders, hours, folder / "checkpoint")  # a folder that all machines see, or hdfs:, s3a:
        executors = len(spark.sparkContext._jsc.sc().statusTracker().getExecutorInfos()) - 1  # noqa: SLF001
        print(f"{executors} executors have counted", flush=True)
        subprocess.run([sys.executable, __file__, "read", hours], check=True)
        spark.stop()
        for process in feeds:
            process.communicate()


def started(*role: str) -> "subprocess.Popen[bytes]":
    """This program in another process, as a feed."""
    command = [sys.executable, __file__, *role]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["feed", stream, name]:
            feed(stream, name)
        case ["read", stream]:
            read(stream)
        case _:
            with tempfile.TemporaryDirectory(prefix="rowtime-", ignore_cleanup_errors=True) as place:
                main(Path(place))
