"""Windows over Spark's own Kafka source close by the bounds of a stream beside the topic."""

import json
import shutil
from contextlib import closing
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pyspark.errors import IllegalArgumentException, StreamingQueryException
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

import spark_rowtime as rt
from spark_rowtime.cli import main
from spark_rowtime.store import open_store
from tests.kafka.topic_bounds import TopicBounds, hourly, late, promise
from tests.spark.observed_query import Observed
from tests.sparksession import wait_for
from tests.streams import at

NOON, ONE = ("12:00", "13:00"), ("13:00", "14:00")
LATE = "late".ljust(56, "!")
"""With the name of a topic it fills the memory of a row exactly, which Spark uses again for the next row."""


@pytest.fixture
def topic_bounds(spark: Any, kafka: Any, tmp_path: Path) -> TopicBounds:
    return TopicBounds(spark, kafka, tmp_path)


def test_a_window_closes_in_the_batch_that_reaches_the_cut(topic_bounds: TopicBounds, tmp_path: Path) -> None:
    with closing(topic_bounds.sink()) as sink, Observed(hourly(topic_bounds.rows()), tmp_path) as query:
        topic_bounds.put(0, ("12:10", "a"), ("12:50", "b"))
        topic_bounds.put(1, ("12:20", "a"))
        assert query.step() == [], "partition 2 is idle, and nothing is promised"
        promise(sink, "13:00", topic_bounds.cut(p1=1))
        assert query.step() == [], "a row before the bound is still to come"
        assert query.watermark == "1970-01-01 00:00"
        topic_bounds.put(1, ("12:59", "b"))
        assert query.step() == [(NOON, "a", 2), (NOON, "b", 2)]
        assert query.watermark == "13:00"
        assert query.promised == {"window.start": "12:00:00.000001", "window.end": "13:00:00.000001"}
        topic_bounds.put(0, ("13:10", "c"))
        promise(sink, "14:00", topic_bounds.cut())
        assert query.step() == [(ONE, "c", 1)], "rows and bound in one batch, or the bound in the next one"


@pytest.mark.long
def test_a_late_row_is_counted_and_kept_once_though_its_batch_runs_twice(
    topic_bounds: TopicBounds, tmp_path: Path
) -> None:
    frame = hourly(topic_bounds.rows())
    with closing(topic_bounds.sink()) as sink:
        with Observed(frame, tmp_path) as query:
            topic_bounds.put(0, ("12:10", "a"))
            promise(sink, "13:00", topic_bounds.cut())
            assert query.step() == [(NOON, "a", 1)]
            topic_bounds.put(0, ("12:59", LATE), ("13:00", "b"), ("12:58", LATE))
            topic_bounds.put(2, ("12:30", "late"))
            assert query.step() == []
            assert late(query.query) == 3
        kept = [(0, 1, "12:59", LATE, "13:00"), (0, 3, "12:58", LATE, "13:00"), (2, 0, "12:30", "late", "13:00")]
        assert sorted(topic_bounds.rejected) == kept
        query.lose_commit()
        with query:
            promise(sink, "14:00", topic_bounds.cut())
            assert query.step() == [(ONE, "b", 1)]
        assert sorted(topic_bounds.rejected) == kept
    assert rt.describeStream(topic_bounds.bounds).rejected == 3


@pytest.mark.night
def test_a_batch_runs_again_with_what_it_got_after_its_cuts_were_folded(
    topic_bounds: TopicBounds, tmp_path: Path
) -> None:
    """Also with the late rows that it had. A query that begins then gets all windows that are complete, too."""
    frame = hourly(topic_bounds.rows())
    with closing(topic_bounds.sink()) as sink:
        with Observed(frame, tmp_path) as query:
            for hour in range(9, 15):
                topic_bounds.put(0, (f"{hour}:30", "a"))
                promise(sink, f"{hour + 1}:00", topic_bounds.cut())
                query.step()
            with open_store(topic_bounds.bounds) as store:
                assert len(list(store.cuts())) == 6
                store.gc()
                assert len(list(store.cuts())) <= 2, "the batch before the last one, at least, is committed"
            topic_bounds.put(1, ("14:10", "late"), ("15:10", "b"))
            promise(sink, "16:00", topic_bounds.cut())
            query.step()
        rows, promises, kept = dict(query.batches), dict(query.promises), topic_bounds.rejected
        assert len(kept) == 1
        batch = query.lose_commit()
        with query:
            query.step()
            assert (query.batches[batch], query.promises[batch]) == (rows[batch], promises[batch])
            promise(sink, "17:00", topic_bounds.cut())
            query.step()
        assert topic_bounds.rejected == kept
        with Observed(frame, tmp_path / "other") as other:
            assert len(other.step()) == 8, "six hours of a, one of b, and the row that came late to the first query"
    assert query.batches.items() >= rows.items()


