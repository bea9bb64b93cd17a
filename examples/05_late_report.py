"""A late report: which rows were rejected, from which producer, and how late they were.

The sink rejects late rows and goes on with the rest (`onLate="reject"`). Nothing is lost silently:
the rejected rows are a table, `option("view", "rejected")`, with the bound that they fell below.

It prints:

    received 6 = accepted 4 + rejected 2
    Berlin: 2 late rows, at most 20 minutes late: 09:40 and 09:55
    Oslo: no late row
"""

import logging
import tempfile
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import spark_rowtime as rt

DAY = "2006-09-11T{}:00Z"


def send(orders: str) -> None:
    """Two producers; Berlin sends two rows after it has sent a later one."""
    rt.createStream(orders, "rowtime TIMESTAMP NOT NULL, units INT")
    logging.getLogger("spark_rowtime.laterow").setLevel(logging.ERROR)  # it would log the first late row, the tenth ...
    berlin, oslo = (rt.openSink(orders, producer=name, onLate="reject") for name in ("Berlin", "Oslo"))
    with berlin, oslo:
        oslo.sendRow((DAY.format("09:45"), 7))
        for clock, units in (("09:30", 1), ("10:00", 2), ("09:55", 3), ("09:40", 4), ("10:10", 5)):
            berlin.sendRow((DAY.format(clock), units))


def main() -> None:
    orders = str(Path(tempfile.mkdtemp(prefix="rowtime-")) / "orders.rowtime")
    send(orders)
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", False)
    spark = rt.configure(builder.config("spark.sql.session.timeZone", "UTC")).getOrCreate()

    rejected = spark.read.format("rowtime").option("view", "rejected").load(orders)
    report = rejected.groupBy("producer").agg(
        F.count("*").alias("rows"),
        F.max((F.unix_micros("bound") - F.unix_micros("rowtime")) / 60_000_000).cast("int").alias("minutes"),
        F.sort_array(F.collect_list(F.date_format("rowtime", "HH:mm"))).alias("times"),
    )
    late = {row.producer: row for row in report.collect()}

    info = rt.describeStream(orders)
    print(f"received 6 = accepted {info.rows} + rejected {info.rejected}")
    for producer in info.producers:
        row = late.get(producer.name)
        if row is None:
            print(f"{producer.name}: no late row")
        else:
            times = " and ".join(row.times)
            print(f"{producer.name}: {row.rows} late rows, at most {row.minutes} minutes late: {times}")
    spark.stop()


if __name__ == "__main__":
    main()
