"""A query's batches in commits of a table, each once; and what Spark reads of a drain into Parquet."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyiceberg.catalog import load_catalog
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import spark_rowtime as rt
from spark_rowtime.drain.properties import POSITION, QUERY, QUERY_STATUS
from spark_rowtime.drain.tables.open import open_table
from tests.checkpoints import lose_last_commit
from tests.streams import at
from tests.tables.lake import Lake
from tests.tables.test_set_back import iceberg, set_back
from tests.tables.test_strange_commits import beside
from tests.tables.test_why_iceberg import SNAPSHOT, IcebergLake

SCHEMA = "rowtime TIMESTAMP NOT NULL, units INT"


def send(stream: str, hours: range) -> None:
    """Two rows in each hour, and the bound at the end of the last."""
    with rt.openSink(stream, producer="shop") as sink:
        for hour in hours:
            sink.sendRow((f"2026-01-05T{hour:02}:10:00Z", hour))
            sink.sendRow((f"2026-01-05T{hour:02}:40:00Z", 100))
        sink.sendRowtimeBound(f"2026-01-05T{hours[-1] + 1:02}:00:00Z")


def run(spark: SparkSession, lake: Lake, kind: str, checkpoint: str = "checkpoint") -> str:
    """Runs the query to the end of its stream; returns its id."""
    orders = spark.readStream.format("rowtime").load(lake.stream)
    hours = orders.groupBy(F.window("rowtime", "1 hour")).agg(F.sum("units").alias("units"))
    query = (
        hours.writeStream.foreachBatch(rt.tableWriter(lake.target(kind), "window.end"))
        .option("checkpointLocation", str(lake.folder / checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination(240)
    return str(query.id)


def hours_in(lake: Lake, kind: str) -> list[tuple[int, int]]:
    lake_rows = lake.read(kind, order="units").to_pylist()
    return sorted((row["window"]["start"].hour, row["units"]) for row in lake_rows)


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_each_batch_of_a_query_is_one_commit_with_its_bound_and_comes_once(
    spark: SparkSession, lake: Lake, kind: str
) -> None:
    rt.createStream(lake.stream, SCHEMA)
    send(lake.stream, range(10, 12))
    query = run(spark, lake, kind)
    assert hours_in(lake, kind) == [(10, 110), (11, 111)]
    bound = rt.readTableBound(lake.target(kind))
    assert bound is not None
    assert bound >= rt.RowtimeBound("2026-01-05T12:00:00Z")
    last = lake.commits(kind)[-1]
    assert (last["rowtime.query"], set(last) - {"rowtime.commit"}) == (
        query,
        {f"rowtime.{name}" for name in ("query", "batch", "offsets", "bound", "strict", "column", "account")},
    )
    why = rt.whyTable(lake.target(kind), "2026-01-05T13:00:00Z", within=[str(lake.folder)])
    assert [link.kind for link in why.chain] == ["producer", "stream", "query", "table"]
    assert (why.chain[2].name, why.cause) == (query, rt.Cause.LEFT)
    commits = lake.commits(kind)
    assert lose_last_commit(lake.folder / "checkpoint") == int(last["rowtime.batch"])
    run(spark, lake, kind)
    assert (hours_in(lake, kind), lake.commits(kind)) == ([(10, 110), (11, 111)], commits)
    send(lake.stream, range(12, 14))
    run(spark, lake, kind)
    assert hours_in(lake, kind) == [(hour, 100 + hour) for hour in range(10, 14)]
    with pytest.raises(StreamingQueryException, match="A table has the bound of one writer"):
        run(spark, lake, kind, "another")
    assert hours_in(lake, kind) == [(hour, 100 + hour) for hour in range(10, 14)]
    with rt.openReader(lake.stream) as reader, pytest.raises((rt.InvalidOptionError, rt.SchemaMismatchError)):
        rt.openTableSink(lake.target(kind), reader.schema)


def one_order(spark: SparkSession, hour: int = 10) -> DataFrame:
    return spark.sql(f"SELECT TIMESTAMP '2026-01-05 {hour}:00:00' AS at, 1 AS units")


def in_batch(
    spark: SparkSession, write: Any, frame: Any, number: int, floor: int | None, end: str | None = None
) -> None:
    """Calls the function as a query's foreachBatch does, with the properties that Spark and the extension set there."""
    context = spark.sparkContext
    bounds = None if floor is None else json.dumps({"at": floor})
    set_there = {"sql.streaming.queryId": "q", "rowtime.query": "q", "rowtime.outputBounds": bounds}
    set_there["rowtime.batchEnd"] = end
    for name, value in set_there.items():
        context.setLocalProperty(name, value)
    try:
        write(frame, number)
    finally:
        for name in set_there:
            context.setLocalProperty(name, None)