@pytest.mark.night
def test_an_older_checkpoint_behind_folded_cuts_ends_the_query(topic_bounds: TopicBounds, tmp_path: Path) -> None:
    """Its batches would get weaker bounds than they had: rows would not be late any more, windows come out twice."""
    query = Observed(hourly(topic_bounds.rows()), tmp_path)
    older = tmp_path / "older"
    with closing(topic_bounds.sink()) as sink:
        for hour in range(9, 12):
            topic_bounds.put(0, (f"{hour}:30", "a"))
            promise(sink, f"{hour + 1}:00", topic_bounds.cut())
            with query:
                query.step()
            if hour == 10:
                shutil.copytree(query.checkpoint, older)
        shutil.rmtree(query.checkpoint)
        shutil.copytree(older, query.checkpoint)
        with Observed(query.frame, tmp_path) as again:
            assert again.step() == query.batches[query.last], "nothing was folded, so it goes on"
        with open_store(topic_bounds.bounds) as store:
            store.gc()
        shutil.rmtree(query.checkpoint)
        shutil.move(older, query.checkpoint)
        with query, pytest.raises(StreamingQueryException, match="an older checkpoint"):
            query.step()


@pytest.mark.long
def test_an_older_checkpoint_is_refused_where_its_late_rows_would_be_lost(
    topic_bounds: TopicBounds, tmp_path: Path
) -> None:
    """Its next batch has a number whose late rows the stream has, of other messages. The newest checkpoint goes on."""
    query, copy = Observed(topic_bounds.rows(), tmp_path), tmp_path / "copy"
    with closing(topic_bounds.sink()) as sink:
        promise(sink, "13:00")
        with query:
            query.step()
            topic_bounds.put(0, ("12:10", "one"))
            query.step()
        shutil.copytree(query.checkpoint, copy / "checkpoint")
        with query:
            topic_bounds.put(0, ("12:20", "two"))
            query.step()
        kept = topic_bounds.rejected
        assert [row[3] for row in kept] == ["one", "two"]
        same = tmp_path / "same"
        shutil.copytree(copy, same)
        with Observed(query.frame, same) as older:
            older.step()
            assert older.last == query.last, "it ends where that batch has ended, so it is that batch"
        topic_bounds.put(0, ("12:30", "three"))
        with Observed(query.frame, copy) as older, pytest.raises(StreamingQueryException, match="older copy"):
            older.step()
        assert topic_bounds.rejected == kept
        with query:
            query.step()
        assert [row[3] for row in topic_bounds.rejected] == ["one", "two", "three"]


@pytest.mark.night
@pytest.mark.parametrize("crashed", [False, True])
def test_a_query_that_is_not_registered_ends_where_a_fold_has_weakened_its_bounds(
    topic_bounds: TopicBounds, tmp_path: Path, crashed: bool
) -> None:
    """As one whose user may not write: it would take late rows, and windows that have come out would come out twice."""
    query, other = (Observed(hourly(topic_bounds.rows()), tmp_path / name) for name in ("query", "other"))
    with closing(topic_bounds.sink()) as sink:
        for hour in range(9, 12):
            topic_bounds.put(0, (f"{hour}:30", "a"))
            promise(sink, f"{hour + 1}:00", topic_bounds.cut())
            with query:
                query.step()
        with open_store(topic_bounds.bounds) as store:
            [reader] = [one.name for one in store.snapshot().readers]
            store.forget(reader)
        topic_bounds.put(0, ("12:30", "a"), ("9:45", "late"))
        promise(sink, "13:00", topic_bounds.cut())
        with other:
            other.step()
        with open_store(topic_bounds.bounds) as store:
            store.gc()
        if crashed:
            query.lose_commit()
        with query, pytest.raises(StreamingQueryException, match="The query has reached the watermark") as error:
            query.step()
        assert f"2006-09-11T{11 if crashed else 12}:00:00Z" in str(error.value)
        assert "its registration was removed" in str(error.value)


