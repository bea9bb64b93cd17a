"""By which time rows are kept: names of WITH, and columns that only have the mark of a watermark."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import spark_rowtime as rt
from tests.spark.observed_query import Observed
from tests.sparksession import start, wait_for
from tests.streams import Pipe, at, bound, opened, send

HOURLY = "SELECT window.end AS rowtime, sum(x) AS x FROM ({rows}) GROUP BY window(rowtime, '1 hour')"


@pytest.fixture
def sinks(pipe: Pipe) -> tuple[Any, Any]:
    """Of the streams a and b, which are views of these names, too."""
    for name in ("a", "b"):
        pipe.create(name, "x BIGINT, other TIMESTAMP")
        pipe.read(name).createOrReplaceTempView(name)
    return opened(pipe.path("a"), "p"), opened(pipe.path("b"), "p")


@pytest.mark.smoke
def test_a_name_of_with_in_a_union_is_no_ordinary_stream(pipe: Pipe, tmp_path: Path, sinks: Any) -> None:
    a, b = sinks
    rows = "SELECT * FROM o UNION ALL SELECT * FROM b"
    frame = pipe.spark.sql("WITH o AS (SELECT * FROM a) " + HOURLY.format(rows=rows))
    with Observed(frame, tmp_path) as query:
        send(a, ("10:00", 1, None), promise="12:30")
        assert query.step() == []
        send(b, ("10:05", 2, None), promise="12:00")
        assert query.step() == [("11:00", 3)]
        assert query.promised == {"rowtime": "12:00:00.000001"}


@pytest.mark.long
def test_a_watermark_on_a_name_of_with_follows_the_bound(pipe: Pipe, tmp_path: Path, sinks: Any) -> None:
    del sinks
    disordered = opened(pipe.path("a"), "q", rowsImplyBounds=False)
    rows = pipe.spark.sql("WITH o AS (SELECT * FROM a) SELECT * FROM o").withWatermark("rowtime", "0 seconds")
    opened(pipe.path("a"), "p").close()
    with Observed(rows.groupBy(F.window("rowtime", "1 hour")).count(), tmp_path) as query:
        send(disordered, ("12:30", 1, None), promise="10:00")
        assert query.step() == []
        send(disordered, ("10:05", 2, None), promise="11:00")
        assert query.step() == [(("10:00", "11:00"), 1)]


@pytest.mark.long
def test_a_derived_time_of_a_name_of_with(pipe: Pipe, tmp_path: Path) -> None:
    pipe.create("c", "x BIGINT")
    sink = opened(pipe.path("c"), "p")
    names = "WITH o AS (SELECT rowtime + INTERVAL 1 HOUR AS t, x FROM {c}), p AS (SELECT t FROM o WHERE x > 0)"
    frame = pipe.spark.sql(f"{names} SELECT count(*) FROM p GROUP BY window(t, '1 hour')", c=pipe.read("c"))
    with Observed(frame, tmp_path) as seen:
        send(sink, ("10:00", 1), ("10:00", 2), promise="11:00")
        assert seen.step() == [(2,)]


@pytest.mark.long
@pytest.mark.parametrize(
    "query",
    [
        "WITH o AS (SELECT * FROM a) SELECT * FROM o",
        "WITH o AS (SELECT rowtime, x FROM a), p AS (SELECT x, rowtime FROM o WHERE x > 0) SELECT rowtime FROM p",
    ],
)
def test_a_name_of_with_passes_the_bound(pipe: Pipe, tmp_path: Path, sinks: Any, query: str) -> None:
    with Observed(pipe.spark.sql(query), tmp_path) as seen:
        send(sinks[0], ("10:00", 1, None), promise="10:30")
        seen.step()
        assert seen.promised == {"rowtime": "10:30"}


PAIRS = "SELECT l.rowtime AS lt, r.rowtime AS rt FROM {l} l LEFT JOIN {r} r ON l.x = r.x AND l.rowtime = r.rowtime"
COPIES = {
    "a group of a view": "SELECT rowtime, count(*) FROM a_view GROUP BY rowtime",
    "a join of copies in capitals": PAIRS.format(l="(SELECT rowtime AS ROWTIME, x FROM a)", r="b_view"),
    "windows of a view of windows": (
        "SELECT window(w, '2 hours') AS w, sum(n) FROM windows_view GROUP BY window(w, '2 hours')"
    ),
}


@pytest.mark.long
@pytest.mark.parametrize("query", COPIES)
def test_a_copy_and_a_view_are_like_the_column_itself(pipe: Pipe, tmp_path: Path, sinks: Any, query: str) -> None:
    """A view defined in SQL casts and copies each column. Spark's optimizer removes copies of the same name."""
    for name in ("a", "b"):
        pipe.spark.sql(f"CREATE OR REPLACE TEMP VIEW {name}_view AS SELECT rowtime, x FROM {name}")
    windows = "SELECT window(rowtime, '1 hour') AS w, count(*) AS n FROM a GROUP BY window(rowtime, '1 hour')"
    pipe.spark.sql(f"CREATE OR REPLACE TEMP VIEW windows_view AS {windows}")
    with Observed(pipe.spark.sql(COPIES[query]), tmp_path) as seen:
        for sink in sinks:
            send(sink, ("10:00", 1, None), promise="12:00")
        assert len(seen.step()) == 1
        assert seen.promised == expected(query)