def test_a_batch_below_the_tables_bound_and_a_column_that_is_no_time_are_refused(
    spark: SparkSession, lake: Lake
) -> None:
    early, late = (one_order(spark, hour) for hour in (10, 12))
    write, floor = rt.tableWriter(lake.target("delta"), "at"), rt.RowtimeBound("2026-01-05T11:00:00Z").floor
    in_batch(spark, write, early, 0, floor)
    with pytest.raises(rt.DisorderedOutputError, match="is below the bound of delta:"):
        in_batch(spark, write, early, 1, floor)
    in_batch(spark, write, late, 1, None)
    assert rt.readTableBound(lake.target("delta")) == rt.RowtimeBound("2026-01-05T11:00:00Z"), "it stays"
    in_batch(spark, write, late.limit(0), 2, floor)
    assert [commit["rowtime.batch"] for commit in lake.commits("delta")] == ["0", "1"], "nothing moved"
    in_batch(spark, write, late.limit(0), 3, floor + 1)
    assert lake.commits("delta")[-1]["rowtime.batch"] == "3", "the bound moved"
    for column in ("units", "window.end"):
        with pytest.raises(rt.InvalidOptionError, match=f"column='{column}' is no time among"):
            in_batch(spark, rt.tableWriter(lake.target("delta"), column), late, 4, floor)
    with pytest.raises(rt.InvalidOptionError, match="there is no streaming query here"):
        write(late, 4)
    with pytest.raises(rt.InvalidOptionError, match="has no commit that could hold a query's batch"):
        in_batch(spark, rt.tableWriter(lake.target("parquet"), "at"), late, 4, floor)


def test_the_bound_of_a_table_does_not_fall(spark: SparkSession, lake: Lake) -> None:
    """As where a query is started again with more rows held back."""
    write, bound = rt.tableWriter(lake.target("delta"), "at"), rt.RowtimeBound("2026-01-05T10:00:00Z")
    in_batch(spark, write, one_order(spark), 0, bound.floor)
    in_batch(spark, write, one_order(spark), 1, bound.floor - 3_600_000_000)
    assert [commit["rowtime.batch"] for commit in lake.commits("delta")] == ["0", "1"]
    assert rt.readTableBound(lake.target("delta")) == bound


def test_a_bound_is_about_one_column(spark: SparkSession, lake: Lake) -> None:
    """Another one would go back, or promise what nobody has promised."""
    write, floor = rt.tableWriter(lake.target("delta"), "at"), rt.RowtimeBound("2026-01-05T09:00:00Z").floor
    rows = one_order(spark).selectExpr("*", "at + INTERVAL 1 HOUR AS other")
    in_batch(spark, write, rows, 0, floor)
    with pytest.raises(rt.InvalidOptionError, match="the column 'at', and this query would go on with 'other'"):
        in_batch(spark, rt.tableWriter(lake.target("delta"), "other"), rows, 1, floor)
    assert [commit["rowtime.batch"] for commit in lake.commits("delta")] == ["0"]
    in_batch(spark, write, rows, 1, floor)
    assert len(lake.commits("delta")) == 2


def test_a_rowtime_that_is_null_is_said_with_the_column(spark: SparkSession, lake: Lake) -> None:
    rows = one_order(spark).selectExpr("at", "CAST(NULL AS TIMESTAMP) AS rowtime")
    with pytest.raises(rt.SchemaMismatchError, match="Column 'rowtime' is NOT NULL, but 1 of its values are null"):
        in_batch(spark, rt.tableWriter(lake.target("delta"), "at"), rows, 0, None)


def test_after_log_clean_up_a_batch_is_known_by_its_transaction_and_not_written_again(
    spark: SparkSession, lake: Lake
) -> None:
    rows = one_order(spark)
    write, floor = rt.tableWriter(lake.target("delta"), "at"), rt.RowtimeBound("2026-01-05T09:00:00Z").floor
    for batch in (0, 1):
        in_batch(spark, write, rows, batch, floor)
    DeltaTable(f"{lake.folder}/delta").optimize.compact()
    clean_up(lake)
    in_batch(spark, write, rows, 1, floor)
    assert lake.read("delta", "units").num_rows == 2
    in_batch(spark, write, rows, 2, floor)
    assert lake.read("delta", "units").num_rows == 3
    there = DeltaTable(f"{lake.folder}/delta").version()
    in_batch(spark, write, rows, 3, floor)
    set_back(lake, "delta", there)
    clean_up(lake)
    with pytest.raises(rt.DataLostError, match="was set back"):
        in_batch(spark, write, rows, 4, floor)


