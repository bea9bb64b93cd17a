"""The Spark session of the tests, and helpers that wait for queries and never sleep for a fixed time."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyspark
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import DataStreamReader, StreamingQuery

import spark_rowtime as rt

ROOT = Path(__file__).resolve().parents[1]
STATE_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
"""Required by transformWithState, and by a join's state in format 3 or 4."""
HEAP_STORE = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
"""Spark's default. A batch takes two thirds of the time that RocksDB takes."""
ADAPTERS = (
    *("tests.crash.numbers:Numbers", "tests.spark.hosted_feed:Feed", "tests.spark.hosted_feed:Shops"),
    *("spark_rowtime.kafka:KafkaFeed", "tests.kafka.feeds:allowed", "env:ROWTIME_TEST_ALLOWED"),
)
"""What queries may host, and the functions and environment variables that these may name."""
SETTINGS = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.rowtime.adapters": ", ".join(ADAPTERS),
    "spark.ui.showConsoleProgress": "false",
    "spark.python.authenticate.socketTimeout": "240s",
    STATE_PROVIDER: ROCKSDB,
}
EVOLUTION = {
    "spark.sql.streaming.queryEvolution.enableSourceEvolution": "true",
    "spark.sql.streaming.offsetLog.formatVersion": "2",
}
"""With these, each source of a query has a name (HAS_NAMES), by which the query's checkpoint knows it."""
HAS_NAMES = hasattr(DataStreamReader, "name")
"""Whether this Spark has names of sources."""
HAS_ASOF_JOIN = tuple(map(int, pyspark.__version__.split(".")[:2])) >= (4, 3)
"""Whether this Spark's SQL has ASOF JOIN."""

NATIVE_READ, NATIVE_WRITE = "spark.rowtime.nativeRead", "spark.rowtime.nativeWrite"
"""The switches of the native paths. With "false", rows go through Python."""


def make_session(**more: str) -> SparkSession:
    """A local session with the extension, built as a user builds it."""
    _name_path()
    builder = SparkSession.builder.master("local[2]").appName("spark-rowtime tests")
    for name, value in {**SETTINGS, **more}.items():
        builder = builder.config(name, value)
    session = rt.configure(builder).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def _name_path() -> None:
    """Names this project in PYTHONPATH: processes of adapters do not look into the current folder."""
    named = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys([*filter(None, named), str(ROOT)]))


def wait_for(condition: Callable[[], Any], what: str, timeout: float = 240) -> Any:
    """Polls until ``condition`` returns a true value, and returns that; fails the test after ``timeout`` seconds.

    The default is less than half of what a test may take (`scripts/run_tests.py`): a machine that is busy with other
    things makes no test red.
    """
    end = time.monotonic() + timeout
    while not (found := condition()):
        assert time.monotonic() < end, f"waited {timeout} s in vain for {what}"
        time.sleep(0.02)
    return found


@contextmanager
def running(query: StreamingQuery) -> Iterator[StreamingQuery]:
    """Stops the query at the end of the block, also after an exception."""
    try:
        yield query
    finally:
        query.stop()


def start(frame: DataFrame, path: Path | str, checkpoint: Path | str, **options: str) -> StreamingQuery:
    """Starts a query that writes the frame into a rowtime stream."""
    writer = frame.writeStream.format("rowtime").option("checkpointLocation", str(checkpoint))
    for name, value in options.items():
        writer = writer.option(name, value)
    return writer.start(str(path))


def settle(query: StreamingQuery) -> None:
    """Waits until the query has processed all available data; raises the error with which it failed."""
    query.processAllAvailable()
