"""punctuate over an Iceberg table: what holds for Delta, and what Iceberg's offsets and snapshots ask for."""

from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import functions as f

import spark_rowtime as rt
from spark_rowtime.drain.properties import COLUMN
from tests.lakehouse.iceberg import IcebergOrders
from tests.lakehouse.iceberg_tables import CATALOG
from tests.lakehouse.orders import hourly
from tests.lakehouse.test_bounds_in_commits import (
    test_a_batch_that_runs_again_sees_what_it_saw,
    test_a_bound_about_another_column_is_refused,
    test_a_bound_that_readers_in_python_do_not_take_is_refused,
    test_a_window_closes_in_the_batch_that_has_passed_the_commit_with_its_bound,
    test_late_rows_are_kept_after_the_table_has_got_a_column,
    test_late_rows_are_kept_once,
    test_rows_of_others_below_the_bound_are_late_and_counted,
    test_with_trigger_available_now_the_last_window_is_written,
)
from tests.lakehouse.test_self_joins import (
    test_late_rows_are_left_out_on_both_sides_and_counted_once,
    test_windows_joined_with_windows,
)

__all__ = [
    "test_a_batch_that_runs_again_sees_what_it_saw",
    "test_a_bound_about_another_column_is_refused",
    "test_a_bound_that_readers_in_python_do_not_take_is_refused",
    "test_a_window_closes_in_the_batch_that_has_passed_the_commit_with_its_bound",
    "test_late_rows_are_kept_after_the_table_has_got_a_column",
    "test_late_rows_are_kept_once",
    "test_late_rows_are_left_out_on_both_sides_and_counted_once",
    "test_rows_of_others_below_the_bound_are_late_and_counted",
    "test_windows_joined_with_windows",
    "test_with_trigger_available_now_the_last_window_is_written",
]
TEN = ("10:00", "11:00")


@pytest.fixture
def orders(iceberg: IcebergOrders) -> IcebergOrders:
    """What the tests of Delta tables run over here."""
    return iceberg


def test_a_bound_counts_once_all_files_of_its_snapshot_are_read(orders: IcebergOrders) -> None:
    orders.put(("10:10", "a"))
    orders.sql(
        "INSERT INTO ORDERS SELECT /*+ REPARTITION(3) */ * FROM VALUES (TIMESTAMP'2006-09-11 10:20:00', 'b'), "
        "(TIMESTAMP'2006-09-11 10:21:00', 'b'), (TIMESTAMP'2006-09-11 10:22:00', 'b')"
    )
    orders.put(bound="10:25")
    orders.put(("10:30", "a"), bound="10:30")
    with orders.observed(orders.rows(maxFilesPerTrigger=1)) as query:
        query.step()
        assert sum(map(len, query.batches.values())) == 5
        promised = [promise.get("ts") for _, promise in sorted(query.promises.items())]
        assert list(dict.fromkeys(promised)) == [None, "10:25", "10:30"]
        first = promised.index("10:25")
        assert sum(len(rows) for batch, rows in query.batches.items() if batch <= first) == 4
        assert first == 3


def test_a_table_by_name_and_as_bounds(orders: IcebergOrders, spark: Any) -> None:
    orders.put(("10:10", "a"), bound="11:00")
    rows = spark.readStream.table(orders.path).where("k = 'a'").select(f.col("ts").alias("when"), "k")
    with orders.observed(rt.punctuate(rows, "when", bounds=f"iceberg:{orders.path}")) as query:
        assert query.step() == [("10:10", "a")]
        assert query.promised == {"when": "11:00"}
    elsewhere = orders.observed(rt.punctuate(orders.read(), "ts", bounds="iceberg:lake.other.orders"), "elsewhere")
    with pytest.raises(StreamingQueryException, match="the rows are those of iceberg:lake"), elsewhere:
        elsewhere.step()


@pytest.mark.parametrize("name", ["late", "{space}.late", "elsewhere.{space}.late"])
def test_a_table_for_late_rows_without_its_catalog_is_refused(orders: IcebergOrders, spark: Any, name: str) -> None:
    """Where the query would keep them, it has another current catalog."""
    orders.put(("10:10", "a"), bound="11:00")
    rejected = f"iceberg:{name.format(space=orders.space)}"
    before = spark.catalog.currentCatalog()
    spark.sql(f"USE {CATALOG}.{orders.space}")
    try:
        with pytest.raises(Exception, match=f'rejected="{rejected}" does not begin with a catalog of this session'):
            orders.observed(rt.punctuate(orders.read(), "ts", rejected=rejected)).__enter__()
    finally:
        spark.sql(f"USE {before}.default")
    with orders.observed(rt.punctuate(orders.read(), "ts", rejected=orders.rejected)) as query:
        assert query.step() == [("10:10", "a")]


def test_a_bound_without_rows_makes_one_batch(orders: IcebergOrders) -> None:
    """Iceberg counts the files of the snapshot before at a snapshot without files, and none when it looks again."""
    orders.put(("10:10", "a"), ("10:20", "a"))
    with orders.observed(orders.rows()) as query:
        query.step()
        orders.put(bound="10:30")
        assert query.step() == []
        assert query.promised == {"ts": "10:30"}
        before = query.last
        orders.put(bound="10:40")
        query.step()
        assert query.last == before + 1
        query.step()
        assert query.last == before + 1
    with orders.observed(orders.rows()) as query:
        orders.put(("10:50", "a"), bound="11:00")
        assert query.step() == [("10:50", "a")]
        assert query.promised == {"ts": "11:00"}


def test_compaction_and_expiry_of_what_was_read_go_by(orders: IcebergOrders) -> None:
    query = orders.observed(hourly(orders.rows()))
    for minute in range(10, 15):
        orders.put((f"10:{minute}", "a"), bound=f"10:{minute}")
    with query:
        query.step()
        orders.call("rewrite_data_files", "options => map('min-input-files', '2')")
        assert query.step() == []
        orders.put(("10:20", "a"))
        assert query.step() == []
        assert query.watermark == "10:14"
        orders.expire()
        orders.put(("11:10", "a"), bound="11:00")
        assert query.step() == [(TEN, "a", 6)]


def test_a_bound_follows_its_column_to_another_name(orders: IcebergOrders, spark: Any) -> None:
    orders.put(("10:10", "a"), bound="10:10", **{COLUMN: "ts"})
    orders.sql("ALTER TABLE ORDERS RENAME COLUMN ts TO at")
    with orders.observed(rt.punctuate(spark.readStream.table(orders.path), "at"), "renamed") as query:
        assert query.step() == [("10:10", "a")]
        assert query.promised == {"at": "10:10"}
    orders.sql("ALTER TABLE ORDERS ALTER COLUMN at DROP NOT NULL")
    orders.sql("ALTER TABLE ORDERS DROP COLUMN at")
    orders.sql("ALTER TABLE ORDERS ADD COLUMNS (at TIMESTAMP)")
    orders.sql("INSERT INTO ORDERS VALUES ('b', TIMESTAMP'2006-09-11 09:00:00')")
    named = rt.punctuate(spark.readStream.table(orders.path).where("at IS NOT NULL"), "at")
    with orders.observed(named.select("at"), "another") as query:
        assert query.step() == [("09:00",)]
        assert query.promised == {}