def clean_up(lake: Lake) -> None:
    """Removes what is older than a checkpoint of the newest version from the log."""
    table = DeltaTable(f"{lake.folder}/delta")
    table.create_checkpoint()
    for version in range(table.version()):
        (lake.folder / f"delta/_delta_log/{version:020}.json").unlink(missing_ok=True)


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_a_query_whose_table_was_set_back_is_refused_since_it_would_leave_batches_out(
    spark: SparkSession, lake: Lake, kind: str
) -> None:
    rows = one_order(spark)
    write, floor = rt.tableWriter(lake.target(kind), "at"), rt.RowtimeBound("2026-01-05T09:00:00Z").floor
    places = []
    for batch in range(3):
        in_batch(spark, write, rows, batch, floor)
        places.append(DeltaTable(f"{lake.folder}/delta").version() if kind == "delta" else snapshot())
    set_back(lake, kind, places[1])
    with pytest.raises(rt.DataLostError, match="had written up to batch 2, and now batch 1 is the last") as caught:
        in_batch(spark, write, rows, 3, floor)
    assert caught.value.values["batch"] == 2
    if kind == "delta":
        set_back(lake, kind, places[2])
        in_batch(spark, write, rows, 3, floor)
        assert lake.read(kind, "units").num_rows == 4


@pytest.mark.each
@pytest.mark.parametrize("said", [{"rowtime.bound": "2026-01-05T09:30:00Z"}, {"rowtime.column": "at"}], ids=str)
@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_commits_by_others_without_a_query_do_not_hide_the_batches_of_the_query(
    spark: SparkSession, lake: Lake, kind: str, said: dict[str, str]
) -> None:
    """They did: the error said that the table was set back."""
    rows = one_order(spark)
    write, floor = rt.tableWriter(lake.target(kind), "at"), rt.RowtimeBound("2026-01-05T09:00:00Z").floor
    for batch in range(2):
        in_batch(spark, write, rows, batch, floor)
        for _ in range(2):
            beside(lake, kind, said, rows.toArrow().slice(0, 0))
        in_batch(spark, write, rows, batch, floor)
    assert lake.read(kind, "units").num_rows == 2
    beside(lake, kind, said, rows.toArrow().slice(0, 0))
    assert open_table(lake.target(kind), rows.toArrow().schema).properties["rowtime.query"] == "q"


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
@pytest.mark.parametrize("again", [False, True])
def test_a_table_that_was_dropped_gets_no_later_batch(spark: SparkSession, lake: Lake, kind: str, again: bool) -> None:
    """Nor one that others have made in its place. It is not made, so that it can be restored."""
    rows = one_order(spark)
    write, floor = rt.tableWriter(lake.target(kind), "at"), rt.RowtimeBound("2026-01-05T09:00:00Z").floor
    in_batch(spark, write, rows, 0, floor)
    drop(lake, kind)
    if again:
        open_table(lake.target(kind), rows.toArrow().schema)
    with pytest.raises(rt.DataLostError, match="the table has no batch of this query") as caught:
        in_batch(spark, write, rows, 1, floor)
    assert (caught.value.values["batch"], lake.made(kind)) == (1, again)
    in_batch(spark, write, rows, 0, floor)
    in_batch(spark, write, rows, 1, floor)
    assert lake.read(kind, "units").num_rows == 2


def drop(lake: Lake, kind: str) -> None:
    if kind == "delta":
        shutil.rmtree(lake.folder / "delta")
    else:
        load_catalog("lake").drop_table("shop.orders")


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_the_first_batch_of_a_query_is_in_the_table_also_without_rows(
    spark: SparkSession, lake: Lake, kind: str
) -> None:
    rows = one_order(spark)
    write = rt.tableWriter(lake.target(kind), "at")
    for number, frame in enumerate((rows.limit(0), rows.limit(0), rows)):
        in_batch(spark, write, frame, number, None)
    assert [commit["rowtime.batch"] for commit in lake.commits(kind)] == ["0", "2"]


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_only_the_last_batch_of_a_table_is_repeated_and_only_from_the_same_part_of_the_source(
    spark: SparkSession, lake: Lake, kind: str
) -> None:
    rows = one_order(spark)
    write = rt.tableWriter(lake.target(kind), "at")
    for number in range(3):
        in_batch(spark, write, rows, number, None, f"offset {number}")
    in_batch(spark, write, rows, 2, None, "offset 2")
    in_batch(spark, write, rows, 2, None)  # without the extension there are no offsets to compare
    with pytest.raises(rt.ProducerFencedError, match="written from another part of the source"):
        in_batch(spark, write, rows, 2, None, "offset 3")
    with pytest.raises(rt.ProducerFencedError, match=r"batch 2 has been written\. The checkpoint is an older copy"):
        in_batch(spark, write, rows, 1, None, "offset 1")
    assert lake.read(kind, "units").num_rows == 3


