# %% [markdown]
"""A notebook session. Editors show each part between `# %%` as a cell; the file also runs as a program.

Results go into memory tables, so that a cell can show them. `processAllAvailable` waits until the
query has done all that is there. A producer is opened in one cell and used in later ones.

It prints:

    [Row(hour='10:00', orders=2)]
    no bound beyond 10:00: the stream waits for Oslo
    [Row(hour='10:00', orders=2), Row(hour='11:00', orders=1)]
"""

# %% A session and a stream
import tempfile

from pyspark.sql import SparkSession

import spark_rowtime as rt

folder = tempfile.mkdtemp(prefix="rowtime-")
orders = f"{folder}/orders.rowtime"
rt.createStream(orders, "rowtime TIMESTAMP NOT NULL, units INT")
builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", False)
spark = rt.configure(builder.config("spark.sql.session.timeZone", "UTC")).getOrCreate()

# %% A query into a table in memory
spark.readStream.format("rowtime").load(orders).createOrReplaceTempView("live_orders")
hours = spark.sql("""
    SELECT date_format(window.end, 'HH:mm') AS hour, count(*) AS orders
    FROM live_orders GROUP BY window(rowtime, '1 hour')
""")
query = hours.writeStream.format("memory").queryName("hours").start()

# %% Two producers. Keep them open: the next cells use them
berlin, oslo = rt.openSink(orders, producer="Berlin"), rt.openSink(orders, producer="Oslo")
berlin.sendRow(("2006-09-11T09:10:00Z", 1))
oslo.sendRow(("2006-09-11T09:30:00Z", 2))
for sink in (berlin, oslo):
    sink.sendRowtimeBound("2006-09-11T10:00:00Z")
    sink.flush()
query.processAllAvailable()
print(spark.table("hours").collect())

# %% Why is there no output? Only Berlin has promised 11:00
berlin.sendRow(("2006-09-11T10:10:00Z", 1))
berlin.sendRowtimeBound("2006-09-11T11:00:00Z")
berlin.flush()
query.processAllAvailable()
info = rt.describeStream(orders)
print(f"no bound beyond {info.bound.time:%H:%M}: the stream waits for {info.holder}")

# %% Oslo has no more orders today; it leaves, and holds nobody back
oslo.close()
query.processAllAvailable()
print(spark.table("hours").orderBy("hour").collect())

# %% In the end
berlin.close()
query.stop()
for view in ("hours", "live_orders"):
    spark.catalog.dropTempView(view)
spark.stop()
