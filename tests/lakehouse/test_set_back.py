"""Tables that others set back, replace, make again or clean up, under a query that counts on their bounds."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.errors import StreamingQueryException

import spark_rowtime as rt
from spark_rowtime.drain.properties import COLUMN
from tests.lakehouse.orders import COLUMNS, Orders, hourly
from tests.spark.observed_query import Observed

TEN = ("10:00", "11:00")


def refused(query: Any, *words: str) -> None:
    with pytest.raises(StreamingQueryException) as error:
        query.step()
    assert all(word in str(error.value) for word in words), error.value


def test_a_query_that_passes_a_restore_is_refused(orders: Orders) -> None:
    orders.put(("10:10", "a"), bound="10:10")
    orders.put(("10:20", "a"), bound="10:20")
    with orders.observed(orders.rows(**orders.skipping)) as query:
        query.step()
        orders.sql("RESTORE TABLE ORDERS TO VERSION AS OF 1")
        refused(query, "DataLostError: version 3", "RESTORE", "10:20", "new checkpointLocation")
    with orders.observed(orders.rows(), "another") as query:
        assert query.step() == [("10:10", "a")]
        assert query.promised == {"ts": "10:10"}


class Restoring(Observed):
    """Sets the table back within the first batch."""

    def __init__(self, orders: Orders, frame: Any) -> None:
        super().__init__(frame, orders.folder / "query")
        self.orders = orders

    def __call__(self, frame: Any, batch: int) -> None:
        super().__call__(frame, batch)
        if batch == 0:
            set_back(self.orders)


def set_back(orders: Orders) -> None:
    orders.sql("RESTORE TABLE ORDERS TO VERSION AS OF 1")
    orders.put(("10:20", "b"), bound="11:00")


def three(orders: Orders) -> None:
    for clock in ("10:10", "10:20", "10:30"):
        orders.put((clock, "a"), bound=clock)


def test_a_restore_within_the_first_batch_is_refused(orders: Orders) -> None:
    """The rows that it takes away are among those of the batch."""
    three(orders)
    set_back(orders)
    with orders.observed(hourly(orders.rows(startingVersion=0, **orders.skipping))) as query:
        refused(query, "DataLostError: version 4", "RESTORE", "has set the table back")


def test_a_restore_while_the_starting_snapshot_is_read_is_refused(orders: Orders) -> None:
    three(orders)
    with Restoring(orders, hourly(orders.rows(maxFilesPerTrigger=2, **orders.skipping))) as query:
        refused(query, "DataLostError: version 4", "RESTORE", "has set the table back")


def test_a_query_that_derives_its_bounds_is_refused_in_the_same_words(orders: Orders) -> None:
    """For one that starts then, the times of rows that are gone do not count."""
    orders.put(("10:10", "a"))
    orders.put(("10:20", "a"))
    of_rows, of_commits = {"lateness": "5 minutes"}, {"bounds": "append-time", "delay": "1 minute"}
    frames = [rt.punctuate(orders.read(**orders.skipping), "ts", watch=watch) for watch in (of_rows, of_commits)]
    with orders.observed(frames[0], "rows") as rows, orders.observed(frames[1], "commits") as commits:
        rows.step()
        commits.step()
        orders.sql("RESTORE TABLE ORDERS TO VERSION AS OF 1")
        refused(rows, "DataLostError: version 3", "RESTORE", "up to 2006-09-11T10:15:00Z are final", "new checkpoint")
        refused(commits, "DataLostError: version 3", "RESTORE", "new checkpointLocation")
    with orders.observed(frames[0], "another") as query:
        assert query.step() == [("10:10", "a")]
        assert query.promised == {}
        orders.put(("10:14", "b"))
        assert query.step() == [("10:14", "b")]
        assert query.promised == {"ts": "10:09"}


def test_a_new_query_has_no_bound_of_rows_that_were_replaced(orders: Orders) -> None:
    orders.put(("10:10", "a"), bound="10:10")
    orders.sql("INSERT OVERWRITE ORDERS VALUES (TIMESTAMP'2006-09-11 09:00:00', 'b')")
    with orders.observed(orders.rows()) as query:
        assert query.step() == [("09:00", "b")]
        assert query.promised == {}
        orders.put(("10:20", "a"), bound="10:15")
        query.step()
        assert query.promised == {"ts": "10:15"}


def test_a_bound_that_goes_back_is_refused(orders: Orders) -> None:
    orders.put(("10:10", "a"), bound="11:00")
    with orders.observed(orders.rows()) as query:
        query.step()
        orders.put(("11:10", "a"), bound="10:30")
        refused(query, "has gone back from 2006-09-11T11:00:00Z to 2006-09-11T10:30:00Z in version 2")


def test_a_table_that_is_made_again_is_refused(orders: Orders) -> None:
    orders.put(("10:10", "a"), bound="10:10")
    with orders.observed(orders.rows()) as query:
        query.step()
        shutil.rmtree(orders.path)
        DeltaTable.create(orders.path, COLUMNS)
        for minute in range(20, 24):
            orders.put((f"10:{minute}", "a"), bound=f"10:{minute}")
        with pytest.raises(StreamingQueryException):
            query.step()
    with pytest.raises(StreamingQueryException), orders.observed(orders.rows()) as query:
        query.step()


def test_a_log_that_was_cleaned_up_behind_the_last_bound(orders: Orders) -> None:
    """A query that has counted on the bound is refused; a new one has no bound until the next."""
    orders.put(("10:10", "a"), bound="10:30")
    with orders.observed(hourly(orders.rows())) as query:
        query.step()
    for _ in range(2):
        orders.put(("10:40", "x"))
    with orders.observed(hourly(orders.rows())) as query:
        assert query.step() == []
    DeltaTable(orders.path).create_checkpoint()
    for version in range(3):
        Path(orders.path, "_delta_log", f"{version:020}.json").unlink()
    with orders.observed(hourly(orders.rows())) as query:
        refused(query, "DataLostError", "delta.logRetentionDuration")
    with orders.observed(hourly(orders.rows()), "another") as query:
        assert query.step() == []
        orders.put(bound="11:00")
        assert query.step() == [(TEN, "a", 1), (TEN, "x", 2)]
    with orders.observed(hourly(orders.rows()), "another") as query:
        orders.put(("11:10", "a"), bound="12:00")
        assert query.step() == [(("11:00", "12:00"), "a", 1)]


def test_commits_without_new_rows_go_by(orders: Orders) -> None:
    orders.put(("10:10", "a"), bound="10:10")
    orders.put(("10:20", "a"), bound="10:20")
    with orders.observed(orders.rows()) as query:
        query.step()
        orders.sql("OPTIMIZE ORDERS")
        orders.sql("VACUUM ORDERS")
        orders.sql("ALTER TABLE ORDERS SET TBLPROPERTIES ('some' = 'thing')")
        assert query.step() == []
        assert query.promised == {"ts": "10:20"}
        orders.put(("10:30", "a"), bound="10:30")
        assert query.step() == [("10:30", "a")]
        assert query.promised == {"ts": "10:30"}


def test_a_clone_has_no_bound_and_one_over_the_table_is_refused(orders: Orders, spark: Any, tmp_path: Path) -> None:
    orders.put(("10:10", "a"), bound="10:10")
    copy = f"delta.`{tmp_path}/copy`"
    spark.sql(f"CREATE TABLE {copy} SHALLOW CLONE delta.`{orders.path}`")
    assert rt.readTableBound(f"delta:{tmp_path}/copy") is None
    cloned = spark.readStream.format("delta").load(str(tmp_path / "copy"))
    with orders.observed(rt.punctuate(cloned, "ts"), "copy") as query:
        assert query.step() == [("10:10", "a")]
        assert query.promised == {}
    with orders.observed(orders.rows(**orders.skipping)) as query:
        query.step()
        orders.sql("TRUNCATE TABLE ORDERS")  # without it Delta refuses a clone over it
        orders.sql(f"CREATE OR REPLACE TABLE ORDERS SHALLOW CLONE {copy}")
        refused(query, "DataLostError: version 3", "CLONE")


def test_a_bound_follows_its_column_to_another_name(orders: Orders) -> None:
    orders.put(("10:10", "a"), bound="10:10", **{COLUMN: "ts"})
    orders.sql(
        "ALTER TABLE ORDERS SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name', 'delta.minReaderVersion' = '2', "
        "'delta.minWriterVersion' = '5')"
    )
    orders.sql("ALTER TABLE ORDERS RENAME COLUMN ts TO at")
    with orders.observed(rt.punctuate(orders.read().where("at IS NOT NULL"), "at"), "renamed") as query:
        assert query.step() == [("10:10", "a")]
        assert query.promised == {"at": "10:10"}
        orders.sql("ALTER TABLE ORDERS RENAME COLUMN at TO was")
        with pytest.raises(StreamingQueryException):
            query.step()
    orders.sql("ALTER TABLE ORDERS ADD COLUMNS (ts TIMESTAMP)")
    orders.sql("INSERT INTO ORDERS VALUES (TIMESTAMP'2006-09-11 10:20:00', 'b', TIMESTAMP'2006-09-11 09:00:00')")
    named = rt.punctuate(orders.read().where("ts IS NOT NULL"), "ts")
    with orders.observed(named.select("ts"), "another") as query:
        assert query.step() == [("09:00",)]
        assert query.promised == {}


@pytest.mark.parametrize("statement", ["DROP COLUMN ts", "DROP COLUMN TS", "REPLACE COLUMNS (k STRING)"])
def test_a_bound_of_a_column_that_was_dropped_is_gone(orders: Orders, statement: str) -> None:
    orders.put(("10:10", "a"), bound="10:10", **{COLUMN: "ts"})
    orders.sql("ALTER TABLE ORDERS SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    orders.sql("ALTER TABLE ORDERS ALTER COLUMN ts DROP NOT NULL")
    orders.sql(f"ALTER TABLE ORDERS {statement}")
    orders.sql("ALTER TABLE ORDERS ADD COLUMNS (ts TIMESTAMP)")
    orders.sql("INSERT INTO ORDERS VALUES ('b', TIMESTAMP'2006-09-11 09:00:00')")
    with orders.observed(rt.punctuate(orders.read().where("ts IS NOT NULL"), "ts").select("ts")) as query:
        assert query.step() == [("09:00",)]
        assert query.promised == {}


def test_a_bound_of_a_field_that_was_dropped_is_gone(orders: Orders) -> None:
    orders.put(("10:10", "a"), bound="10:10", **{COLUMN: "w.end"})
    orders.sql("ALTER TABLE ORDERS ADD COLUMNS (w STRUCT<start: TIMESTAMP, end: TIMESTAMP>)")
    orders.sql("ALTER TABLE ORDERS SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    orders.sql("ALTER TABLE ORDERS DROP COLUMN w.end")
    orders.sql("ALTER TABLE ORDERS ADD COLUMNS (w.end TIMESTAMP)")
    times = "named_struct('start', TIMESTAMP'2006-09-11 08:00:00', 'end', TIMESTAMP'2006-09-11 09:00:00')"
    orders.sql(f"INSERT INTO ORDERS SELECT TIMESTAMP'2006-09-11 10:20:00', 'b', {times}")
    ends = orders.read().selectExpr("w.end AS end").where("end IS NOT NULL")
    with orders.observed(rt.punctuate(ends, "end")) as query:
        assert query.step() == [("09:00",)]
        assert query.promised == {}