@pytest.mark.long
def test_an_older_copy_of_a_checkpoint_is_refused_before_its_first_batch_is_passed_over(
    spark: SparkSession, lake: Lake
) -> None:
    rt.createStream(lake.stream, SCHEMA)
    send(lake.stream, range(10, 11))
    run(spark, lake, "delta")
    shutil.copytree(lake.folder / "checkpoint", lake.folder / "older")
    send(lake.stream, range(11, 12))
    run(spark, lake, "delta")
    send(lake.stream, range(12, 13))
    with pytest.raises(StreamingQueryException, match="has been written from another part of the source"):
        run(spark, lake, "delta", "older")
    run(spark, lake, "delta")
    assert hours_in(lake, "delta") == [(hour, 100 + hour) for hour in range(10, 13)]


def test_the_documented_reading_of_a_delta_log_follows_a_restore(spark: SparkSession, lake: Lake) -> None:
    rt.createStream(lake.stream, SCHEMA)
    versions, found = [], []
    for hour in (10, 11):
        send(lake.stream, range(hour, hour + 1))
        lake.drain("delta")
        versions.append(DeltaTable(f"{lake.folder}/delta").version())
        found.append(documented_bound(spark, lake))
    set_back(lake, "delta", versions[0])
    found.append(documented_bound(spark, lake))
    assert found == ["2026-01-05T11:00:00Z", "2026-01-05T12:00:00Z", "2026-01-05T11:00:00Z"]


def documented_bound(spark: SparkSession, lake: Lake) -> str:
    page = (Path(__file__).parents[2] / "docs/howto/tables.md").read_text()
    (block,) = (text for text in re.findall("```text\n(.*?)```", page, re.DOTALL) if "_delta_log" in text)
    names: dict[str, Any] = {"spark": spark, "F": F}
    exec(block.replace("/lake/orders", f"{lake.folder}/delta"), names)
    return str(names["bound"])


def snapshot() -> int:
    return int(iceberg().current_snapshot().snapshot_id)


@pytest.mark.long
def test_spark_reads_the_hours_that_a_drain_has_completed(spark: SparkSession, lake: Lake) -> None:
    rt.createStream(lake.stream, SCHEMA)
    send(lake.stream, range(10, 13))
    lake.drain("parquet")
    read = spark.read.parquet(str(lake.folder / "parquet"))
    assert read.columns == ["rowtime", "units", "date", "hour"]
    rows = read.where("hour < 12").groupBy("hour").sum("units").orderBy("hour").collect()
    assert [tuple(row) for row in rows] == [(10, 110), (11, 111)]


def test_the_side_of_a_join_that_holds_an_iceberg_table_is_named(
    spark: SparkSession, lake: Lake, tmp_path: Path
) -> None:
    """A snapshot has a brief account, which had the source with the least bound alone."""
    tables = IcebergLake(tmp_path)
    assert lake.catalog
    tables.commit("orders", "10:25", **{POSITION: "3"})
    tables.commit("trades", "11:10", **{POSITION: "3"})
    sources = [
        {**tables.read("orders", SNAPSHOT, "10:25"), "behind": 0},
        {**tables.read("trades", SNAPSHOT, "11:10"), "behind": 3_600_000_000},
    ]
    operators = [{"name": "stateStoreSave", "emits": "complete"}, {"name": "symmetricHashJoin", "emits": "complete"}]
    whole = {"query": "q", "name": "q", "sources": sources, "operators": operators, "lost": {}}
    told = json.dumps({**whole, "output": {"end": rt.RowtimeBound(at("10:10")).floor}})
    brief = spark._jvm.sparkrowtime.query.BriefStatus.of(told)  # type: ignore[union-attr]
    tables.commit("gold", "10:10", **{QUERY: "q", QUERY_STATUS: brief})
    found = tables.why("gold", "10:20")
    assert [link.name for link in found.chain][:2] == ["a drain", tables.path("trades")]
