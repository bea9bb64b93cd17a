"""A query of a user who may read the directory of a stream, and not write into it."""

from pathlib import Path

import pytest

import spark_rowtime as rt
from tests.otheruser import run, share, shared

__all__ = ["shared"]

QUERY = """
import sys, tempfile
import spark_rowtime as rt
from pyspark.sql import SparkSession
path, checkpoint = sys.argv[1], tempfile.mkdtemp()
spark = rt.configure(SparkSession.builder.master("local[1]")).config("spark.ui.enabled", False).getOrCreate()
spark.sparkContext.setLogLevel("ERROR")
for native in ("true", "false"):
    spark.conf.set("spark.rowtime.nativeRead", native)
    rows = spark.readStream.format("rowtime").option("order", "arrival").load(path)
    writer = rows.writeStream.format("memory").queryName("t" + native)
    writer = writer.option("checkpointLocation", f"{checkpoint}/{native}").trigger(availableNow=True)
    writer.start().awaitTermination()
    print([row.n for row in spark.table("t" + native).collect()])
print([row.n for row in spark.read.format("rowtime").load(path).collect()])
spark.stop()
"""


@pytest.mark.night
def test_a_query_of_a_user_who_may_only_read(shared: Path) -> None:
    path = str(shared / "s")
    rt.createStream(path, "rowtime TIMESTAMP NOT NULL, n BIGINT")
    with rt.openSink(path, linger="1 hour") as sink:
        sink.sendRow(("2026-01-05T14:30:00Z", 7))
        sink.flush()
        share(shared)
        output, _ = run("-c", QUERY, path)
        assert output.splitlines() == ["[7]"] * 3
    assert rt.describeStream(path).readers == ()
