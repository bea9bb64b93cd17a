"""``punctuate(watch=...)``: the driver of a query derives the bounds from the topic, and nobody sends any."""

import json
import os
import subprocess
import sys
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

import spark_rowtime as rt
from spark_rowtime.kafka import KafkaFeed
from tests.spark.observed_query import Observed
from tests.sparksession import wait_for
from tests.streams import at, clock_of, drained

AT_ONCE = {"lateness": "1 minute", "every": "0 seconds"}


class Job:
    """A topic with two partitions, and a job over it one line of which is changed."""

    def __init__(self, spark: Any, kafka: Any, folder: Path) -> None:
        self.spark, self.kafka, self.folder = spark, kafka, folder
        self.topic, self.bounds = kafka.topic(partitions=2), str(folder / "bounds.rowtime")

    def put(self, partition: int, *clocks: str, form: Any = at) -> None:
        values = [json.dumps({"order": {"ts": form(clock)}}) for clock in clocks]
        self.kafka.send(self.topic, [{"value": value, "partition": partition} for value in values])

    def read(self, **options: str) -> DataFrame:
        reader = self.spark.readStream.format("kafka").option("kafka.bootstrap.servers", self.kafka.bootstrap)
        return reader.options(**{"subscribe": self.topic, "startingOffsets": "earliest", **options}).load()

    def parsed(self, kind: str = "TIMESTAMP", **options: str) -> DataFrame:
        value = f.from_json(f.col("value").cast("string"), f"order STRUCT<ts: {kind}>").alias("o")
        return self.read(**options).select(value).select("o.order.*")

    def hours(self, frame: DataFrame | None = None, **watch: str) -> DataFrame:
        rows = rt.punctuate(frame or self.parsed(), "ts", bounds=self.bounds, watch={**AT_ONCE, **watch})
        return rows.groupBy(f.window("ts", "1 hour")).count()

    def observed(self, name: str = "query", **watch: str) -> Observed:
        return Observed(self.hours(**watch), self.folder / name)

    def error(self, frame: DataFrame) -> str:
        """With what a query of the frame fails."""
        with Observed(frame, self.folder / "failing") as query, suppress(StreamingQueryException):
            query.query.awaitTermination(240)
        return str(query.query.exception())


@pytest.fixture
def job(spark: Any, kafka: Any, tmp_path: Path) -> Job:
    return Job(spark, kafka, tmp_path)


def hour(start: int, count: int) -> tuple[Any, ...]:
    return (f"{start:02}:00", f"{start + 1:02}:00"), count


def closed(query: Observed) -> list[Any]:
    """What has come out so far."""
    assert query.query.exception() is None, query.query.exception()
    return sorted(row for rows in query.batches.copy().values() for row in rows)


def progress(query: Observed) -> dict[str, Any]:
    """How far the partitions are, as the query says it: as of the last event of the stream of bounds."""
    metrics = {name: text for source in query.query.lastProgress["sources"] for name, text in source["metrics"].items()}
    return {name: json.loads(text) for name, text in metrics.items() if name.startswith("watched")}


def test_windows_close_by_what_the_topic_says(job: Job) -> None:
    """In a query that is started again, too. Late rows are kept, and the progress says how far each partition is."""
    job.put(0, "09:10", "09:59", "10:05")
    job.put(1, "09:20", "10:03")
    with job.observed() as query:
        wait_for(lambda: closed(query) == [hour(9, 3)], "the first hour")
    with query:
        job.put(0, "09:30", "11:30")
        job.put(1, "11:40")
        wait_for(lambda: closed(query) == [hour(9, 3), hour(10, 2)], "the second hour")
        ends = {"watchedOffsets": {job.topic: {"0": 5, "1": 3}}}
        ends["watchedBounds"] = {job.topic: {"0": at("11:29"), "1": at("11:39")}}
        wait_for(lambda: progress(query).items() >= ends.items(), "the progress")
        job.put(1, "10:30")
        wait_for(lambda: rt.rejectedRows(job.bounds).num_rows == 2, "the late rows")
    late = {
        (row["partition"], row["offset"], clock_of(row["rowtime"])) for row in rt.rejectedRows(job.bounds).to_pylist()
    }
    assert late == {(0, 3, "09:30"), (1, 3, "10:30")}


@pytest.mark.night
def test_what_there_is_closes_what_it_can(job: Job) -> None:
    """Trigger.AvailableNow waits until the bounds of the messages are there, each time."""

    def run() -> list[Any]:
        query = job.observed()
        writer = query.frame.writeStream.foreachBatch(query).option("checkpointLocation", str(query.checkpoint))
        writer.trigger(availableNow=True).start().awaitTermination()
        return sorted(row for rows in query.batches.values() for row in rows)

    job.put(0, "09:10", "10:05")
    job.put(1, "09:20", "10:03")
    assert run() == [hour(9, 2)]
    job.put(0, "10:10", "11:30")
    job.put(1, "11:40")
    assert run() == [hour(10, 3)]


