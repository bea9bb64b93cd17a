"""Bounds of Delta tables in whose commits nobody writes any, by the statistics of their files and a lateness."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from deltalake import DeltaTable
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

import spark_rowtime as rt
from tests.lakehouse.orders import Orders, hourly, late
from tests.spark.observed_query import micros

TEN, ELEVEN = ("10:00", "11:00"), ("11:00", "12:00")
LATENESS = {"lateness": "30 minutes"}


def watched(orders: Orders, **options: Any) -> Any:
    return rt.punctuate(orders.read(**options), "ts", watch=LATENESS)


def floors(query: Any) -> list[int | None]:
    """The floor in each offset that Spark has logged, in minutes since ten."""
    logs = sorted((query.checkpoint / "offsets").glob("[0-9]*"), key=lambda file: int(file.name))
    found = [json.loads(log.read_text().splitlines()[-1]).get("rowtime.floor") for log in logs]
    return [None if floor is None else (floor - micros("10:00")) // 60_000_000 for floor in found]


def test_a_window_closes_once_a_commit_has_a_row_that_is_later_by_the_lateness(orders: Orders) -> None:
    orders.put(("10:10", "a"), ("09:50", "a"))
    with orders.observed(watched(orders)) as query:
        assert query.step() == [("09:50", "a"), ("10:10", "a")]
        assert query.promised == {"ts": "09:40"}
    with orders.observed(hourly(watched(orders)), "windows") as query:
        assert query.step() == []
        orders.put(("10:20", "a"))
        orders.put(("11:29", "a"), ("10:59", "a"))
        assert query.step() == [(("09:00", "10:00"), "a", 1)]
        orders.put(("11:30", "b"))
        assert query.step() == [(TEN, "a", 3)]
        assert query.watermark == "11:00"


def test_rows_below_it_are_late_and_kept(orders: Orders) -> None:
    frame = rt.punctuate(orders.read(), "ts", watch=LATENESS, rejected=orders.rejected)
    orders.put(("11:00", "a"))
    with orders.observed(frame) as query:
        query.step()
        orders.put(("10:29", "x"), ("10:30", "b"))
        assert query.step() == [("10:30", "b")]
        assert late(query) == {0: 0, 1: 1}
        orders.put(("10:31", "c"))
        assert query.step() == [("10:31", "c")]
        assert query.promised == {"ts": "10:30"}
    assert [row.k for row in orders.kept().collect()] == ["x"]


class Lost(NamedTuple):
    """A batch whose commit is lost: its number, rows and promise, and the floors that were logged by then."""

    batch: int
    rows: list[Any]
    promised: dict[str, str]
    floors: list[int | None]


def lost(orders: Orders) -> Lost:
    """A batch that has closed a window; a late row comes after it."""
    orders.put(("10:50", "a"))
    with orders.observed(hourly(watched(orders))) as query:
        query.step()
        orders.put(("11:40", "a"))
        assert query.step() == [(TEN, "a", 1)]
        rows, promised, logged = query.batches[query.last], query.promised, floors(query)
    batch = query.lose_commit()
    orders.put(("10:50", "late"))
    return Lost(batch, rows, promised, logged)


def test_a_batch_that_runs_again_has_its_floor_after_the_log_was_cleaned_up(orders: Orders) -> None:
    before = lost(orders)
    DeltaTable(orders.path).create_checkpoint()
    Path(orders.path, "_delta_log", f"{1:020}.json").unlink()
    with orders.observed(hourly(watched(orders))) as query:
        query.step()
        assert (query.batches[before.batch], query.promises[before.batch]) == (before.rows, before.promised)
        assert set(floors(query)[len(before.floors) :]) == {before.floors[-1]}, "a commit of earlier rows moves nothing"
        orders.put(("12:30", "a"))
        assert query.step() == [(ELEVEN, "a", 1)]


def test_a_commit_counts_once_it_is_read_entirely(orders: Orders) -> None:
    orders.put(("10:00", "a"))
    times = ("10:40", "12:00", "11:50")
    rows = ", ".join(f"(TIMESTAMP'2006-09-11 {time}:00', '{k}')" for time, k in zip(times, "abc", strict=True))
    with orders.observed(watched(orders, maxFilesPerTrigger=1)) as query:
        query.step()
        orders.sql(f"INSERT INTO ORDERS SELECT /*+ REPARTITION_BY_RANGE(3, col2) */ * FROM VALUES {rows}")
        query.step()
        assert sorted(row for rows in query.batches.values() for row in rows)[1:] == [
            ("10:40", "a"),
            ("11:50", "c"),
            ("12:00", "b"),
        ]
        assert floors(query)[-3:] == [-30, -30, 90]
        assert set(late(query).values()) == {0}


@pytest.mark.parametrize("form", ["sql", "select", "struct"])
def test_a_column_in_other_letters_is_that_of_the_table(orders: Orders, form: str) -> None:
    orders.put(("11:00", "a"))
    if form == "sql":
        frame = orders.read().where("rowtime_in_time(TS, NULL, NULL, '30 minutes')")
    elif form == "select":
        frame = rt.punctuate(orders.read().select("TS", "K"), "TS", watch=LATENESS)
    else:
        frame = rt.punctuate(
            nested(orders).selectExpr("E.T AS ts", "E.K").where("ts IS NOT NULL"), "ts", watch=LATENESS
        )
    with orders.observed(frame) as query:
        assert query.step() == [("11:00", "a")]
        assert list(query.promised.values()) == ["10:30"]


def nested(orders: Orders) -> DataFrame:
    """The rows of the table in a struct, in another table."""
    path = f"{orders.folder / 'nested'}"
    orders.spark.read.format("delta").load(orders.path).selectExpr("struct(ts AS t, k) AS e").write.format(
        "delta"
    ).save(path)
    frame: DataFrame = orders.spark.readStream.format("delta").load(path)
    return frame


def test_files_without_statistics_move_nothing(orders: Orders) -> None:
    orders.put(("10:00", "a"))
    with orders.observed(watched(orders)) as query:
        query.step()
        orders.keep_statistics(of_time=False)
        orders.sql("INSERT INTO ORDERS VALUES (TIMESTAMP'2006-09-11 12:00:00', 'b')")
        query.step()
        assert query.promised == {"ts": "09:30"}
        orders.keep_statistics(of_time=True)
        orders.sql("INSERT INTO ORDERS VALUES (TIMESTAMP'2006-09-11 11:00:00', 'c')")
        query.step()
        assert query.promised == {"ts": "10:30"}


def test_rows_that_the_stream_does_not_read_move_nothing(orders: Orders) -> None:
    orders.put(("10:10", "a"), ("10:20", "b"))
    with orders.observed(watched(orders, **orders.skipping)) as query:
        query.step()
        orders.sql("UPDATE ORDERS SET ts = TIMESTAMP'2006-09-11 15:00:00' WHERE k = 'b'")
        orders.put(("10:15", "c"))
        assert query.step() == [("10:15", "c")]
        assert query.promised == {"ts": "09:50"}


def test_a_time_that_is_computed_is_refused(orders: Orders) -> None:
    orders.put(("10:10", "a"))
    hours = orders.read().withColumn("hour", f.date_trunc("hour", "ts")).where("hour IS NOT NULL")
    computed = orders.observed(rt.punctuate(hours, "hour", watch=LATENESS), "computed")
    with pytest.raises(StreamingQueryException, match="over a time that is computed"), computed:
        computed.step()
    with pytest.raises(rt.InvalidOptionError, match="lateness, delay and bounds, and here maxAhead"):
        rt.punctuate(orders.read(), "ts", watch={**LATENESS, "maxAhead": "1 day"})


def test_a_table_with_column_mapping_is_refused(orders: Orders) -> None:
    orders.put(("10:10", "a"))
    orders.sql("ALTER TABLE ORDERS SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    mapped = orders.observed(watched(orders), "mapped")
    with pytest.raises(StreamingQueryException, match=r"delta\.columnMapping\.mode=name"), mapped:
        mapped.step()


@pytest.mark.parametrize("names", ["`e.t`", "`e.x`.t", "e.`x.t`"])
def test_a_column_with_a_dot_in_its_name_is_refused(orders: Orders, names: str) -> None:
    """Statistics of Delta are found by the path, in which another column may have that place."""
    orders.put(("10:10", "a"))
    path = str(orders.folder / "dotted")
    struct = "struct(ts AS t, ts AS `x.t`)"
    rows = orders.spark.read.format("delta").load(orders.path)
    rows.selectExpr("ts AS `e.t`", f"{struct} AS e", f"{struct} AS `e.x`").write.format("delta").save(path)
    times = orders.spark.readStream.format("delta").load(path).selectExpr(f"{names} AS t").where("t IS NOT NULL")
    with pytest.raises(Exception, match="has a dot in its name"):
        orders.observed(rt.punctuate(times, "t", watch=LATENESS), "dotted").__enter__()
    with orders.observed(rt.punctuate(times, "t", watch={"bounds": "append-time", "delay": "1 hour"}), "time") as query:
        assert query.step() == [("10:10",)]


def test_a_column_by_which_the_table_is_partitioned_is_refused(orders: Orders) -> None:
    """Their values are in the actions of a commit, without the zone in which their writer has written them."""
    path = str(orders.folder / "parts")
    orders.spark.sql(f"CREATE TABLE delta.`{path}` (TS TIMESTAMP, k STRING) USING delta PARTITIONED BY (ts)")
    orders.spark.sql(f"INSERT INTO delta.`{path}` VALUES (TIMESTAMP'2006-09-11 10:10:00', 'a')")
    times = orders.spark.readStream.format("delta").load(path).where("ts IS NOT NULL")
    partitioned = orders.observed(rt.punctuate(times, "TS", watch=LATENESS), "parts")
    with (
        pytest.raises(StreamingQueryException, match="the table is partitioned by the column TS, of which"),
        partitioned,
    ):
        partitioned.step()
    with orders.observed(
        rt.punctuate(times, "TS", watch={"bounds": "append-time", "delay": "1 hour"}), "time"
    ) as query:
        assert query.step() == [("10:10", "a")]
