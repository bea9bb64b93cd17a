"""punctuate over a Delta table: windows close in the batch that has passed the commit with their bound."""

from pathlib import Path
from shutil import copytree, rmtree
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import functions as f

import spark_rowtime as rt
from spark_rowtime.drain.properties import BOUND, COLUMN, POSITION
from spark_rowtime.errors import InvalidOptionError
from tests.lakehouse.orders import hourly, late, progress_of
from tests.spark.observed_query import Observed

TEN, ELEVEN = ("10:00", "11:00"), ("11:00", "12:00")


def test_a_window_closes_in_the_batch_that_has_passed_the_commit_with_its_bound(orders: Any) -> None:
    orders.put(("10:10", "a"))
    with orders.observed(hourly(orders.rows())) as query:
        assert query.step() == []
        orders.put(("10:50", "a"), ("11:10", "a"), bound="10:30")
        assert query.step() == []
        orders.put(bound="11:00")
        assert query.step() == [(TEN, "a", 2)]
        assert query.watermark == "11:00"
        assert query.promised == {"window.end": "11:00:00.000001", "window.start": "10:00:00.000001"}
        orders.put(("11:20", "a"), bound="12:00")
        assert query.step() == [(ELEVEN, "a", 2)]
        assert set(late(query).values()) == {0}


def test_a_bound_counts_once_its_commit_is_read_entirely(orders: Any) -> None:
    """With a limit of one file a batch, of a snapshot only when all of it is read."""
    orders.put(("10:10", "a"))
    orders.put(("10:20", "a"), bound="10:15")
    with orders.observed(orders.rows(maxFilesPerTrigger=1)) as query:
        assert sorted(query.step()) == [("10:10", "a"), ("10:20", "a")]
        assert [p for _, p in sorted(query.promises.items())] == [{}, {"ts": "10:15"}]
        orders.sql(
            "INSERT INTO ORDERS SELECT /*+ REPARTITION(3) */ * FROM VALUES (TIMESTAMP'2006-09-11 10:30:00', 'b'), "
            "(TIMESTAMP'2006-09-11 10:31:00', 'b'), (TIMESTAMP'2006-09-11 10:32:00', 'b')"
        )
        orders.put(("10:40", "a"), bound="10:35")
        query.step()
        assert sum(map(len, query.batches.values())) == 6
        assert {str(p) for p in query.promises.values()} == {"{}", "{'ts': '10:15'}", "{'ts': '10:35'}"}
        assert query.promised == {"ts": "10:35"}
        assert len([p for p in query.promises.values() if p == {"ts": "10:35"}]) == 1


def test_a_batch_that_runs_again_sees_what_it_saw(orders: Any) -> None:
    orders.put(("10:10", "a"), bound="10:00")
    query = orders.observed(hourly(orders.rows()))
    with query:
        assert query.step() == []
    orders.put(("10:20", "a"), ("11:01", "a"), bound="11:00")
    with query:
        assert query.step() == [(TEN, "a", 2)]
        first, promised = query.batches[query.last], query.promised
    batch = query.lose_commit()
    orders.put(("11:30", "a"), bound="12:00")
    with query:
        assert query.step() == [(TEN, "a", 2), (ELEVEN, "a", 2)]
        assert (query.batches[batch], query.promises[batch]) == (first, promised)


def test_rows_of_others_below_the_bound_are_late_and_counted(orders: Any) -> None:
    orders.put(("10:10", "a"), bound="11:00")
    with orders.observed(orders.rows()) as query:
        assert query.step() == [("10:10", "a")]
        orders.put(("10:30", "x"), ("10:40", "x"), ("11:00", "x"))
        assert query.step() == [("11:00", "x")]
        assert late(query) == {0: 0, 1: 2}
        assert query.promised == {"ts": "11:00"}
        orders.put(("11:05", "a"), bound="11:10", strict=True)
        assert query.step() == [("11:05", "a")]
        assert query.promised == {"ts": "11:10:00.000001"}


def test_late_rows_are_kept_once(orders: Any) -> None:
    query = orders.observed(rt.punctuate(orders.read(), "ts", rejected=orders.rejected))
    x, y = "x" * 32, "y" * 32  # they fill the memory of a row exactly, which Spark uses again for the next row
    orders.put(("10:10", "a"), bound="11:00")
    with query:
        query.step()
        orders.put(("10:30", x), ("10:40", y), ("11:00", "x"))
        assert query.step() == [("11:00", "x")]
    query.lose_commit()
    with query:
        assert query.step() == [("11:00", "x")]
        rows = orders.kept().orderBy("ts").collect()
        assert [(f"{row.ts:%H:%M}", row.k, f"{row.belowBound:%H:%M}") for row in rows] == [
            ("10:30", x, "11:00"),
            ("10:40", y, "11:00"),
        ]
        orders.put(("10:50", "z"), bound="11:10")
        query.step()
        assert orders.kept().count() == 3


