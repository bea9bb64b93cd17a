"""A join of two streams: orders with their shipments within an hour, and orders that were not shipped.

It is a left outer join in plain PySpark. An order without a shipment is known as soon as the shipments'
bound has passed its hour. No later shipment is needed, and the state of the join is freed by the bounds.

It prints:

    order 1: shipped at 10:45
    order 2: not shipped within an hour
    every later row is at or after 2006-09-11T11:30:00Z
"""

import tempfile
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import expr

import spark_rowtime as rt

DAY = "2006-09-11T{}:00Z"


def shipped(orders: DataFrame, shipments: DataFrame) -> DataFrame:
    """Each order with its shipment; null where it was not shipped within an hour."""
    within_an_hour = expr("o.id = s.id AND s.rowtime >= o.rowtime AND s.rowtime <= o.rowtime + INTERVAL 60 MINUTES")
    joined = orders.alias("o").join(shipments.alias("s"), within_an_hour, "left_outer")
    return joined.selectExpr("o.rowtime", "o.id", "s.rowtime AS shipped")


def main() -> None:
    folder = Path(tempfile.mkdtemp(prefix="rowtime-"))
    orders, shipments, out = (str(folder / f"{name}.rowtime") for name in ("orders", "shipments", "out"))
    for path in (orders, shipments):
        rt.createStream(path, "rowtime TIMESTAMP NOT NULL, id INT")
    spark = rt.configure(SparkSession.builder.master("local[2]").config("spark.ui.enabled", False)).getOrCreate()

    streams = [spark.readStream.format("rowtime").load(path) for path in (orders, shipments)]
    query = (
        shipped(*streams)
        .writeStream.format("rowtime")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .start(out)
    )
    with rt.openSink(orders, producer="shop") as shop, rt.openSink(shipments, producer="harbour") as harbour:
        shop.sendRows([(DAY.format("10:00"), 1), (DAY.format("10:10"), 2)])
        shop.sendRowtimeBound(DAY.format("11:30"))
        harbour.sendRow((DAY.format("10:45"), 1))
        harbour.sendRowtimeBound(DAY.format("13:00"))
    query.processAllAvailable()
    query.stop()

    for train in rt.openReader(out):
        for row in train.rows.to_pylist():
            said = f"shipped at {row['shipped']:%H:%M}" if row["shipped"] else "not shipped within an hour"
            print(f"order {row['id']}: {said}")
    print(rt.describeStream(out).bound)
    spark.stop()


if __name__ == "__main__":
    main()
