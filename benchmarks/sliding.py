"""slidingAggregate over a stream, against Spark's SQL window function over the same rows as a table.

Rows a second at few and at many keys. The stream is read in eight batches, with a bound in each; the
table at once, which is what streaming costs: the batch keeps no state and waits for nothing.
"""

import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

import spark_rowtime as rt
from harness import folder, report, session
from spark_rowtime.operators import slidingAggregate

START = datetime(2026, 1, 1, tzinfo=UTC)
SPAN = timedelta(hours=8)
BATCHES = 8
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def send(path: str, rows: int, keys: int) -> None:
    """``rows`` rows over eight hours, in order."""
    rt.createStream(path, "rowtime TIMESTAMP NOT NULL, product BIGINT, units DOUBLE")
    chance = np.random.default_rng(4711)
    micros = int(START.timestamp() * 1e6) + np.sort(chance.integers(0, SPAN // timedelta(microseconds=1), rows))
    columns = [
        pa.array(micros).cast(pa.timestamp("us", "UTC")),
        pa.array(chance.integers(0, keys, rows)),
        pa.array(chance.random(rows)),
    ]
    table = pa.table(columns, names=["rowtime", "product", "units"])
    with rt.openSink(path, linger="1 hour") as sink:
        for batch in table.to_batches(max_chunksize=rows // BATCHES):
            sink.sendRows(batch)
            sink.flush()
        sink.sendRowtimeBound(START + 2 * SPAN)


def average(df: DataFrame) -> DataFrame:
    return slidingAggregate(df, "product", interval="1 hour", aggregates={"average": ("avg", "units")})


def streamed(spark: SparkSession, path: str, rows: int, out: Path) -> float:
    reader = spark.readStream.format("rowtime").option("maxRowsPerTrigger", rows // BATCHES)
    writer = average(reader.load(path)).writeStream.format("noop").option("checkpointLocation", str(out))
    start = time.perf_counter()
    query = writer.start()
    query.processAllAvailable()
    took = time.perf_counter() - start
    query.stop()
    return rows / took


def in_batch(spark: SparkSession, path: str, rows: int) -> float:
    start = time.perf_counter()
    average(spark.read.format("rowtime").load(path)).write.format("noop").mode("overwrite").save()
    return rows / (time.perf_counter() - start)


def main(rows: int = 800_000, rounds: int = 3) -> float:
    more = {"spark.sql.streaming.stateStore.providerClass": ROCKSDB, "spark.sql.shuffle.partitions": "2"}
    spark = session(**more)
    ratios = []
    with folder() as path:
        for keys in (100, 10_000):
            stream = str(path / f"{keys}.rowtime")
            send(stream, rows, keys)
            ours, base = [], []
            for turn in range(rounds + 1):
                ours.append(streamed(spark, stream, rows, path / f"{keys}-{turn}"))
                base.append(in_batch(spark, stream, rows))
            what = f"sliding hour, {keys:,} keys"
            ratios.append(report(what, ours[1:], base[1:], "rows/s", "SQL window function in batch"))
    spark.stop()
    return min(ratios)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