def expected(query: str) -> dict[str, str]:
    if "windows" in query:
        return {"w.start": "10:00:00.000001", "w.end": "12:00:00.000001"}
    return {"lt": "12:00", "rt": "12:00"} if "join" in query else {"rowtime": "11:59:59.999001"}


def moved(frames: Any) -> Any:
    yield from frames


def borrowed_schema(pipe: Pipe) -> DataFrame:
    rows = pipe.read("a")
    return rows.mapInPandas(moved, rows.schema).groupBy(F.window("rowtime", "1 hour")).count()


def other_column(pipe: Pipe) -> DataFrame:
    return pipe.spark.sql(HOURLY.format(rows="SELECT rowtime, x FROM a UNION ALL SELECT other AS rowtime, x FROM b"))


def ordinary_beside_a_projection(pipe: Pipe) -> DataFrame:
    rate = pipe.spark.readStream.format("rate").load().select(F.col("timestamp").alias("rowtime"))
    return pipe.read("a").select("rowtime").union(rate).groupBy(F.window("rowtime", "1 hour")).count()


def out_of_a_struct(pipe: Pipe) -> DataFrame:
    last = pipe.read("a").groupBy(F.window("rowtime", "1 hour")).agg(F.max(F.struct("rowtime", "x")).alias("last"))
    return last.select("last.rowtime").groupBy(F.window("rowtime", "1 minute")).count()


@pytest.mark.parametrize(
    "build",
    [borrowed_schema, other_column, ordinary_beside_a_projection, out_of_a_struct],
)
def test_a_time_that_no_watermark_follows_is_refused(pipe: Pipe, tmp_path: Path, sinks: Any, build: Any) -> None:
    send(sinks[0], ("10:00", 1, None), promise="10:30")
    query = Observed(build(pipe), tmp_path)
    with pytest.raises(Exception, match=r"no watermark is known for this\s+time|without watermark"), query:
        query.step()


def test_the_users_watermark_after_the_function_is_taken(pipe: Pipe, tmp_path: Path, sinks: Any) -> None:
    rows = pipe.read("a")
    moving = rows.mapInPandas(moved, rows.schema).withWatermark("rowtime", "0 seconds")
    with Observed(moving.groupBy(F.window("rowtime", "1 hour")).count(), tmp_path) as query:
        send(sinks[0], ("10:00", 1, None), ("11:30", 2, None))
        query.step()
        assert query.batches[max(query.batches)] == [(("10:00", "11:00"), 1)]


