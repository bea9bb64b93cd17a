"""A stream's retention keeps what a query has still to read, and says so where it is gone."""

import shutil
from pathlib import Path

import pytest
from pyspark.sql.functions import col

import spark_rowtime as rt
from spark_rowtime.store import open_store
from tests.spark.joining import sql_join, streamed
from tests.spark.query_output import Watched, collected, finish, refused
from tests.streams import Pipe, bound, opened, send


def collect(path: str, force: bool = False) -> int:
    """What retention removes now, where nothing is young: so many rows."""
    store = open_store(path)
    try:
        return store.gc(age=0, force=force).rows
    finally:
        store.close()


@pytest.mark.smoke
def test_what_a_query_has_not_read_is_kept_for_it(pipe: Pipe, tmp_path: Path) -> None:
    path, checkpoint = pipe.create("orders", "k STRING"), tmp_path / "checkpoint"
    orders = opened(path, "p")
    send(orders, ("12:10", "a"), promise="12:20")
    with Watched().start(pipe.read("orders"), checkpoint) as query:
        assert query.step() == [("12:10", "a")]
        send(orders, ("12:30", "b"), promise="12:40")
        assert query.step() == [("12:30", "b")]
    send(orders, ("12:50", "c"), promise="13:00")

    (reader,) = rt.describeStream(path).readers
    assert str(checkpoint / "sources" / "0") in reader.name
    collect(path)
    assert "c" in {row[1] for row in collected(pipe.spark.read.format("rowtime").load(path))}
    with Watched().start(pipe.read("orders"), checkpoint) as again:
        assert again.step() == [("12:50", "c")]
        send(orders, promise="13:10")
        again.step()
        assert collect(path) > 0
        assert collected(pipe.spark.read.format("rowtime").load(path)) == []
        send(orders, ("13:20", "d"), promise="13:30")
        assert again.step() == [("13:20", "d")]
    assert rt.describeStream(path).rows == 4


def test_a_query_whose_rows_are_gone_says_so(pipe: Pipe, tmp_path: Path) -> None:
    path, checkpoint = pipe.create("orders", "k STRING"), tmp_path / "checkpoint"
    orders = opened(path, "p")
    send(orders, ("12:10", "a"), promise="12:20")
    with Watched().start(pipe.read("orders"), checkpoint) as query:
        query.step()
    send(orders, ("12:30", "b"), promise="12:40")
    send(orders, ("12:50", "c"), promise="13:00")
    assert collect(path, force=True) >= 2
    send(orders, ("13:10", "d"), promise="13:20")
    watched = Watched().start(pipe.read("orders"), checkpoint)
    with refused(rt.DataLostError, "gc has removed the 3 rows", "new checkpoint"):
        assert watched.query is not None
        finish(watched.query)
    with Watched().start(pipe.read("orders"), tmp_path / "another") as fresh:
        assert fresh.step() == [("13:10", "d")]


@pytest.mark.long
def test_a_query_that_has_ended_keeps_only_what_it_has_not_read(pipe: Pipe, tmp_path: Path) -> None:
    """Also its last batch is done; Spark itself says so only when it makes the next one."""
    path, checkpoint = pipe.create("orders", "k STRING"), tmp_path / "checkpoint"
    orders = opened(path, "p")
    send(orders, ("12:10", "a"), promise="12:20")
    for key in "bc":
        send(orders, ("12:30", key), promise="12:30")
        made = pipe.read("orders").writeStream.format("noop").option("checkpointLocation", str(checkpoint))
        finish(made.trigger(availableNow=True).start())
        (reader,) = rt.describeStream(path).readers
        assert (reader.unread, reader.checkpointGone) == (0, False)
    assert collect(path) == 3
    shutil.rmtree(checkpoint)
    send(orders, ("12:50", "d"), promise="13:00")
    (reader,) = rt.describeStream(path).readers
    assert (reader.unread, reader.checkpointGone) == (1, True)


@pytest.mark.long
def test_a_query_without_a_checkpoint_of_its_own_is_not_registered(pipe: Pipe) -> None:
    path = pipe.create("orders", "k STRING")
    send(opened(path, "p"), ("12:10", "a"), promise="12:20")
    for sink in ("noop", "memory"):
        query = pipe.read("orders").writeStream.format(sink).queryName(f"into_{sink}").start()
        query.processAllAvailable()
        assert rt.describeStream(path).readers == ()
        query.stop()
    assert rt.describeStream(path).readers == ()
    assert collect(path) == 1


def test_what_joins_may_ask_about_is_kept_for_them(pipe: Pipe, tmp_path: Path) -> None:
    """The least order that a trade may still match decides the bound of the results. No removal lets it fall."""
    orders, trades = opened(pipe.create("l", "k INT"), "o"), opened(pipe.create("r", "k INT"), "t")
    frame = streamed(
        pipe,
        sql_join(
            "LEFT OUTER", "{l}.k = {r}.k AND {r}.rowtime BETWEEN {l}.rowtime AND {l}.rowtime + INTERVAL 10 MINUTES"
        ),
    )
    send(orders, ("9:00", 1), promise="9:00")
    send(orders, ("10:30", 2), promise="10:30")
    send(trades, promise="10:17")
    with Watched().start(frame.select(col("lt").alias("rowtime"), "lk", "rk"), tmp_path / "checkpoint") as query:
        query.step()
        assert query.bounds[-1] == bound("10:30")
        send(trades, promise="10:17:10")
        query.step()
        assert collect(pipe.path("l")) == 1, "the order that no trade can match any more"
        send(trades, ("10:17:30", 3))
        query.step()
        assert query.bounds[-1] == bound("10:30")
    [reading, joins] = rt.describeStream(pipe.path("l")).readers
    assert (reading.unread, joins.name, joins.checkpointGone) == (0, f"{reading.name} (joins)", False)


def test_rows_that_were_removed_are_not_taken_for_early_ones(pipe: Pipe, tmp_path: Path) -> None:
    """Beside a stream without a bound each batch looks for times up to 1970, which Spark would drop."""
    orders, quiet = (
        opened(pipe.create("l", "k STRING"), "p"),
        opened(pipe.create("r", "k STRING"), rowsImplyBounds=False),
    )
    send(orders, ("12:10", "a"), promise="12:20")
    both = streamed(
        pipe, "SELECT date_trunc('HOUR', rowtime) AS rowtime, k FROM {l} UNION ALL SELECT rowtime, k FROM {r}"
    )
    counts = both.groupBy("rowtime").count()
    with Watched().start(counts, tmp_path / "checkpoint") as query:
        query.step()
        send(orders, promise="12:30")
        query.step()
        assert collect(pipe.path("l")) == 1
        send(orders, ("13:10", "b"), promise="14:00")
        send(quiet, ("13:20", "c"), promise="14:00")
        assert query.step() == [("12:00", 1), ("13:00", 1), ("13:20", 1)]
