"""A chain of Iceberg tables by Iceberg's own sink, whose commits have the bounds of their queries; who may write."""

from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

import spark_rowtime as rt
from spark_rowtime.drain.properties import BATCH, BOUND, COLUMN, QUERY, STRICT
from tests.checkpoints import lose_last_commit
from tests.lakehouse.iceberg import IcebergOrders
from tests.lakehouse.test_writers import refused
from tests.sparksession import running
from tests.streams import at

COLUMNS = {"silver": "at TIMESTAMP, k STRING", "gold": "end TIMESTAMP, k STRING, count BIGINT"}


class Chain:
    """Silver and gold by the hour over the orders; gold is of Iceberg, or of Delta."""

    def __init__(self, orders: IcebergOrders) -> None:
        self.orders, self.spark = orders, orders.spark
        for table, columns in COLUMNS.items():
            self.spark.sql(f"CREATE TABLE {orders.name(table)} ({columns}) USING iceberg")

    def silver(self, name: str = "silver", **options: str) -> Any:
        rows = self.orders.rows(maxFilesPerTrigger="1").where("k <> 'noise'").select(f.col("ts").alias("at"), "k")
        return self.into("silver", rows, name, **{"rowtimeBound": "at", **options})

    def windows(self) -> DataFrame:
        silver = self.spark.readStream.table(self.orders.name("silver")).where("at IS NOT NULL")
        hours = rt.punctuate(silver, "at").groupBy(f.window("at", "1 hour"), "k").count()
        return hours.select("window.end", "k", "count")

    def gold(self) -> Any:
        return self.into("gold", self.windows(), "gold", rowtimeBound="end")

    def into(self, table: str, frame: DataFrame, name: str, **options: str) -> Any:
        writer = frame.writeStream.format("iceberg").options(**options)
        return writer.option("checkpointLocation", self.checkpoint(name)).toTable(self.orders.name(table))

    def checkpoint(self, name: str) -> str:
        return str(self.orders.folder / f"checkpoint-{name}")

    def rows(self, table: str = "gold") -> list[tuple[Any, ...]]:
        found = self.spark.table(self.orders.name(table)).orderBy("end").collect()
        return [(f"{row[0]:%H:%M}", *row[1:]) for row in found]

    def bound(self, table: str) -> rt.RowtimeBound | None:
        return rt.readTableBound(f"iceberg:{self.orders.name(table)}")

    def said(self, table: str) -> list[dict[str, str]]:
        """The summaries of the snapshots, oldest first."""
        snapshots = self.spark.table(f"{self.orders.name(table)}.snapshots").orderBy("committed_at")
        return [row.summary for row in snapshots.collect()]


@pytest.fixture
def chain(iceberg: IcebergOrders) -> Chain:
    return Chain(iceberg)


def test_windows_close_along_a_chain_of_tables(chain: Chain) -> None:
    orders = chain.orders
    orders.put(("10:10", "a"), ("10:20", "noise"), bound="10:30")
    with running(chain.silver()) as silver, running(chain.gold()) as gold:
        for query in (silver, gold):
            query.processAllAvailable()
        assert (chain.bound("silver"), chain.rows()) == (rt.RowtimeBound(at("10:30")), [])
        orders.put(("10:50", "a"), bound="11:10")
        for query in (silver, gold):
            query.processAllAvailable()
        assert chain.rows() == [("11:00", "a", 2)]
        last = chain.said("gold")[-1]
        assert {key: last[key] for key in (BOUND, STRICT, COLUMN, QUERY)} == {
            BOUND: at("11:10:00.000001"),
            STRICT: "false",
            COLUMN: "end",
            QUERY: str(gold.id),
        }
    orders.put(("11:50", "b"), bound="12:00")
    for start in (chain.silver, chain.gold):
        with running(start()) as query:
            query.processAllAvailable()
    assert chain.rows() == [("11:00", "a", 2), ("12:00", "b", 1)]
    assert [one[BATCH] for one in chain.said("gold")] == [str(n) for n in range(len(chain.said("gold")))]


def test_a_batch_that_runs_again_is_in_the_table_once(chain: Chain) -> None:
    from pathlib import Path

    chain.orders.put(("10:10", "a"), bound="10:30")
    with running(chain.silver()) as silver:
        silver.processAllAvailable()
    said = chain.said("silver")
    lose_last_commit(Path(chain.checkpoint("silver")))
    with running(chain.silver()) as silver:
        silver.processAllAvailable()
    assert chain.said("silver") == said


