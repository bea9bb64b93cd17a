"""Columns are added to the source or the sink of a query, while it runs and between two runs."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql.functions import col, count, max_by, window

import spark_rowtime as rt
from tests.spark.query_output import Watched, collected, refused
from tests.sparksession import NATIVE_READ, NATIVE_WRITE
from tests.streams import Pipe, opened, send

ADDED = "coupon STRING, s STRUCT<a: INT, l: ARRAY<STRING>>"


@pytest.fixture
def path(pipe: Pipe) -> Any:
    """The stream ``orders``."""
    yield pipe.create("orders", "k STRING")
    for switch in (NATIVE_READ, NATIVE_WRITE):
        pipe.spark.conf.unset(switch)


def read(pipe: Pipe) -> DataFrame:
    return pipe.spark.read.format("rowtime").load(pipe.path("orders"))


@pytest.mark.smoke
@pytest.mark.parametrize("native", ["true", "false"])
def test_a_query_keeps_its_schema_until_it_starts_again(pipe: Pipe, path: str, tmp_path: Path, native: str) -> None:
    """In rowtime order, so that a train is also read in part."""
    pipe.spark.conf.set(NATIVE_READ, native)
    order, checkpoint = {"order": "rowtime"}, tmp_path / "checkpoint"
    old, batch, frame = opened(path, "old", lease=None), read(pipe), pipe.read("orders", **order)
    send(old, ("10:00", "a"), promise="10:01")
    with Watched().start(frame, checkpoint) as query:
        assert query.step() == [("10:00", "a")]
        rt.alterStream(path, add=ADDED)
        with opened(path, "new", rowsImplyBounds=False) as new:
            send(new, ("10:06", "d", "x", (1, ["y"])), ("10:03", "b", None, None), promise="10:02")
            send(old, ("10:04", "c"), promise="10:05")
            send(new, promise="10:05")
            assert sorted(query.step()) == [("10:03", "b"), ("10:04", "c")]
            assert ("ColumnarToRow" in query.query._jsq.explainInternal(False)) == (native == "true")  # type: ignore[union-attr]
            send(new, promise="10:30")
    send(old, promise="10:30")
    expected = [("10:00", "a"), ("10:03", "b"), ("10:04", "c"), ("10:06", "d")]
    assert sorted(collected(batch)) == expected, "a batch frame from before"
    with Watched().start(frame, tmp_path / "other") as before:
        assert sorted(before.step()) == expected, "a streaming frame from before"
    with Watched().start(pipe.read("orders", **order), checkpoint) as again:
        assert again.step() == [("10:06", "d", "x", (1, ["y"]))]
    with Watched().start(pipe.read("orders"), tmp_path / "new") as whole:
        found = sorted(whole.step())
        assert ("ColumnarToRow" in whole.query._jsq.explainInternal(False)) == (native == "true")  # type: ignore[union-attr]
    assert found == sorted(collected(read(pipe)))
    assert found == [(*row, None, None) for row in expected[:3]] + [("10:06", "d", "x", (1, ["y"]))]
    assert read(pipe).where("s.a IS NULL AND coupon IS NULL AND s IS NULL").count() == 3


@pytest.mark.night
def test_a_query_with_state_goes_on_with_the_new_column(pipe: Pipe, path: str) -> None:
    """The state of a window does not contain the source's columns, unless the query uses them."""

    def hourly(column: str) -> DataFrame:
        orders = pipe.read("orders")
        counts = orders.groupBy(window("rowtime", "1 hour")).agg(count(column).alias("n"))
        return counts.select(col("window.end").alias("rowtime"), "n")

    sink = opened(path, "old", lease=None)
    send(sink, ("10:10", "a"))
    pipe.run(hourly("k"))
    assert pipe.step() == []
    rt.alterStream(path, add="coupon STRING")
    send(sink, ("10:20", "b"))
    assert pipe.step() == []
    pipe.query.stop()  # type: ignore[union-attr]
    with opened(path, "new") as new:
        send(new, ("10:30", "c", "x"))
        pipe.run(hourly("k"))
        send(sink, promise="11:00")
        send(new, promise="11:00")
        assert pipe.step() == [("11:00", 3)]


