"""Who may write bounds into a Delta table, which of them count, and where they would mean nothing."""

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException

import spark_rowtime as rt
from spark_rowtime.drain.properties import BATCH, BOUND, QUERY
from tests.lakehouse.orders import Orders, hourly
from tests.sparksession import running
from tests.streams import at

pytestmark = pytest.mark.night

METADATA = "spark.databricks.delta.commitInfo.userMetadata"


def into(frame: Any, folder: Path, name: str, table: str = "silver", mode: str = "append", **options: str) -> Any:
    """Starts a query into a table of the folder with Delta's own sink."""
    writer = frame.writeStream.format("delta").option("checkpointLocation", str(folder / f"checkpoint-{name}"))
    return writer.outputMode(mode).options(**options).start(str(folder / table))


def refused(query: Any, *words: str) -> str:
    """Requires that the query fails with these words; returns all that it says."""
    with running(query), pytest.raises(StreamingQueryException) as error:
        query.processAllAvailable()
    said = str(error.value)
    assert all(word in said for word in words), said
    return said


def silver(orders: Orders, name: str = "silver") -> Any:
    return into(orders.rows(), orders.folder, name, rowtimeBound="ts")


def forged(query: str | None) -> str:
    """What a query of ours would say; with None without its id."""
    who = {"note": QUERY} if query is None else {QUERY: query, BATCH: "0" if query else ""}
    return json.dumps({BOUND: at("11:00"), **who})


@pytest.mark.each
def test_a_query_that_reads_no_bounds_is_refused(orders: Orders) -> None:
    orders.put(("10:10", "a"), bound="10:10")
    plain = orders.read()
    refused(into(plain, orders.folder, "plain", rowtimeBound="ts"), "reads nothing that has bounds")
    assert not Path(orders.folder, "silver").exists()
    writer = plain.writeStream.format("parquet").option("checkpointLocation", str(orders.folder / "checkpoint"))
    refused(writer.option("rowtimeBound", "ts").start(str(orders.folder / "files")), "reads nothing that has bounds")
    writer = orders.rows().writeStream.format("memory").queryName("rows").option("rowtimeBound", "ts")
    refused(writer.start(), 'it is for format("delta")')


def test_a_second_query_into_the_table_is_refused(orders: Orders) -> None:
    orders.put(("10:10", "a"), bound="10:10")
    with running(silver(orders)) as first:
        first.processAllAvailable()
        refused(silver(orders, "second"), "ProducerFencedError", str(first.id), "Write to another table")
        orders.put(("10:20", "a"), bound="10:20")
        first.processAllAvailable()
        assert rt.readTableBound(f"delta:{orders.folder}/silver") == rt.RowtimeBound(at("10:20"))
    orders.spark.sql(f"TRUNCATE TABLE delta.`{orders.folder}/silver`")
    refused(silver(orders, "third"), "ProducerFencedError")


def test_a_table_that_was_overwritten_takes_another_query(orders: Orders) -> None:
    orders.put(("10:10", "a"), bound="10:10")
    with running(silver(orders)) as first:
        first.processAllAvailable()
    orders.spark.sql(f"INSERT OVERWRITE delta.`{orders.folder}/silver` VALUES (TIMESTAMP'2006-09-11 09:00:00', 'b')")
    with running(silver(orders, "second")) as second:
        second.processAllAvailable()
    assert rt.readTableBound(f"delta:{orders.folder}/silver") == rt.RowtimeBound(at("10:10"))
    orders.put(("10:20", "a"), bound="10:20")
    refused(silver(orders), "ProducerFencedError", str(second.id))


def test_queries_that_write_at_the_same_time_are_found_by_both_and_by_readers(orders: Orders) -> None:
    """The commit of another query comes between the look of a query and its own commit."""
    from deltalake import CommitProperties, DeltaTable, write_deltalake

    orders.put(("10:10", "a"), bound="10:10")
    table = str(orders.folder / "silver")
    with running(silver(orders)) as first:
        first.processAllAvailable()
        reader = orders.observed(
            rt.punctuate(orders.spark.readStream.format("delta").load(table).where("ts > '2006-01-01'"), "ts")
        )
        with reader:
            reader.step()
            rows = DeltaTable(table).to_pyarrow_table().slice(0, 0)
            said = {BOUND: at("10:20"), QUERY: "another", BATCH: "0"}
            write_deltalake(table, rows, mode="append", commit_properties=CommitProperties(custom_metadata=said))
            with pytest.raises(StreamingQueryException, match="has a bound by query another, and the one before is by"):
                reader.step()
        orders.put(("10:20", "a"), bound="10:30")
        refused(first, "ProducerFencedError", "query another")


