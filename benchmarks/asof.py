"""asofJoin of orders and rates, against Spark's join of the two streams by the time for which each rate is valid.

Rows of both sides a CPU second, at few and at many keys. Both read the same rows at rest, at once: one batch of
Trigger.AvailableNow, with bounds behind the rows. The rates of the join have the time of the next one, which asofJoin
does not need. CPU seconds are of the whole process tree. DuckDB joins the same rows in memory, for comparison.
Then the bytes of the state and of memory, and the CPU seconds of a batch, as a million keys get new rates each round.
"""

import os
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import expr
from sliding import ROCKSDB
from source_throughput import CpuMeter

import spark_rowtime as rt
from harness import figure, folder, report, session
from spark_rowtime.operators import asofJoin

START = datetime(2026, 1, 1, tzinfo=UTC)
SPAN = timedelta(hours=8)
COLUMNS = {"orders": "product BIGINT, units DOUBLE", "rates": "product BIGINT, rate DOUBLE, valid_to TIMESTAMP"}
VALID = "o.product = r.product AND o.rowtime >= r.rowtime AND o.rowtime < r.valid_to"
SIDES = {"orders": 200_000, "rates": 40_000}
ROUNDS = 3
STATE_KEYS, STATE_ROUNDS = 1_000_000, 8