@pytest.mark.night
def test_a_partition_where_nothing_comes_holds_no_window_open(job: Job) -> None:
    """Nor does the last window wait for a message after it. The rows are of this hour two days ago."""
    day = datetime.now(UTC) - timedelta(days=2)
    job.put(0, "09:10", form=lambda _: day.isoformat())
    with job.observed(delay="1 day") as query:
        wait_for(lambda: [count for _, count in closed(query)] == [1], "the hour")


@pytest.mark.night
def test_two_queries_share_the_bounds(job: Job) -> None:
    """Each hosts a watch; they share the partitions. One that ends leaves them to the other."""
    job.put(0, "09:10", "10:05")
    job.put(1, "09:20", "10:03")
    with job.observed("one") as one:
        with job.observed("two") as two:
            for query in (one, two):
                wait_for(lambda query=query: closed(query) == [hour(9, 2)], "the first hour")
        job.put(0, "11:30")
        job.put(1, "11:40")
        wait_for(lambda: closed(one) == [hour(9, 2), hour(10, 2)], "the second hour")
    assert not rt.rejectedRows(job.bounds).num_rows


FIELDS = {
    "a text": lambda job: job.parsed("STRING").select(f.col("ts").cast("timestamp").alias("ts")),
    "to_timestamp": lambda job: job.parsed("STRING").withColumn("ts", f.to_timestamp("ts")),
    "of the message": lambda job: job.read().select(f.col("timestamp").alias("ts")),
    "a double": lambda job: job.parsed("DOUBLE").select(f.col("ts").cast("timestamp").alias("ts")),
    "a long decimal": lambda job: job.parsed("DECIMAL(20, 6)").select(f.expr("timestamp_seconds(ts)").alias("ts")),
    "a float": lambda job: job.parsed("FLOAT").select(f.col("ts").cast("timestamp").alias("ts")),
    "seconds as a float": lambda job: job.parsed("FLOAT").select(f.expr("timestamp_seconds(ts)").alias("ts")),
    "a short decimal": lambda job: job.parsed("DECIMAL(20, 5)").select(f.col("ts").cast("timestamp").alias("ts")),
    "unknown": lambda job: job.parsed().selectExpr("ts + INTERVAL 1 HOUR AS ts"),
    "a format": lambda job: (
        job.read()
        .select(
            f.from_json(f.col("value").cast("string"), "ts TIMESTAMP", {"timestampFormat": "dd.MM.yyyy"}).alias("o")
        )
        .select("o.*")
    ),
}
NUMBERS = {"a double", "a long decimal"}
UNKNOWN = {"unknown", "a format", "a float", "seconds as a float", "a short decimal"}
"""A FLOAT and a DECIMAL with few digits are times before those of the messages: rows would be below the bound."""


def seconds(clock: str) -> float:
    return datetime.fromisoformat(at(clock)).timestamp()


@pytest.mark.long
@pytest.mark.parametrize("how", FIELDS)
def test_the_field_with_the_time_is_known_or_asked_for(job: Job, how: str) -> None:
    form = seconds if how in NUMBERS else at
    job.put(0, "09:10", form=form)
    job.put(1, "09:20", form=form)
    frame = job.hours(FIELDS[how](job))
    if how in UNKNOWN:
        assert "It is not known which field of the messages has the time 'ts'" in job.error(frame)
        return
    with Observed(frame, job.folder) as query:
        wait_for(lambda: rt.describeStream(job.bounds).bound is not None, "a bound")
        assert query.query.exception() is None
    least = datetime.fromisoformat(at("09:09")) if how != "of the message" else datetime.now(UTC) - timedelta(minutes=9)
    assert rt.describeStream(job.bounds).bound.time >= least


@pytest.mark.long
def test_the_columns_name_may_have_a_backtick(job: Job) -> None:
    job.put(0, "09:10", "10:05")
    job.put(1, "09:20", "10:03")
    frame = job.parsed().withColumnRenamed("ts", "a`t s")
    rows = rt.punctuate(frame, "a`t s", bounds=job.bounds, watch=AT_ONCE | {"rowtime": "order.ts"})
    with Observed(rows.groupBy(f.window(f.col("`a``t s`"), "1 hour")).count(), job.folder) as query:
        wait_for(lambda: closed(query) == [hour(9, 2)], "the first hour")


