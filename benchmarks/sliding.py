"""slidingAggregate over a stream, against Spark's SQL window function over the same rows as a table.

Rows a CPU second at few and at many keys. Both read the same rows at rest, at once: the stream in one batch of
Trigger.AvailableNow, with a bound behind its rows. CPU seconds are of the whole process tree.
"""

import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from source_throughput import CpuMeter

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


def streamed(spark: SparkSession, path: str, out: Path) -> None:
    writer = average(spark.readStream.format("rowtime").load(path)).writeStream.format("noop")
    query = writer.option("checkpointLocation", str(out)).trigger(availableNow=True).start()
    query.awaitTermination()


def in_batch(spark: SparkSession, path: str) -> None:
    average(spark.read.format("rowtime").load(path)).write.format("noop").mode("overwrite").save()


def main(rows: int = 2_000_000, rounds: int = 3) -> float:
    more = {"spark.sql.streaming.stateStore.providerClass": ROCKSDB, "spark.sql.shuffle.partitions": "2"}
    spark, meter = session(**more), CpuMeter()
    ratios = []
    with folder() as path:
        for keys in (100, 10_000):
            stream = str(path / f"{keys}.rowtime")
            send(stream, rows, keys)
            ours, base = [], []
            for turn in range(rounds + 1):
                start = meter.sample()
                streamed(spark, stream, path / f"{keys}-{turn}")
                middle = meter.sample()
                in_batch(spark, stream)
                ours.append(rows / (middle - start))
                base.append(rows / (meter.sample() - middle))
            what = f"sliding hour, {keys:,} keys"
            ratios.append(report(what, ours[1:], base[1:], "rows/CPU s", "SQL window function in batch"))
    spark.stop()
    return min(ratios)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
