"""SQL alone: a stream as a table, a streaming query with windows, late rows and bounds as tables.

Spark has no SQL statement that starts a streaming query, so `writeStream` starts it. All else is SQL.

It prints:

    11:00 product 10: 3 units
    11:00 product 20: 4 units
    late: 10:10, below the bound 10:40
    Berlin: bound 11:00, 2 accepted, 1 rejected
"""

import logging
import tempfile
from pathlib import Path

from pyspark.sql import SparkSession

import spark_rowtime as rt

DAY = "2006-09-11T{}:00Z"

TABLES = """
    CREATE TABLE orders USING rowtime OPTIONS (path '{orders}');
    CREATE TEMPORARY VIEW late_orders USING rowtime OPTIONS (path '{orders}', view 'rejected');
    CREATE TEMPORARY VIEW order_producers USING rowtime OPTIONS (path '{orders}', view 'producers')
"""

HOURLY = """
    SELECT window.end AS rowtime, product, sum(units) AS units
    FROM STREAM orders
    GROUP BY window(rowtime, '1 hour'), product
"""

RESULTS = "SELECT date_format(rowtime, 'HH:mm') AS hour, product, units FROM hourly ORDER BY product"
LATE = "SELECT date_format(rowtime, 'HH:mm') AS time, date_format(bound, 'HH:mm') AS bound FROM late_orders"
PRODUCERS = "SELECT producer, date_format(bound, 'HH:mm') AS bound, accepted, rejected FROM order_producers"


def main() -> None:
    folder = Path(tempfile.mkdtemp(prefix="rowtime-"))
    orders = str(folder / "orders.rowtime")
    rt.createStream(orders, "rowtime TIMESTAMP NOT NULL, product INT, units INT")
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", False)
    builder = builder.config("spark.sql.session.timeZone", "UTC")
    builder = builder.config("spark.sql.warehouse.dir", str(folder / "warehouse"))
    spark = rt.configure(builder).getOrCreate()
    for statement in TABLES.format(orders=orders).split(";"):
        spark.sql(statement)

    query = spark.sql(HOURLY).writeStream.format("memory").queryName("hourly").start()
    logging.getLogger("spark_rowtime.laterow").setLevel(logging.ERROR)
    with rt.openSink(orders, producer="Berlin", onLate="reject") as sink:
        sink.sendRows([(DAY.format("10:05"), 10, 3), (DAY.format("10:40"), 20, 4), (DAY.format("10:10"), 30, 5)])
        sink.sendRowtimeBound(DAY.format("11:00"))
    query.processAllAvailable()
    query.stop()

    for row in spark.sql(RESULTS).collect():
        print(f"{row.hour} product {row.product}: {row.units} units")
    for row in spark.sql(LATE).collect():
        print(f"late: {row.time}, below the bound {row.bound}")
    for row in spark.sql(PRODUCERS).collect():
        print(f"{row.producer}: bound {row.bound}, {row.accepted} accepted, {row.rejected} rejected")
    for view in ("hourly", "late_orders", "order_producers"):
        spark.catalog.dropTempView(view)
    spark.sql("DROP TABLE orders")  # the stream itself stays
    spark.stop()


if __name__ == "__main__":
    main()
