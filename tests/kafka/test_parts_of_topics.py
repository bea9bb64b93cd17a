"""Bounds that follow messages of several topics, and queries that read some of these."""

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

import spark_rowtime as rt
from spark_rowtime.diagnosis.causes import Cause
from tests.kafka.test_hosted_watch import AT_ONCE, Job, closed, hour
from tests.kafka.topic_bounds import TopicBounds, hourly, promise
from tests.spark.observed_query import Observed
from tests.sparksession import wait_for
from tests.streams import at

pytest.importorskip("confluent_kafka")
NOON = ("12:00", "13:00")


def test_two_frames_of_one_topic_each_share_a_stream_of_bounds(spark: Any, kafka: Any, tmp_path: Path) -> None:
    """Each hosts a watch; for rows of one topic it does not count up to where the other one was read."""
    jobs = [Job(spark, kafka, tmp_path) for _ in range(2)]
    for job in jobs:
        job.put(0, "09:10", "10:05")
        job.put(1, "09:20", "10:03")
    one, two = (rt.punctuate(job.parsed(), "ts", bounds=job.bounds, watch=AT_ONCE) for job in jobs)
    frame = one.union(two).groupBy(f.window("ts", "1 hour")).count()
    with Observed(frame, tmp_path) as query:
        wait_for(lambda: closed(query) == [hour(9, 4)], "the first hour of both")
    with query:
        for job in jobs:
            job.put(0, "11:30")
            job.put(1, "11:40")
        wait_for(lambda: closed(query) == [hour(9, 4), hour(10, 4)], "the second hour of both")
    assert not rt.rejectedRows(jobs[0].bounds).num_rows


def assigned(bounds: TopicBounds, *partitions: int) -> DataFrame:
    """The rows of some partitions of the first topic."""
    reader = bounds.spark.readStream.format("kafka").option("kafka.bootstrap.servers", bounds.kafka.bootstrap)
    which = json.dumps({bounds.topics[0]: partitions})
    rows = reader.option("assign", which).option("startingOffsets", "earliest").load()
    value = f.from_json(f.col("value").cast("string"), "ts TIMESTAMP, k STRING")
    parsed = rows.select(value.alias("o")).select("o.*").where("ts IS NOT NULL")
    return rt.punctuate(parsed, "ts", bounds=bounds.bounds)


def test_partitions_that_are_not_assigned_hold_nothing_back(spark: Any, kafka: Any, tmp_path: Path) -> None:
    """Those that are do: a bound counts once they have been read as far as its cut says."""
    topics = TopicBounds(spark, kafka, tmp_path, topics=2)
    with closing(topics.sink()) as sink, Observed(hourly(assigned(topics, 0)), tmp_path) as query:
        topics.put(0, ("12:10", "a"))
        topics.put(1, ("12:20", "b"))
        topics.put(2, ("12:30", "c"), topic=1)
        promise(sink, "13:00", topics.cut(p0=1))
        assert query.step() == []
        topics.put(0, ("12:40", "a"))
        assert query.step() == [(NOON, "a", 2)]
    assert topics.rejected == []


def test_a_topic_that_a_pattern_may_still_match_holds_its_bounds_back(spark: Any, kafka: Any, tmp_path: Path) -> None:
    """The query sees a new topic after its bounds: rows of it are not late."""
    topics = TopicBounds(spark, kafka, tmp_path)
    [first] = topics.topics
    later = f"{first}-later"
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", kafka.bootstrap)
    rows = reader.option("subscribePattern", f"{first}.*").option("startingOffsets", "earliest").load()
    value = f.from_json(f.col("value").cast("string"), "ts TIMESTAMP, k STRING").alias("o")
    parsed = rows.select(value).select("o.*").where("ts IS NOT NULL")
    frame = hourly(rt.punctuate(parsed, "ts", bounds=topics.bounds))
    with closing(topics.sink()) as sink, Observed(frame, tmp_path) as query:
        topics.put(0, ("12:10", "a"))
        promise(sink, "13:00", {**topics.cut(), later: {0: 1}})
        assert query.step() == []
        why = rt.why(topics.bounds, at("12:59"), query=str(query.query.id))
        assert (why.cause, f"{later}[0] at 1" in why.note) == (Cause.CUT, True), why
        topics.topics.append(kafka.topic(later))
        topics.ends[later] = dict.fromkeys(range(3), 0)
        topics.put(0, ("12:20", "b"), topic=1)
        assert query.step() == [(NOON, "a", 1), (NOON, "b", 1)]
    assert topics.rejected == []


@pytest.mark.long
def test_a_topic_that_the_source_has_not_seen_yet_holds_its_bounds_back(spark: Any, kafka: Any, tmp_path: Path) -> None:
    """Spark's older way of asking for offsets knows a topic that is subscribed to only some time after it was made."""
    topics = TopicBounds(spark, kafka, tmp_path)
    later = f"{topics.topics[0]}-later"
    spark.conf.set("spark.sql.streaming.kafka.useDeprecatedOffsetFetching", "true")
    try:
        frame = hourly(topics.rows(subscribe=f"{topics.topics[0]}, {later}"))
        with closing(topics.sink()) as sink, Observed(frame, tmp_path) as query:
            topics.put(0, ("12:10", "a"))
            promise(sink, "13:00", {**topics.cut(), later: {0: 1}})
            assert query.step() == []
    finally:
        spark.conf.unset("spark.sql.streaming.kafka.useDeprecatedOffsetFetching")