@pytest.mark.long
def test_a_topic_whose_offsets_go_back_ends_the_query(topic_bounds: TopicBounds, tmp_path: Path) -> None:
    """Otherwise what was promised would not hold for its rows, and operators would drop them without a trace."""
    topic = topic_bounds.topics[0]
    frame = hourly(topic_bounds.rows(failOnDataLoss="false"))
    query = Observed(frame, tmp_path)
    with closing(topic_bounds.sink()) as sink, query:
        topic_bounds.put(0, ("12:10", "a"), ("12:20", "a"))
        promise(sink, "13:00", topic_bounds.cut())
        assert query.step() == [(NOON, "a", 2)]
    topic_bounds.kafka.delete_topic(topic)
    topic_bounds.kafka.topic(topic)
    topic_bounds.put(0, ("12:30", "late"))
    with pytest.raises(StreamingQueryException, match=rf"{topic}\[0\] up to offset 2, but now .* at offset 1:"), query:
        query.step()
    assert topic_bounds.read_up_to(query, query.last)[0] == 2, "the offset log has no batch that goes back"


@pytest.mark.long
def test_rows_up_to_1970_are_late_and_kept_with_their_times(topic_bounds: TopicBounds, tmp_path: Path) -> None:
    """They are late before there is a bound. They have times that no stream accepts, and do not end the query."""
    times = ["0001-01-01T00:00:00Z", "1969-12-31T23:59:59Z", "1970-01-01T00:00:00Z", "1970-01-01T00:00:00.000001Z"]
    values = [json.dumps({"ts": time, "k": time[:4]}) for time in ["-0100-01-01T00:00:00Z", *times]]
    frame = topic_bounds.rows().select(f.unix_micros("ts"), "k")
    with closing(topic_bounds.sink()) as sink, Observed(frame, tmp_path) as query:
        topic_bounds.kafka.send(topic_bounds.topics[0], [{"value": value, "partition": 0} for value in values])
        assert query.step() == [(1, "1970")]
        assert late(query.query) == 4
        promise(sink, "13:00")
        assert query.step() == []
    micros = [-62_135_596_800_000_000, -62_135_596_800_000_000, -1_000_000, 0]
    assert rt.rejectedRows(topic_bounds.bounds).column("rowtime").cast("int64").to_pylist() == micros
    view = topic_bounds.spark.read.format("rowtime").option("view", "rejected").load(topic_bounds.bounds)
    assert sorted(row[0] for row in view.select(f.unix_micros("rowtime")).collect()) == micros
    for command in (["describe"], ["check"], ["tail"], ["rejected"]):
        done = CliRunner().invoke(main, [*command, topic_bounds.bounds])
        assert done.exit_code == 0, done.output


def test_a_late_row_with_values_that_no_stream_can_hold_ends_no_query(spark: Any, kafka: Any, tmp_path: Path) -> None:
    """Also where the batch runs again. The row is kept, and of it what can be."""
    kept = "rowtime TIMESTAMP NOT NULL, k STRING, day DATE, s STRUCT<a: TIMESTAMP>, offset BIGINT"
    topic_bounds = TopicBounds(spark, kafka, tmp_path, kept=kept)
    order = f.from_json(f.col("value").cast("string"), "ts TIMESTAMP, d INT, n BIGINT")
    rows = (
        topic_bounds.read()
        .select(order.alias("o"), f.col("key").cast("string").alias("k"))
        .select(
            "o.ts",
            "k",
            f.expr("date_add(DATE'1970-01-01', o.d)").alias("day"),
            f.struct(f.expr("timestamp_micros(o.n)").alias("a")).alias("s"),
        )
    )
    frame = rt.punctuate(rows.where("ts IS NOT NULL"), "ts", bounds=topic_bounds.bounds).select("ts")
    bad = {"ts": at("12:30"), "d": 5_000_000, "n": 10**18}
    good = {"ts": at("12:40"), "d": 1, "n": 0}
    with closing(topic_bounds.sink()) as sink:
        promise(sink, "13:00")
        with Observed(frame, tmp_path) as query:
            query.step()
            messages = [{"key": key, "value": json.dumps(row)} for key, row in ((b"\xffa", bad), (b"b", good))]
            kafka.send(topic_bounds.topics[0], [{"partition": 0, **message} for message in messages])
            assert query.step() == []
            assert late(query.query) == 2
        query.lose_commit()
        with query:
            topic_bounds.put(1, ("13:30", "c"))
            assert query.step() == [("13:30",)]
    found = [(r["offset"], r["k"], r["day"], r["s"]) for r in rt.rejectedRows(topic_bounds.bounds).to_pylist()]
    assert found == [
        (0, "\ufffda", None, None),
        (1, "b", date(1970, 1, 2), {"a": datetime(1970, 1, 1, tzinfo=UTC)}),
    ]


