"""A query with the option rowtimeBound whose table, or whose checkpoint, is not the one that it had."""

import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.errors import StreamingQueryException
from pyspark.sql import functions as f

import spark_rowtime as rt
from tests.checkpoints import lose_last_commit
from tests.lakehouse.orders import Orders
from tests.lakehouse.test_writers import into, refused, silver
from tests.sparksession import running
from tests.streams import at

pytestmark = pytest.mark.night

MILLISECONDS = "spark.sql.parquet.outputTimestampType"


def process(orders: Orders, query: Any, *clocks: str) -> None:
    """A batch for each clock, with a row at it and the bound there."""
    for clock in clocks:
        orders.put((clock, "a"), bound=clock)
        query.processAllAvailable()


def run(orders: Orders, *clocks: str, **options: str) -> None:
    options = options or {"rowtimeBound": "ts"}
    with running(into(orders.rows(), orders.folder, "silver", **options)) as query:
        process(orders, query, *clocks)


def rows(orders: Orders) -> list[str]:
    """The clocks of the output."""
    table = orders.spark.read.format("delta").load(str(orders.folder / "silver"))
    return [row[0] for row in table.select(f.date_format("ts", "HH:mm").alias("clock")).sort("clock").collect()]


def test_a_table_that_is_set_back_while_a_batch_is_written(orders: Orders) -> None:
    """The batch is there then, and the next one finds it, of this run or of a later one."""
    table = str(orders.folder / "silver")
    set_back = f.udf(lambda k: str(DeltaTable(table).restore(0)) if k == "set back" else k, "string")
    frame = orders.rows().select("ts", set_back("k").alias("k"))
    with running(into(frame, orders.folder, "silver", rowtimeBound="ts")) as query:
        process(orders, query, "10:05", "10:10")
        orders.put(("10:20", "set back"), bound="10:20")
        with suppress(StreamingQueryException):  # Spark may run another batch at once
            query.processAllAvailable()
        orders.put(("10:30", "a"), bound="10:30")
        refused(query, "DataLostError", "was set back")
    refused(silver(orders), "DataLostError", "was set back")
    assert rows(orders) == ["10:05", "10:20"]


@pytest.mark.each
def test_a_table_that_was_removed_is_not_made_again(orders: Orders) -> None:
    run(orders, "10:10", "10:20")
    shutil.rmtree(orders.folder / "silver")
    orders.put(("10:30", "a"), bound="10:30")
    refused(silver(orders), "DataLostError", "dropped")
    assert not Path(orders.folder, "silver").exists()


def test_a_table_that_is_made_again_under_its_query(orders: Orders) -> None:
    """If it looks at the log between two of the new commits, the table seems to be set back."""
    with running(silver(orders)) as query:
        process(orders, query, "10:10", "10:20")
        put_in_the_place(Path(orders.path), orders.folder / "silver")
        orders.put(("10:30", "a"), bound="10:30")
        said = refused(query, "DataLostError", f"{orders.folder}/silver was ")
        assert "was deleted and made again: version 1" in said or "was set back, dropped, or its rows were" in said


def put_in_the_place(table: Path, other: Path) -> None:
    """Commit by commit, since the query looks at the log all the time: of one that is not there it knows nothing."""
    shutil.copytree(table, table.parent / "copy")
    for commit in sorted((table.parent / "copy/_delta_log").glob("*.json")):
        (other / f"_delta_log/.{commit.name}.crc").unlink(missing_ok=True)
        commit.replace(other / "_delta_log" / commit.name)


def test_a_query_that_is_given_the_option_later_goes_on(orders: Orders) -> None:
    run(orders, "10:10", "10:20", mergeSchema="false")
    run(orders, "10:30", "10:40")
    assert rows(orders) == ["10:10", "10:20", "10:30", "10:40"]
    assert rt.readTableBound(f"delta:{orders.folder}/silver") == rt.RowtimeBound(at("10:40"))


@pytest.mark.parametrize("batches", [1, 2])
def test_a_checkpoint_that_is_behind_its_table(orders: Orders, batches: int) -> None:
    """Delta passes by the batches that it knows, whatever rows they have now."""
    checkpoint, copy = orders.folder / "checkpoint-silver", orders.folder / "copy"
    run(orders, "10:10")
    shutil.copytree(checkpoint, copy)
    run(orders, *("10:20", "10:30")[:batches])
    shutil.rmtree(checkpoint)
    shutil.copytree(copy, checkpoint)
    orders.put(("10:40", "a"), bound="10:40")
    refused(silver(orders), "ProducerFencedError", "is behind")
    orders.spark.sql(f"RESTORE TABLE delta.`{orders.folder}/silver` TO VERSION AS OF 0")
    refused(silver(orders), "ProducerFencedError", "is behind")


def test_a_batch_that_runs_again_is_passed_by(orders: Orders) -> None:
    run(orders, "10:10", "10:20")
    lose_last_commit(orders.folder / "checkpoint-silver")
    run(orders, "10:30")
    assert rows(orders) == ["10:10", "10:20", "10:30"]


def test_a_bound_is_not_above_times_that_are_cut_to_milliseconds(orders: Orders) -> None:
    orders.spark.conf.set(MILLISECONDS, "TIMESTAMP_MILLIS")
    try:
        with running(silver(orders)) as query:
            orders.put(("10:10:00.000500", "a"), bound="10:10:00.000400")
            query.processAllAvailable()
    finally:
        orders.spark.conf.unset(MILLISECONDS)
    assert rt.readTableBound(f"delta:{orders.folder}/silver") == rt.RowtimeBound(at("10:10"))