@pytest.mark.parametrize("keeps", [True, False], ids=["kept", "counted"])
def test_late_rows_of_a_batch_with_several_jobs_count_once(orders: Any, spark: Any, keeps: bool) -> None:
    """Where a task of one job has several partitions of another, and where one ends early."""

    def write(batch: Any, _: int) -> None:
        batch.collect()
        batch.coalesce(1).collect()
        batch.union(batch).coalesce(1).collect()
        batch.limit(1).collect()

    def run() -> Any:
        how = {"rejected": orders.rejected} if keeps else {}
        rows = rt.punctuate(orders.read(), "ts", **how).writeStream.foreachBatch(write)
        query = rows.option("checkpointLocation", str(orders.folder / "jobs")).trigger(availableNow=True).start()
        query.awaitTermination()
        return query

    partitions = "spark.sql.files.openCostInBytes"
    spark.conf.set(partitions, str(1 << 27))  # so each file is a partition
    try:
        orders.put(("10:10", "a"), bound="11:00")
        run()
        orders.put(("10:30", "1"), ("11:00", "a"), ("10:31", "2"))
        orders.put(("10:40", "3"), ("11:01", "a"))
        orders.put(("11:02", "a"), ("10:50", "4"))
        query = run()
    finally:
        spark.conf.unset(partitions)
    assert sum(int(one["sources"][0]["metrics"]["rowsLate"]) for one in progress_of(query)) == 4
    if keeps:
        assert sorted(row.k for row in orders.kept().collect()) == ["1", "2", "3", "4"]


def test_an_older_checkpoint_is_refused_where_its_late_rows_would_be_lost(orders: Any, tmp_path: Path) -> None:
    query = orders.observed(rt.punctuate(orders.read(), "ts", rejected=orders.rejected))
    orders.put(("10:10", "a"), bound="11:00")
    with query:
        query.step()
    copytree(query.checkpoint, tmp_path / "older")
    orders.put(("10:30", "x"))
    with query:
        query.step()
    rmtree(query.checkpoint)
    copytree(tmp_path / "older", query.checkpoint)
    orders.put(("10:40", "y"))
    with (
        pytest.raises(StreamingQueryException, match=r"ProducerFencedError: the late rows .* is an older copy"),
        query,
    ):
        query.step()
    assert [row.k for row in orders.kept().collect()] == ["x"]


def test_late_rows_are_kept_after_the_table_has_got_a_column(orders: Any) -> None:
    def rows() -> Any:
        return orders.observed(rt.punctuate(orders.read(), "ts", rejected=orders.rejected))

    orders.put(("10:10", "a"), bound="11:00")
    with rows() as query:
        query.step()
        orders.put(("10:30", "x"))
        query.step()
    orders.sql("ALTER TABLE ORDERS ADD COLUMNS (more INT)")
    with rows() as query:
        query.step()
        orders.sql("INSERT INTO ORDERS VALUES (TIMESTAMP'2006-09-11 10:40:00', 'y', 7)")
        query.step()
        assert sum(late(query).values()) == 1
    kept = orders.kept().orderBy("ts").collect()
    assert [(row.k, row.more, f"{row.belowBound:%H:%M}") for row in kept] == [("x", None, "11:00"), ("y", 7, "11:00")]


def test_with_trigger_available_now_the_last_window_is_written(orders: Any) -> None:
    orders.put(("10:10", "a"))
    orders.put(("10:20", "a"), bound="11:00")
    seen = Observed(hourly(orders.rows(maxFilesPerTrigger=1)), orders.folder / "now")
    writer = seen.frame.writeStream.foreachBatch(seen).option("checkpointLocation", str(seen.checkpoint))
    writer.trigger(availableNow=True).start().awaitTermination()
    assert [row for _, rows in sorted(seen.batches.items()) for row in rows] == [(TEN, "a", 2)]


def test_a_join_and_a_union_of_two_tables_wait_for_the_weaker_bound(orders: Any, spark: Any, tmp_path: Any) -> None:
    from tests.lakehouse.orders import Orders

    other = Orders(spark, tmp_path / "other")
    orders.put(("10:10", "a"), bound="11:00")
    other.put(("10:15", "b"), bound="10:30")
    with orders.observed(hourly(orders.rows().union(other.rows()))) as query:
        assert query.step() == []
        other.put(bound="11:00")
        assert sorted(query.step()) == [(TEN, "a", 1), (TEN, "b", 1)]


def test_a_table_by_name_and_its_own_path_as_bounds(orders: Any, spark: Any) -> None:
    orders.put(("10:10", "a"), bound="11:00")
    spark.sql(f"CREATE TABLE IF NOT EXISTS by_name USING delta LOCATION '{orders.path}'")
    try:
        frame = spark.readStream.table("by_name").where("k = 'a'").select(f.col("ts").alias("when"), "k")
        with orders.observed(rt.punctuate(frame, "when", bounds=f"delta:{orders.path}")) as query:
            assert query.step() == [("10:10", "a")]
            assert query.promised == {"when": "11:00"}
    finally:
        spark.sql("DROP TABLE by_name")