def test_a_late_row_has_the_topics_column_where_the_frame_has_one_of_another_type(
    spark: Any, kafka: Any, tmp_path: Path
) -> None:
    """A frame whose ``value`` is a text has still the bytes for a stream that keeps bytes."""
    kept = "rowtime TIMESTAMP NOT NULL, key STRING, value BINARY, offset BIGINT"
    topic_bounds = TopicBounds(spark, kafka, tmp_path, kept=kept)
    texts = topic_bounds.read().selectExpr("CAST(key AS STRING)", "CAST(value AS STRING)", "'0' AS offset")
    rows = texts.select("*", f.get_json_object("value", "$.ts").cast("timestamp").alias("ts")).where("ts IS NOT NULL")
    frame = rt.punctuate(rows, "ts", bounds=topic_bounds.bounds).select("ts", "value")
    value = json.dumps({"ts": at("12:30")})
    with closing(topic_bounds.sink()) as sink, Observed(frame, tmp_path) as query:
        promise(sink, "13:00")
        query.step()
        kafka.send(topic_bounds.topics[0], [{"key": "x", "value": value, "partition": 0}])
        assert query.step() == []
    [found] = rt.rejectedRows(topic_bounds.bounds).to_pylist()
    assert (found["key"], found["value"], found["offset"]) == ("x", value.encode(), 0)


@pytest.mark.long
def test_under_a_limit_each_window_closes_in_the_batch_that_reaches_its_cut(
    topic_bounds: TopicBounds, tmp_path: Path
) -> None:
    with closing(topic_bounds.sink()) as sink:
        topic_bounds.put(0, ("12:10", "a"), ("12:20", "a"))
        promise(sink, "13:00", topic_bounds.cut())
        topic_bounds.put(1, ("13:10", "b"), ("13:20", "b"), ("13:30", "b"), ("13:40", "b"))
        promise(sink, "14:00", topic_bounds.cut())
    query = Observed(hourly(topic_bounds.rows(maxOffsetsPerTrigger=2)), tmp_path)
    with query:
        query.step()
    ends = [topic_bounds.read_up_to(query, batch) for batch in sorted(query.batches)]
    first = next(batch for batch, end in enumerate(ends) if end[0] == 2)
    second = next(batch for batch, end in enumerate(ends) if end == {0: 2, 1: 4, 2: 0})
    assert 0 < first < second
    assert {batch: rows for batch, rows in query.batches.items() if rows} == {
        first: [(NOON, "a", 2)],
        second: [(ONE, "b", 4)],
    }
    assert topic_bounds.rejected == []


@pytest.mark.long
def test_two_topics_of_two_producers(spark: Any, kafka: Any, tmp_path: Path) -> None:
    topic_bounds = TopicBounds(spark, kafka, tmp_path, topics=2)
    query = Observed(hourly(topic_bounds.rows()), tmp_path)
    with closing(topic_bounds.sink("one")) as one, closing(topic_bounds.sink("two")) as two, query:
        topic_bounds.put(0, ("12:10", "a"))
        promise(one, "14:00", {topic_bounds.topics[0]: {0: 1}})
        assert query.step() == [], "the other producer has promised nothing"
        promise(two, "13:00", {topic_bounds.topics[1]: {2: 1}})
        assert query.step() == [], "its row is still to come"
        topic_bounds.put(2, ("12:20", "a"), topic=1)
        assert query.step() == [(NOON, "a", 2)]
        two.close(cut={topic_bounds.topics[1]: {2: 1}})
        assert query.step() == []
        assert query.watermark == "14:00", "only the first one counts"


@pytest.mark.night
def test_topics_joined_on_time_each_with_its_own_bounds(spark: Any, kafka: Any, tmp_path: Path) -> None:
    (tmp_path / "left").mkdir()
    (tmp_path / "right").mkdir()
    left, right = TopicBounds(spark, kafka, tmp_path / "left"), TopicBounds(spark, kafka, tmp_path / "right")
    near = "l.k = r.k AND r.ts BETWEEN l.ts AND l.ts + INTERVAL 10 MINUTES"
    pairs = left.rows().alias("l").join(right.rows().alias("r"), f.expr(near), "leftOuter")
    frame = pairs.select("l.ts", "l.k", f.col("r.ts").alias("of"))
    with closing(left.sink()) as one, closing(right.sink()) as two, Observed(frame, tmp_path) as query:
        left.put(0, ("12:00", "a"), ("12:01", "b"))
        right.put(1, ("12:05", "a"))
        assert query.step() == [("12:00", "a", "12:05")]
        promise(one, "12:30", left.cut())
        promise(two, "12:30", right.cut())
        assert query.step() == [("12:01", "b", None)]