def table(chance: np.random.Generator, rows: int, keys: int, since: timedelta, name: str) -> pa.Table:
    """``rows`` rows over eight hours from ``since`` on, in order; the rates of a key follow each other."""
    first = int((START + since).timestamp() * 1e6)
    micros = first + np.sort(chance.integers(0, SPAN // timedelta(microseconds=1), rows))
    products = chance.integers(0, keys, rows) if name == "orders" else np.arange(rows) % keys
    columns = {"rowtime": times(micros), "product": pa.array(products), "value": pa.array(chance.random(rows))}
    if name == "rates":
        end = first + SPAN // timedelta(microseconds=1)
        columns["valid_to"] = times(np.append(micros[keys:], np.full(min(keys, rows), end)))
    return pa.table(list(columns.values()), names=["rowtime", *[c.split()[0] for c in COLUMNS[name].split(", ")]])


def times(micros: "np.ndarray[tuple[int], np.dtype[np.int64]]") -> pa.Array:
    return pa.array(micros).cast(pa.timestamp("us", "UTC"))


def send(path: str, rows: pa.Table, bound: datetime) -> None:
    with rt.openSink(path, linger="1 hour") as sink:
        sink.sendRows(rows)
        sink.sendRowtimeBound(bound)


def tables(rows: dict[str, int], keys: int) -> dict[str, pa.Table]:
    chance = np.random.default_rng(4711)
    return {name: table(chance, rows[name], keys, timedelta(0), name) for name in COLUMNS}


def sent(path: Path, rows: dict[str, int], keys: int) -> None:
    for name, content in tables(rows, keys).items():
        rt.createStream(str(path / name), f"rowtime TIMESTAMP NOT NULL, {COLUMNS[name]}")
        send(str(path / name), content, START + 2 * SPAN)


def in_duckdb(meter: CpuMeter, rows: dict[str, int], keys: int) -> float:
    """Rows a CPU second of DuckDB's ASOF JOIN of the same rows, which are in memory."""
    connection = duckdb.connect()
    for name, content in tables(rows, keys).items():
        connection.register(name, content)
    before = meter.sample()
    connection.sql(
        "SELECT o.*, r.rate FROM orders o ASOF JOIN rates r ON o.product = r.product AND o.rowtime >= r.rowtime"
    ).fetch_arrow_table()
    return sum(rows.values()) / (meter.sample() - before)


def ours(orders: DataFrame, rates: DataFrame) -> DataFrame:
    return asofJoin(orders, rates.drop("valid_to"), by="product", how="inner")


def joined(orders: DataFrame, rates: DataFrame) -> DataFrame:
    longest = f"o.rowtime <= r.rowtime + INTERVAL {int(SPAN.total_seconds())} SECONDS"
    both = orders.alias("o").join(rates.alias("r"), expr(f"{VALID} AND {longest}"))
    return both.select("o.*", "r.rate")


def run(spark: SparkSession, query: object, path: Path, checkpoint: Path) -> float:
    """Runs the query over all that is there; returns the bytes of its state."""
    streams = [spark.readStream.format("rowtime").load(str(path / name)) for name in COLUMNS]
    writer = query(*streams).writeStream.format("noop").option("checkpointLocation", str(checkpoint))  # type: ignore[operator]
    started = writer.trigger(availableNow=True).start()
    started.awaitTermination()
    return sum(float(o.customMetrics.get("rocksdbSstFileSize", 0)) for o in started.lastProgress.stateOperators)


def growth(spark: SparkSession, meter: CpuMeter, path: Path, keys: int) -> None:
    """Each round has one rate of each key, and one order for each ten keys."""
    sides = {"orders": keys // 10, "rates": keys}
    sent(path, sides, keys)
    chance, sizes, memory, seconds = np.random.default_rng(1), [], [], []
    for turn in range(STATE_ROUNDS):
        before = meter.sample()
        sizes.append(run(spark, ours, path, path / "checkpoint") / 1e6)
        seconds.append(meter.sample() - before)
        memory.append(resident() / 1e6)
        print(turn, sizes[-1], "MB", seconds[-1], "CPU s", memory[-1], "MB", flush=True)
        for name, rows in sides.items():
            since = 2 * (turn + 1) * SPAN
            send(str(path / name), table(chance, rows, keys, since, name), START + since + 2 * SPAN)
    half = STATE_ROUNDS // 2
    figure(f"as of, {keys:,} keys, state of a key", [size * 1e6 / keys for size in sizes[1:]], "bytes")
    for what, values, unit in (
        ("state", sizes, "MB"),
        ("memory of all processes", memory, "MB"),
        ("batch", seconds, "CPU s"),
    ):
        print(what, [round(value, 1) for value in values], unit, flush=True)
        report(f"as of, {keys:,} keys, {what}", values[half:], values[1:half], unit, "in earlier batches")


def resident() -> float:
    """The bytes of this process and its descendants in memory, of shared pages their part."""
    todo, total = [os.getpid()], 0
    while todo:
        pid = todo.pop()
        try:
            rolled = Path(f"/proc/{pid}/smaps_rollup").read_text()
            for task in Path(f"/proc/{pid}/task").iterdir():
                todo += [int(child) for child in (task / "children").read_text().split()]
        except OSError:
            continue
        total += next(int(line.split()[1]) for line in rolled.splitlines() if line.startswith("Pss:")) * 1024
    return total


def throughput(spark: SparkSession, meter: CpuMeter, path: Path, keys: int) -> float:
    """Rows a CPU second of both, in turns; the first turn does not count. Returns the ratio."""
    sent(path, SIDES, keys)
    rows, found = sum(SIDES.values()), {"ours": list[float](), "base": list[float]()}
    for turn in range(ROUNDS + 1):
        for name, query in (("ours", ours), ("base", joined)):
            before = meter.sample()
            run(spark, query, path, path / f"{name}-{turn}")
            found[name].append(rows / (meter.sample() - before))
            print(keys, name, found[name][-1], flush=True)
    what, base = f"as of, {keys:,} keys", "Spark's join by the times of validity"
    figure(f"{what}, DuckDB in memory", [in_duckdb(meter, SIDES, keys) for _ in range(ROUNDS)], "rows/CPU s")
    return report(what, found["ours"][1:], found["base"][1:], "rows/CPU s", base)


def main(*parts: str) -> None:
    """All parts, or those that are named: numbers of keys, and ``growth``."""
    more = {"spark.sql.streaming.stateStore.providerClass": ROCKSDB, "spark.sql.shuffle.partitions": "2"}
    spark, meter = session(**more), CpuMeter()
    with folder() as path:
        for part in parts or ("1000", "100000", "growth"):
            if part == "growth":
                growth(spark, meter, path / part, STATE_KEYS)
            else:
                throughput(spark, meter, path / part, int(part))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