@pytest.mark.long
@pytest.mark.parametrize("zone", ["Europe/Berlin", "+02:00"])
def test_times_without_a_zone_are_in_that_of_the_session(job: Job, zone: str) -> None:
    """As Spark reads them: otherwise the bound would be hours above the rows."""
    job.spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        job.put(0, "09:10", form=lambda clock: at(clock).rstrip("Z"))
        job.put(1, "09:20", form=lambda clock: at(clock).rstrip("Z"))
        with job.observed():
            wait_for(lambda: rt.describeStream(job.bounds).bound is not None, "a bound")
    finally:
        job.spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert rt.describeStream(job.bounds).bound == rt.RowtimeBound(at("07:09"))


@pytest.mark.long
def test_times_without_a_zone_are_in_that_of_the_expression_that_reads_them(job: Job) -> None:
    """The session has another one since then, as where a view has kept its own."""
    job.spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    try:
        parsed = job.parsed()
    finally:
        job.spark.conf.set("spark.sql.session.timeZone", "UTC")
    for partition, *clocks in ((0, "09:10", "10:05"), (1, "09:20", "10:03")):
        job.put(partition, *clocks, form=lambda clock: at(clock).rstrip("Z"))
    with Observed(job.hours(parsed), job.folder) as query:
        wait_for(lambda: closed(query) == [hour(7, 2)], "the first hour")
    assert rt.describeStream(job.bounds).bound == rt.RowtimeBound(at("08:02"))


@pytest.mark.long
def test_a_query_fails_with_its_watch(job: Job) -> None:
    """The stream has rows of a feed of the topic, so a watch is refused."""
    rt.createStream(job.bounds, "rowtime TIMESTAMP NOT NULL")
    job.put(0, "09:10")
    given = {"servers": job.kafka.bootstrap, "topics": job.topic, "untilEnd": True, "rowtime": "order.ts"}
    rt.runAdapter(KafkaFeed, job.bounds, arguments=given, restarts=0)
    said = job.error(job.hours())
    assert "KafkaWatch" in said
    assert "Give each of the two a stream of its own" in said


@pytest.mark.night
@pytest.mark.smoke  # its Spark is a process of its own, with the jars of Spark's Kafka source
@pytest.mark.parametrize("session", ["classic", "connect"])
def test_the_spark_that_is_there_hosts_a_watch(kafka: Any, spark_kafka_jars: str, tmp_path: Path, session: str) -> None:
    """In a session of its own, and over Spark Connect, where the server hosts it."""
    topic = kafka.topic(partitions=2)
    sent = [(0, "09:10"), (0, "10:05"), (1, "09:20"), (1, "10:03")]
    kafka.send(topic, [{"value": json.dumps({"ts": at(clock), "k": "a"}), "partition": n} for n, clock in sent])
    program = [sys.executable, "-m", "tests.kafka.watched_driver", str(tmp_path), kafka.bootstrap, topic, session]
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": os.pathsep.join(sys.path)}
    environment["SPARK_TESTING"] = "1"  # the server of Spark Connect takes any free port
    ran = subprocess.run(program, env=environment, capture_output=True, text=True, timeout=500, check=False)
    assert ran.returncode == 0, ran.stderr
    assert ("connect" in ran.stdout) == (session == "connect")
    with rt.openReader(str(tmp_path / "hours.rowtime")) as hours:
        assert drained(hours) == [("10:00", 2)]


def test_a_watch_that_cannot_be_is_refused(job: Job, tmp_path: Path) -> None:
    for watch, said in (
        ({"latenes": "1 minute"}, "KafkaWatch has no argument 'latenes'"),
        ({"lateness": "soon"}, "lateness"),
        ({"servers": "b:9092"}, "it comes from the Kafka source"),
        ({"bounds": "os:system"}, "names the function 'os:system'"),
        ({"kafka.ssl.ca.location": "/etc/shadow"}, "cannot be given beside a query"),
        ({"kafka.sasl.password": "{env:HOME}"}, "add 'env:HOME'"),
        ({"decoder": "avro", "registry.url": "http://evil"}, "is not allowed to run beside"),
    ):
        with pytest.raises(Exception, match=r"InvalidOptionError|UnknownOptionError") as error:
            job.hours(**watch)
        assert said in str(error.value)
    with pytest.raises(rt.InvalidOptionError, match="a dict of texts by name"):
        rt.punctuate(job.parsed(), "ts", bounds=job.bounds, watch={"lateness": 60})  # type: ignore[dict-item]
    assert not Path(job.bounds).exists()
    assert "the option kafka.sasl.kerberos.service.name" in job.error(
        job.hours(job.parsed(**{"kafka.sasl.kerberos.service.name": "kafka"}))
    )