def test_a_drain_before_and_a_delta_table_behind(chain: Chain, spark: Any) -> None:
    """Bronze is by a drain, silver in Iceberg, gold in Delta: the bounds have the same names."""
    orders = chain.orders
    stream, bronze, gold = (str(orders.folder / "s"), f"iceberg:{orders.name('bronze')}", str(orders.folder / "gold"))
    rt.createStream(stream, "rowtime TIMESTAMP NOT NULL, k STRING")
    with rt.openSink(stream) as sink:
        sink.sendRows([(at("10:10"), "a"), (at("10:20"), "b")])
        sink.sendRowtimeBound(at("11:00"))
    with rt.openReader(stream) as reader, rt.openTableSink(bronze, reader.schema) as table:
        reader.drainTo(table)
    rows = rt.punctuate(spark.readStream.table(orders.name("bronze")), "rowtime")
    rows = rows.select(f.col("rowtime").alias("at"), "k")
    with running(chain.into("silver", rows, "silver", rowtimeBound="at")) as query:
        query.processAllAvailable()
    writer = chain.windows().writeStream.format("delta").option("rowtimeBound", "end")
    with running(writer.option("checkpointLocation", chain.checkpoint("gold")).start(gold)) as query:
        query.processAllAvailable()
    assert spark.read.format("delta").load(gold).count() == 2
    assert rt.readTableBound(f"delta:{gold}") == rt.RowtimeBound(at("11:00:00.000001"))


def test_by_table_writer_the_properties_are_the_same(chain: Chain) -> None:
    target = f"iceberg:{chain.orders.name('written')}"
    chain.orders.put(("10:10", "a"), bound="10:30")
    writer = chain.orders.rows().writeStream.foreachBatch(rt.tableWriter(target, "ts"))
    with running(writer.option("checkpointLocation", chain.checkpoint("written")).start()) as query:
        query.processAllAvailable()
    said = chain.said("written")[-1]
    assert (said[BOUND], said[COLUMN], said[QUERY]) == (at("10:30"), "ts", str(query.id))
    rows = chain.spark.readStream.table(chain.orders.name("written")).where("ts IS NOT NULL")
    with chain.orders.observed(rt.punctuate(rows, "ts"), "reader") as reader:
        assert reader.step() == [("10:10", "a")]
        assert reader.promised == {"ts": "10:30"}


def test_what_iceberg_sink_cannot_promise_is_refused(chain: Chain) -> None:
    chain.orders.put(("10:10", "a"), bound="10:30")
    plain = chain.orders.read().select(f.col("ts").alias("at"), "k")
    refused(chain.into("silver", plain, "plain", rowtimeBound="at"), "reads nothing that has bounds")
    refused(chain.silver("wrong", rowtimeBound="ts"), "the output has no such column. It has at")
    loop = chain.orders.rows()
    refused(chain.into("orders", loop, "loop", rowtimeBound="ts"), "the query reads the table that it writes")
    kept = rt.punctuate(chain.orders.read(), "ts", rejected=f"iceberg:{chain.orders.path}")
    with (
        pytest.raises(StreamingQueryException, match="each late row would come back"),
        chain.orders.observed(kept) as query,
    ):
        query.step()


def test_a_second_query_into_the_table_is_refused(chain: Chain) -> None:
    chain.orders.put(("10:10", "a"), bound="10:10")
    with running(chain.silver()) as first:
        first.processAllAvailable()
        refused(chain.silver("second"), "ProducerFencedError", str(first.id), "Write to another table")
        chain.orders.put(("10:20", "a"), bound="10:20")
        first.processAllAvailable()
        assert chain.bound("silver") == rt.RowtimeBound(at("10:20"))
        said = {f"snapshot-property.{QUERY}": "another", f"snapshot-property.{BOUND}": at("10:25")}
        other = chain.spark.table(chain.orders.name("silver")).limit(0).writeTo(chain.orders.name("silver"))
        for name, value in said.items():
            other = other.option(name, value)
        reader = chain.orders.observed(chain.windows(), "reader")
        with reader:
            reader.step()
            other.append()
            with pytest.raises(StreamingQueryException, match="has a bound by query another, and the one before is by"):
                reader.step()
        chain.orders.put(("10:20", "a"), bound="10:30")
        refused(first, "ProducerFencedError", "query another")


def test_a_table_that_was_rolled_back_under_its_writer_is_refused(chain: Chain) -> None:
    silver = chain.orders.name("silver")
    chain.orders.put(("10:10", "a"), bound="10:10")
    with running(chain.silver()) as query:
        query.processAllAvailable()
        first = chain.spark.table(f"{silver}.snapshots").orderBy("committed_at").collect()[0].snapshot_id
        chain.spark.sql(f"INSERT INTO {silver} VALUES (TIMESTAMP'2006-09-11 10:30:00', 'x')")
        chain.orders.put(("10:20", "a"), bound="10:20")
        query.processAllAvailable()  # rows of others are no reason
        chain.orders.call("rollback_to_snapshot", f"snapshot_id => {first}", "silver")
        chain.orders.put(("10:40", "a"), bound="10:40")
        refused(query, "DataLostError", "was set back")
    refused(chain.silver(), "DataLostError", "was set back")