def test_a_query_without_operators_promises_the_bound(topic_bounds: TopicBounds, tmp_path: Path) -> None:
    frame = topic_bounds.rows().select("ts", (f.col("ts") + f.expr("INTERVAL 1 HOUR")).alias("later"), "k")
    with closing(topic_bounds.sink()) as sink, Observed(frame, tmp_path) as query:
        topic_bounds.put(0, ("12:10", "a"))
        promise(sink, "12:30", topic_bounds.cut())
        assert query.step() == [("12:10", "13:10", "a")]
        assert query.promised == {"ts": "12:30", "later": "13:30"}
        [source] = wait_for(lambda: topic_bounds.account(floor="12:30"), "the account of the batch")["sources"]
        assert source["path"] == topic_bounds.bounds
        assert source["topics"].startswith("KafkaV2"), "the topic is no source without bounds"
        topic_bounds.put(0, ("12:29", "late"))
        assert query.step() == []
        assert late(query.query) == 1


def joined(topic_bounds: TopicBounds) -> DataFrame:
    names = topic_bounds.spark.createDataFrame([("a", "Anna")], "k STRING, name STRING")
    return rt.punctuate(topic_bounds.parsed().join(names, "k"), "ts", bounds=topic_bounds.bounds)


def unioned(topic_bounds: TopicBounds) -> DataFrame:
    return rt.punctuate(topic_bounds.parsed().union(topic_bounds.parsed()), "ts", bounds=topic_bounds.bounds)


def nullable(topic_bounds: TopicBounds) -> DataFrame:
    frame = topic_bounds.read().select(f.expr("CAST(CAST(value AS STRING) AS TIMESTAMP) AS ts"))
    return rt.punctuate(frame, "ts", bounds=topic_bounds.bounds)


def of_a_rate(topic_bounds: TopicBounds) -> DataFrame:
    return rt.punctuate(topic_bounds.spark.readStream.format("rate").load(), "timestamp", bounds=topic_bounds.bounds)


def watermarked(topic_bounds: TopicBounds) -> DataFrame:
    return rt.punctuate(topic_bounds.parsed().withWatermark("ts", "1 hour"), "ts", bounds=topic_bounds.bounds)


def twice(topic_bounds: TopicBounds) -> DataFrame:
    return rt.punctuate(topic_bounds.rows(), "ts", bounds=topic_bounds.bounds)


def kept_not_null(topic_bounds: TopicBounds) -> DataFrame:
    path = topic_bounds.bounds + ".other"
    rt.createStream(path, "rowtime TIMESTAMP NOT NULL, shop STRING NOT NULL")
    return rt.punctuate(topic_bounds.parsed(), "ts", bounds=path)


REFUSED = [
    (joined, "Join is below it.*Call punctuate on the parsed topic"),
    (unioned, "Union is below it"),
    (nullable, "this time can be NULL.*WHERE ts IS NOT NULL"),
    (of_a_rate, r"format\(\"rate(-v2)?\"\) is below it"),
    (watermarked, "withWatermark, or another punctuate, is below it"),
    (twice, "withWatermark, or another punctuate, is below it"),
    (kept_not_null, "the column shop NOT NULL"),
]


def test_what_cannot_have_the_bounds_is_refused_at_start(topic_bounds: TopicBounds, tmp_path: Path) -> None:
    for frame, message in REFUSED:
        with pytest.raises(IllegalArgumentException, match=f"(?s)punctuate.*{message}"):
            Observed(frame(topic_bounds), tmp_path).__enter__()


def test_a_frame_without_such_a_column_is_refused_at_once(topic_bounds: TopicBounds) -> None:
    with pytest.raises(rt.InvalidOptionError, match="exactly one column 'time' of type TIMESTAMP"):
        rt.punctuate(topic_bounds.parsed(), "time", bounds=topic_bounds.bounds)
    with pytest.raises(rt.InvalidOptionError, match="streaming"):
        rt.punctuate(topic_bounds.spark.range(1).selectExpr("now() AS ts"), "ts", bounds=topic_bounds.bounds)