def test_a_table_that_was_set_back_under_its_writer_is_refused(orders: Orders) -> None:
    table = f"delta.`{orders.folder}/silver`"
    orders.put(("10:10", "a"), bound="10:10")
    with running(silver(orders)) as query:
        query.processAllAvailable()
        orders.spark.sql(f"OPTIMIZE {table}")
        orders.put(("10:20", "a"), bound="10:20")
        query.processAllAvailable()
        versions = orders.spark.sql(f"DESCRIBE HISTORY {table}").count()
        orders.spark.sql(f"INSERT INTO {table} VALUES (TIMESTAMP'2006-09-11 10:30:00', 'x')")
        orders.spark.sql(f"RESTORE TABLE {table} TO VERSION AS OF {versions - 1}")
        orders.put(("10:30", "a"), bound="10:30")
        query.processAllAvailable()  # nothing of the query was taken away
        orders.spark.sql(f"RESTORE TABLE {table} TO VERSION AS OF 0")
        orders.put(("10:40", "a"), bound="10:40")
        refused(query, "DataLostError", "was set back")
    refused(silver(orders), "DataLostError", "was set back")


@pytest.mark.parametrize("who", ["that of the table", "7a0c3f6e-0000-4000-8000-000000000000", "", None])
def test_a_bound_in_the_metadata_of_another_statement_does_not_count(orders: Orders, who: str | None) -> None:
    orders.put(("10:10", "a"), bound="10:10")
    with running(silver(orders)) as query:
        query.processAllAvailable()
    table = f"delta.`{orders.folder}/silver`"
    said = orders.spark.sql(f"DESCRIBE HISTORY {table}").where("userMetadata IS NOT NULL").collect()[0].userMetadata
    orders.spark.conf.set(METADATA, said.replace("10:10", "11:00") if who == "that of the table" else forged(who))
    try:
        orders.spark.sql(f"INSERT INTO {table} VALUES (TIMESTAMP'2006-09-11 10:20:00', 'x')")
    finally:
        orders.spark.conf.unset(METADATA)
    assert rt.readTableBound(f"delta:{orders.folder}/silver") == rt.RowtimeBound(at("10:10"))
    rows = orders.spark.readStream.format("delta").load(str(orders.folder / "silver")).where("ts IS NOT NULL")
    with orders.observed(rt.punctuate(rows, "ts")) as reader:
        assert reader.step() == [("10:10", "a"), ("10:20", "x")]
        assert reader.promised == {"ts": "10:10"}


@pytest.mark.each
def test_a_table_is_not_written_by_the_query_that_reads_it(orders: Orders, tmp_path: Path) -> None:
    orders.put(("10:10", "a"), bound="10:10")
    refused(
        into(orders.rows(), tmp_path, "loop", "orders", rowtimeBound="ts"), "the query reads the table that it writes"
    )
    kept = rt.punctuate(orders.read(), "ts", rejected=f"delta:{orders.path}")
    with pytest.raises(StreamingQueryException, match="each late row would come back"), orders.observed(kept) as query:
        query.step()


def test_complete_mode_has_no_bound(orders: Orders) -> None:
    orders.put(("10:10", "a"), bound="10:10")
    windows = hourly(orders.rows()).select("window.end", "k", "count")
    query = into(windows, orders.folder, "windows", "windows", "complete", rowtimeBound="end")
    refused(query, "complete mode writes all results again")


def test_rows_that_complete_mode_has_replaced_have_no_bound(orders: Orders, tmp_path: Path) -> None:
    """A table with a bound is replaced by a query in complete mode."""
    other = Orders(orders.spark, tmp_path / "other")
    other.put(("10:10", "b"))
    orders.put(("10:10", "a"), bound="10:10")
    with orders.observed(orders.rows(**orders.skipping)) as reader:
        reader.step()
        times = other.read().groupBy("ts", "k").count().select("ts", "k")
        with running(into(times, orders.folder, "times", "orders", "complete")) as query:
            query.processAllAvailable()
        with pytest.raises(StreamingQueryException, match="STREAMING UPDATE\\) has set the table back, or replaced"):
            reader.step()
    with pytest.raises(rt.DataLostError, match="STREAMING UPDATE"):
        rt.readTableBound(f"delta:{orders.path}")
