"""Iceberg tables that others roll back, replace, create again or let expire, under a query that uses their bounds."""

import pytest

import spark_rowtime as rt
from spark_rowtime.drain.properties import COLUMN
from tests.lakehouse.iceberg import IcebergOrders
from tests.lakehouse.orders import hourly, late
from tests.lakehouse.test_set_back import refused

pytestmark = pytest.mark.night


def test_a_bound_that_goes_back_is_refused(iceberg: IcebergOrders) -> None:
    iceberg.put(("10:10", "a"), bound="11:00")
    with iceberg.observed(iceberg.rows()) as query:
        query.step()
        snapshot = iceberg.put(("11:10", "a"), bound="10:30")
        refused(query, f"has gone back from 2006-09-11T11:00:00Z to 2006-09-11T10:30:00Z in snapshot {snapshot}")


@pytest.mark.parametrize("how", ["rollback_to_snapshot", "set_current_snapshot"])
def test_a_query_over_a_table_that_was_rolled_back_is_refused(iceberg: IcebergOrders, how: str) -> None:
    """While it runs, at a restart, and before a batch that runs again; also where rows have come on top."""
    first = iceberg.put(("10:10", "a"), bound="10:10")
    second = iceberg.put(("10:20", "a"), bound="10:20")
    with iceberg.observed(iceberg.rows()) as query:
        query.step()
        iceberg.call(how, f"snapshot_id => {first}")
        refused(query, f"DataLostError: this query has read {iceberg.path} up to snapshot {second}", "rolled back")
    iceberg.put(("10:30", "a"), bound="10:30")
    with iceberg.observed(iceberg.rows()) as query:
        refused(query, "DataLostError", "new checkpointLocation")
    with iceberg.observed(iceberg.rows(), "another") as query:
        assert sorted(query.step()) == [("10:10", "a"), ("10:30", "a")]
        assert query.promised == {"ts": "10:30"}
    iceberg.call("set_current_snapshot", f"snapshot_id => {second}")
    with iceberg.observed(iceberg.rows()) as query:
        assert query.step() == []
        iceberg.put(("10:40", "a"), bound="10:40")
        assert query.step() == [("10:40", "a")]


def test_a_table_that_is_created_again_is_refused(iceberg: IcebergOrders) -> None:
    iceberg.put(("10:10", "a"), bound="10:10")
    with iceberg.observed(iceberg.rows()) as query:
        query.step()
        iceberg.again()
        iceberg.put(("10:20", "a"), bound="10:20")
        refused(query, "DataLostError", "it was created again")
    iceberg.sql("REFRESH TABLE ORDERS")  # Spark's catalog keeps the former one for a while
    with iceberg.observed(iceberg.rows()) as query:
        refused(query, "DataLostError", "or the table was created again")


def test_a_table_that_is_replaced_is_refused(iceberg: IcebergOrders) -> None:
    iceberg.put(("10:10", "a"), bound="10:10")
    with iceberg.observed(iceberg.rows()) as query:
        query.step()
        iceberg.sql("CREATE OR REPLACE TABLE ORDERS USING iceberg AS SELECT TIMESTAMP'2006-09-11 09:00:00' AS ts")
        refused(query, "DataLostError", "CREATE OR REPLACE TABLE")


def test_snapshots_that_expired_before_they_were_read(iceberg: IcebergOrders) -> None:
    for minute in range(10, 14):
        iceberg.put((f"10:{minute}", "a"), bound=f"10:{minute}")
    with iceberg.observed(iceberg.rows(maxFilesPerTrigger=1)) as query:
        query.step()
    iceberg.put(("10:20", "a"), bound="10:20")
    iceberg.put(("10:30", "a"), bound="10:30")
    iceberg.expire()
    with iceberg.observed(iceberg.rows()) as query:
        refused(query, "DataLostError", "has expired")
    with iceberg.observed(iceberg.rows(), "another") as query:
        refused(query, "DataLostError: snapshots of", "stream-from-timestamp", "history.expire.min-snapshots-to-keep")
    knowing = {"stream-from-timestamp": "0"}
    with iceberg.observed(iceberg.rows(**knowing), "knowing") as query:
        assert query.step() == [("10:30", "a")]
        assert query.promised == {"ts": "10:30"}


def test_a_bound_that_expired_is_refused_where_it_has_counted(iceberg: IcebergOrders) -> None:
    iceberg.put(("10:10", "a"), bound="10:30")
    with iceberg.observed(hourly(iceberg.rows())) as query:
        query.step()
        for _ in range(2):
            iceberg.put(("10:40", "x"))
        query.step()
    iceberg.expire()
    with iceberg.observed(hourly(iceberg.rows())) as query:
        refused(query, "DataLostError", "snapshots have expired")


def test_updates_and_deletes_are_as_icebergs_options_say(iceberg: IcebergOrders) -> None:
    iceberg.put(("10:10", "a"), ("10:20", "b"), bound="10:10")
    with iceberg.observed(iceberg.rows()) as query:
        query.step()
        iceberg.sql("UPDATE ORDERS SET k = 'c' WHERE k = 'b'")
        refused(query, "streaming-skip-overwrite-snapshots")
    with iceberg.observed(iceberg.rows(**iceberg.skipping)) as query:
        assert query.step() == []
        iceberg.sql("DELETE FROM ORDERS WHERE k = 'c'")
        iceberg.put(("10:30", "a"), bound="10:30")
        assert query.step() == [("10:30", "a")]
        assert query.promised == {"ts": "10:30"}


def test_a_row_below_a_bound_that_went_with_its_column_is_late(iceberg: IcebergOrders) -> None:
    """The query has given out that bound: its operators drop the row, so it is counted and kept."""
    iceberg.put(("10:10", "a"), ("11:40", "a"), bound="11:30", **{COLUMN: "ts"})
    with iceberg.observed(hourly(iceberg.rows())) as query:
        query.step()
    for change in ("ALTER COLUMN ts DROP NOT NULL", "DROP COLUMN ts", "ADD COLUMN ts TIMESTAMP"):
        iceberg.sql(f"ALTER TABLE ORDERS {change}")
    iceberg.sql("REFRESH TABLE ORDERS")
    rows = rt.punctuate(iceberg.read().where("ts IS NOT NULL"), "ts", rejected=iceberg.rejected)
    iceberg.sql("INSERT INTO ORDERS (ts, k) VALUES (TIMESTAMP'2006-09-11 10:50:00', 'b')")
    with iceberg.observed(hourly(rows)) as query:
        query.step()
        assert sum(late(query).values()) == 1
    assert [row.k for row in iceberg.kept().collect()] == ["b"]