@pytest.mark.long
def test_state_that_has_every_column_is_refused_by_spark(pipe: Pipe, path: str, tmp_path: Path) -> None:
    """dropDuplicates without columns keeps all of them: Spark does not start it with another schema of its state."""
    sink, checkpoint = opened(path, "old", lease=None), tmp_path / "checkpoint"
    send(sink, ("10:10", "a"))
    with Watched().start(pipe.read("orders").dropDuplicates(), checkpoint) as query:
        assert query.step() == [("10:10", "a")]
        rt.alterStream(path, add="coupon STRING")
        send(sink, ("10:20", "b"))
        assert query.step() == [("10:20", "b")]
    send(sink, ("10:30", "c"))
    chosen = pipe.read("orders").select("rowtime", "k")
    again = Watched().start(pipe.read("orders").dropDuplicates(), checkpoint)
    with pytest.raises(Exception, match="STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE"), again:
        again.step()
    with Watched().start(chosen.dropDuplicates(), checkpoint) as same:
        assert same.step() == [("10:30", "c")]


@pytest.mark.night
@pytest.mark.parametrize("native", ["true", "false"])
def test_a_sink_writes_null_until_its_query_has_the_column(pipe: Pipe, path: str, native: str) -> None:
    pipe.spark.conf.set(NATIVE_WRITE, native)
    sink = opened(path, "feed", lease=None)
    send(sink, ("10:00", "a"))
    pipe.run(pipe.read("orders"))
    pipe.query.processAllAvailable()  # type: ignore[union-attr]
    rt.alterStream(pipe.path("out"), add="coupon STRING, n BIGINT")
    send(sink, ("10:01", "b"))
    assert pipe.step() == [("10:00", "a", None, None), ("10:01", "b", None, None)]
    pipe.query.stop()  # type: ignore[union-attr]
    send(sink, ("10:02", "c"))
    pipe.run(pipe.read("orders"))
    assert pipe.step() == [("10:02", "c", None, None)]
    pipe.query.stop()  # type: ignore[union-attr]
    send(sink, ("10:03", "d"))
    pipe.run(pipe.read("orders").selectExpr("rowtime", "k", "upper(k) AS coupon"))
    assert pipe.step() == [("10:03", "d", "D", None)]
    pipe.query.stop()  # type: ignore[union-attr]
    send(sink, ("10:04", "e"))
    wrong = "1 AS coupon" if native == "true" else "'k is missing' AS coupon"
    with refused(rt.SchemaMismatchError, "coupon string"):
        pipe.run(pipe.read("orders").selectExpr("rowtime", *["k"] * (native == "true"), wrong))
        pipe.step()


@pytest.mark.long
def test_the_rejected_rows_of_both_schemas(pipe: Pipe, path: str) -> None:
    view = pipe.spark.read.format("rowtime").option("view", "rejected")
    before = view.load(path).select("k")
    old = opened(path, "old", onLate="reject", lease=None)
    send(old, ("10:00", "a"), ("9:00", "late"), promise="10:00")
    rt.alterStream(path, add="coupon STRING")
    with opened(path, "new", onLate="reject") as new:
        send(new, ("10:00", "b", "x"), ("9:00", "later", "y"))
    assert [row.k for row in before.collect()] == ["late", "later"]
    assert [(row.k, row.coupon) for row in view.load(path).collect()] == [("late", None), ("later", "y")]
    assert pipe.spark.read.format("rowtime").load(path).agg(max_by("coupon", "k")).head()[0] == "x"


def test_a_hosted_adapter_of_the_old_schema(pipe: Pipe) -> None:
    """The query that hosts it starts again after the alteration."""
    spec, path = "tests.spark.hosted_feed:Feed", pipe.path("numbers")
    rt.createStream(path, "rowtime TIMESTAMP NOT NULL, n BIGINT")
    rt.alterStream(path, add="coupon STRING")
    frame = pipe.spark.readStream.format("rowtime").option("adapter", spec).load(path)
    with Watched().start(frame) as query:
        rows: list[Any] = []
        while len(rows) < 3:
            rows += query.step()
    assert [row[1:] for row in rows] == [(n, None) for n in range(3)]


def test_a_table_keeps_the_columns_that_it_was_created_with(pipe: Pipe, path: str) -> None:
    """Spark's catalog has its schema."""
    spark = pipe.spark
    spark.sql(f"CREATE TABLE altered USING rowtime OPTIONS (path '{path}')")
    try:
        send(opened(path, "old", lease=None), ("10:00", "a"))
        rt.alterStream(path, add="coupon STRING")
        with opened(path, "new") as new:
            send(new, ("10:01", "b", "x"))
        assert sorted(row.k for row in spark.sql("SELECT * FROM altered").collect()) == ["a", "b"]
        assert spark.table("altered").columns == ["rowtime", "k"]
    finally:
        spark.sql("DROP TABLE altered")
    spark.sql(f"CREATE TABLE altered USING rowtime OPTIONS (path '{path}')")
    assert sorted(row.coupon or "" for row in spark.sql("SELECT * FROM altered").collect()) == ["", "x"]
    spark.sql("DROP TABLE altered")