def test_what_has_no_bounds_is_refused(orders: Any, spark: Any) -> None:
    orders.put(("10:10", "a"), bound="11:00")
    with pytest.raises(InvalidOptionError, match="a batch has no watermark"):
        rt.punctuate(spark.read.format("delta").load(orders.path), "ts")
    with pytest.raises(Exception, match="is below it\\. The bounds in the commits of a table"):
        orders.observed(rt.punctuate(spark.readStream.format("rate").load(), "timestamp")).__enter__()
    with pytest.raises(Exception, match="can be NULL"):
        orders.observed(rt.punctuate(orders.read().withColumn("ts", f.expr("nullif(ts, now())")), "ts")).__enter__()
    with pytest.raises(Exception, match="withWatermark, or another punctuate, is below it"):
        orders.observed(rt.punctuate(orders.rows(), "ts")).__enter__()
    with pytest.raises(Exception, match="failOnDataLoss=false is below it"):
        orders.observed(orders.rows(failOnDataLoss=False)).__enter__()
    orders.sql("ALTER TABLE ORDERS SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')")
    with pytest.raises(Exception, match="over a change feed"):
        orders.observed(orders.rows(readChangeFeed=True)).__enter__()
    elsewhere = orders.observed(rt.punctuate(orders.read(), "ts", bounds="delta:/elsewhere"))
    with pytest.raises(StreamingQueryException, match="the rows are those of"), elsewhere:
        elsewhere.step()


@pytest.mark.parametrize("name", ["ignoreMissingFiles", "ignoreCorruptFiles"])
@pytest.mark.parametrize("watch", [None, {"delay": "1 hour"}], ids=["commits", "watch"])
def test_what_leaves_out_files_that_are_gone_is_refused(orders: Any, spark: Any, name: str, watch: Any) -> None:
    with pytest.raises(Exception, match=f"the option {name}=true leaves out the rows of files"):
        orders.observed(rt.punctuate(orders.read(**{name: True}), "ts", watch=watch)).__enter__()
    spark.conf.set(f"spark.sql.files.{name}", "true")
    try:
        with pytest.raises(Exception, match=f"spark\\.sql\\.files\\.{name}=true leaves out the rows of files"):
            orders.observed(rt.punctuate(orders.read(**{name: False}), "ts", watch=watch)).__enter__()
        with orders.observed(orders.read()) as plain:
            assert plain.step() == [], "without bounds nothing is refused"
    finally:
        spark.conf.unset(f"spark.sql.files.{name}")


@pytest.mark.parametrize("time", ["9999-12-31T23:59:59.999999Z", "2006-09-11T24:00:00Z", "2006-09-11t11:00:00z"])
def test_a_bound_that_readers_in_python_do_not_take_is_refused(orders: Any, time: str) -> None:
    """It counted here: windows were closed up to a time that no other reader of the table knew."""
    orders.put(("10:10", "a"), bound="10:30")
    with orders.observed(hourly(orders.rows())) as query:
        query.step()
        orders.put(("10:40", "b"), **{BOUND: time})
        with pytest.raises(
            StreamingQueryException, match=r"no time after 1970 in ISO 8601 .* start a new query behind"
        ):
            query.step()


def test_a_bound_about_another_column_is_refused(orders: Any) -> None:
    orders.put(("10:10", "a"), bound="10:30", **{COLUMN: "ts"})
    renamed = orders.read().select(f.col("ts").cast("timestamp").alias("when"), "k")
    with orders.observed(rt.punctuate(renamed, "when"), "renamed") as query:
        query.step()
        assert query.promised == {"when": "10:30"}
    other = orders.read().withColumn("hour", f.date_trunc("hour", "ts")).where("hour IS NOT NULL")
    computed = orders.observed(rt.punctuate(other, "hour"), "computed")
    with pytest.raises(StreamingQueryException, match="its column ts, and punctuate is over a time that"), computed:
        computed.step()
    with orders.observed(orders.rows(), "drained") as query:
        query.step()
        orders.put(bound="10:40", **{POSITION: "7"})
        with pytest.raises(StreamingQueryException, match="its column rowtime, and punctuate is over its column ts"):
            query.step()


def test_a_stream_that_has_ended_closes_all_windows(orders: Any) -> None:
    """A drain writes the last legal time as the bound then."""
    orders.put(("10:10", "a"))
    with orders.observed(hourly(orders.rows())) as query:
        query.step()
        orders.put(bound="9999-12-31 23:59:59.999998", strict=True)
        assert query.step() == [(TEN, "a", 1)]