@pytest.mark.long
def test_the_greatest_time_of_an_outer_join_may_be_the_only_one(pipe: Pipe, sinks: Any) -> None:
    a, b = sinks
    near = "l.x = r.x AND r.rowtime BETWEEN l.rowtime - INTERVAL 30 MINUTES AND l.rowtime + INTERVAL 10 MINUTES"
    joined = pipe.read("a").alias("l").join(pipe.read("b").alias("r"), F.expr(near), "left_outer")
    pipe.run(joined.select(F.greatest("l.rowtime", "r.rowtime").alias("rowtime"), F.col("l.x").alias("x")))
    send(a, ("10:00", 1, None), ("10:05", 2, None), ("10:06", 3, None), promise="10:06")
    send(b, ("10:14", 2, None), promise="10:16")
    pipe.step()
    send(a, promise="11:30")
    send(b, promise="11:30")
    pipe.step()
    assert [(row["rowtime"].minute, row["x"]) for row in rows_of(pipe)] == [(0, 1), (6, 3), (14, 2)]


def rows_of(pipe: Pipe) -> list[dict[str, Any]]:
    with rt.openReader(pipe.path("out")) as reader:
        return [row for train in reader for row in train.rows.to_pylist()]


@pytest.mark.long
def test_the_start_of_windows_of_different_sizes(pipe: Pipe, sinks: Any) -> None:
    a, b = sinks
    minutes = pipe.read("a").select(F.window("rowtime", "1 minute"), "x")
    hours = pipe.read("b").select(F.window("rowtime", "1 hour"), "x")
    sums = minutes.unionByName(hours).groupBy("window").agg(F.sum("x").alias("x"))
    pipe.run(sums.select(F.col("window.start").alias("rowtime"), "x"))
    send(b, ("10:05", 1, None), ("12:00", 2, None), promise="12:00")
    send(a, ("10:00", 10, None), ("10:30", 20, None), promise="10:31")
    pipe.step()
    send(a, promise="12:00")
    pipe.step()
    pipe.query.processAllAvailable()
    with rt.openReader(pipe.path("out"), order="arrival") as reader:
        sums = sorted(row["x"] for train in reader for row in train.rows.to_pylist())
    assert sums == [1, 10, 20]


@pytest.mark.long
def test_a_query_that_a_foreach_batch_starts_does_not_promise_for_it(pipe: Pipe, tmp_path: Path, sinks: Any) -> None:
    inner: list[Any] = []

    def begin(frame: DataFrame, _: int) -> None:
        if not inner:
            nine = F.lit(at("9:00")).cast("timestamp").alias("rowtime")
            ticks = frame.sparkSession.readStream.format("rate").load().select(nine, F.col("value").alias("x"))
            inner.append(start(ticks, pipe.path("in"), tmp_path / "inner"))

    outer = pipe.read("a").writeStream.foreachBatch(begin).option("checkpointLocation", str(tmp_path / "outer")).start()
    try:
        send(sinks[0], ("10:00", 1, None), promise="10:30")
        outer.processAllAvailable()
        wait_for(lambda: inner[0].lastProgress and inner[0].lastProgress.batchId > 1, "two batches of the inner query")
        assert inner[0].exception() is None
        assert rt.describeStream(pipe.path("in")).bound in (None, bound("9:00"))
    finally:
        for query in [*inner, outer]:
            query.stop()


def test_the_name_of_the_format_in_capitals(pipe: Pipe, tmp_path: Path, sinks: Any) -> None:
    with Observed(pipe.spark.readStream.format("ROWTIME").load(pipe.path("a")), tmp_path) as query:
        send(sinks[0], ("10:00", 1, None), promise="10:30")
        assert [row[0] for row in query.step()] == ["10:00"]
        assert query.promised == {"rowtime": "10:30"}
