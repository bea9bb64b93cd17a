"""The main job: a process with three producers sends orders and bounds; Spark counts per hour; a
third process reads each hour as soon as it is complete, and knows that it is.

Beside it runs the same count as plain Spark does it, on the same rows without their bounds.
"""

import multiprocessing
import sys
import tempfile
import time
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, count, window

import spark_rowtime as rt

HOURS = range(9, 13)
DAY = "2006-09-11T{:02d}:{:02d}:00Z"
SHOPS = ("Berlin", "Lisbon", "Oslo")


def adapter(orders: str, said: multiprocessing.Queue, go_on: multiprocessing.Event) -> None:
    """Three producers send an hour's rows, then promise that the hour is over: no row follows it."""
    sinks = {shop: rt.openSink(orders, producer=shop) for shop in SHOPS}
    for hour in HOURS:
        for number, sink in enumerate(sinks.values(), start=1):
            for minute in range(0, 60, 20 * number):
                sink.sendRow({"rowtime": DAY.format(hour, minute), "shop": SHOPS[number - 1], "units": number})
        for sink in sinks.values():
            sink.sendRowtimeBound(DAY.format(hour + 1, 0))
            sink.flush()
        said.put((hour + 1, time.time()))
        go_on.wait()  # until the hour has been seen: nothing else comes
        go_on.clear()
    for sink in sinks.values():
        sink.close()


def reader(hourly: str, seen: multiprocessing.Queue) -> None:
    """Follows the results: an hour is complete once the bound has passed its end."""
    for train in rt.openReader(hourly, follow=True):
        seen.put((train.rows.to_pylist(), train.bound, time.time()))


def per_hour(orders: DataFrame) -> DataFrame:
    """The query, as plain PySpark."""
    hours = orders.groupBy(window("rowtime", "1 hour")).agg(count("*").alias("orders"))
    return hours.select(col("window.end").alias("rowtime"), "orders")


def main() -> None:
    folder = Path(tempfile.mkdtemp(prefix="rowtime-"))
    orders, hourly = str(folder / "orders.rowtime"), str(folder / "hourly.rowtime")
    schema = "rowtime TIMESTAMP NOT NULL, shop STRING, units INT"
    rt.createStream(orders, schema)
    rt.createStream(hourly, "rowtime TIMESTAMP NOT NULL, orders BIGINT")

    builder = SparkSession.builder.master("local[2]").config("spark.sql.shuffle.partitions", 1)
    for setting in ("spark.ui.enabled", "spark.ui.showConsoleProgress"):
        builder = builder.config(setting, False)
    spark = rt.configure(builder).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")

    source = spark.readStream.format("rowtime").load(orders)
    query = (
        per_hour(source)
        .writeStream.format("rowtime")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .start(hourly)
    )
    without_bounds = spark.readStream.format("rowtime").option("bounds", "ignore").load(orders)
    plain = (
        per_hour(without_bounds.withWatermark("rowtime", "0 seconds"))
        .writeStream.format("memory")
        .queryName("plain")
        .start()
    )

    query.processAllAvailable()

    context = multiprocessing.get_context("spawn")
    said, seen, go_on = context.Queue(), context.Queue(), context.Event()
    processes = [
        context.Process(target=reader, args=(hourly, seen), daemon=True),
        context.Process(target=adapter, args=(orders, said, go_on), daemon=True),
    ]
    for process in processes:
        process.start()

    print("hour ending  orders  bound on the results  after the feed's bound  plain Spark at that moment")
    for _ in HOURS:
        hour, sent = said.get(timeout=240)
        rows, bound, came = [], None, 0.0
        while not rows:
            rows, bound, came = seen.get(timeout=240)
        plain.processAllAvailable()
        closed = spark.table("plain").count()
        end = rows[0]["rowtime"]
        print(
            f"{end:%H:%M}        {rows[0]['orders']:>6}  later than {bound.time:%H:%M}      "
            f"{1000 * (came - sent):5.0f} ms                {closed} of {hour - HOURS[0]} hours"
        )
        assert end.hour == hour
        assert bound >= rt.RowtimeBound(end, strict=True), "the hour came before it was complete"
        go_on.set()
    print("Plain Spark closes the last hour when a later row comes: tomorrow morning.")
    query.stop()
    plain.stop()
    spark.stop()


if __name__ == "__main__":
    sys.exit(main())
