"""The topics of a schedule: rows in a topic of a broker, and their bounds in a stream beside it."""

import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import spark_rowtime as rt
from tests.law7.schedule import PARTITIONS, Row, TopicBounds
from tests.law7.watched import Rows, Watch
from tests.streams import at, opened

ROW = "rowtime TIMESTAMP, id INT, k INT, v INT"
KEPT = "rowtime TIMESTAMP NOT NULL, partition INT, offset BIGINT, id INT"
"""The columns of a stream of bounds: what it keeps of a late row."""


class Topic:
    """One topic, and the path of the stream with its bounds.

    ``ends``: the offsets of the next messages. ``sent``: the ids of the rows that the broker has. ``strays``: those of
    the rows that were sent past the bounds, which alone may be late; or, of a watched topic, those that break what is
    declared. ``weaker``: its watch declares less.
    """

    def __init__(self, kafka: Any, path: str, topic_bounds: TopicBounds, *, weaker: bool = False) -> None:
        self.kafka, self.path, self.topic_bounds = kafka, path, topic_bounds
        self.name = kafka.topic(partitions=PARTITIONS)
        self.ends = dict.fromkeys(range(PARTITIONS), 0)
        self.sent: set[int] = set()
        self.strays: set[int] = set()
        self.watch = None if topic_bounds.watched is None else Watch(self, topic_bounds.watched, weaker=weaker)

    def opened(self, producer: str, **options: Any) -> "Rows | Writer":
        """A producer of rows and bounds, as ``openSink`` would give one."""
        if self.watch is not None:
            return Rows(self)
        return (OwnCuts if self.topic_bounds.own_cuts else Bounds)(self, producer, options)

    def stray(self, row: Row) -> None:
        """Sends a row, whatever was promised."""
        self.strays.add(row.id)
        producer = self.client()
        producer.produce(self.name, **self.message(row))
        producer.flush()

    def client(self) -> Any:
        """A new client of the broker."""
        from confluent_kafka import Producer

        return Producer({"bootstrap.servers": self.kafka.bootstrap, "enable.idempotence": True, "linger.ms": 0})

    def message(self, row: Row) -> dict[str, Any]:
        """The arguments with which a row is produced."""
        spread = self.topic_bounds.spread
        value = json.dumps({**row._asdict(), "rowtime": at(row.rowtime)})
        return {"value": value, "partition": spread[row.id % len(spread)], "on_delivery": self._delivered(row)}

    def _delivered(self, row: Row) -> Callable[[Any, Any], None]:
        def delivered(error: Any, message: Any) -> None:
            assert error is None, error
            self.sent.add(row.id)
            self.ends[message.partition()] = message.offset() + 1
            if self.watch is not None:
                self.watch.sees(message.partition(), row)

        return delivered

    def read(self, reader: Any, limit: str | None) -> DataFrame:
        """The rows, by Spark's own source; of a batch, those that no query has taken for late."""
        kafka = reader.format("kafka").option("kafka.bootstrap.servers", self.kafka.bootstrap)
        limits = {"maxOffsetsPerTrigger": limit} if limit else {}
        messages = kafka.options(subscribe=self.name, startingOffsets="earliest", **limits).load()
        value = F.from_json(F.col("value").cast("string"), ROW)
        rows = messages.select(value.alias("o")).select("o.*").where("rowtime IS NOT NULL")
        if rows.isStreaming:
            watch = None if self.watch is None or not self.watch.hosted else self.watch.declared
            return rt.punctuate(rows, "rowtime", bounds=self.path, watch=watch)
        return rows.where(~F.col("id").isin(self.late()))

    def late(self) -> list[int]:
        """The ids of the late rows that the stream of bounds has kept, each once for each source that has read it."""
        kept = rt.rejectedRows(self.path).to_pylist()
        places = [(row["producer"], row["partition"], row["offset"]) for row in kept]
        assert len(places) == len(set(places)), f"a late row is kept twice: {places}"
        may_be_late = self.strays.__contains__ if self.watch is None else self.watch.broken.__contains__
        wrong = [row for row in kept if not may_be_late(row["id"]) or row["rowtime"] >= row["bound"]]
        assert not wrong, f"rows that were in time are late: {wrong}"
        return sorted({row["id"] for row in kept})


class Writer:
    """A producer of a topic, with the methods of a sink."""

    def __init__(self, topic: Topic, producer: str, options: dict[str, Any]) -> None:
        self.topic, self.client = topic, topic.client()
        self.sink = opened(topic.path, producer, lease=None, **options)

    def sendRows(self, rows: list[Row]) -> None:
        """Sends the rows that are not late."""
        for row in rows:
            with suppress(rt.LateRowError):
                self.produce(row)

    def produce(self, row: Row) -> None:
        """Sends a row."""
        raise NotImplementedError

    def abandon(self) -> None:
        """Ends without leaving the stream."""
        self.sink.abandon()


class Bounds(Writer):
    """``rt.KafkaBounds``."""

    def __init__(self, topic: Topic, producer: str, options: dict[str, Any]) -> None:
        super().__init__(topic, producer, options)
        self.bounds = rt.KafkaBounds(self.client, topic.name, self.sink, admin=topic.kafka.admin)
        self.sendRowtimeBound, self.flush = self.bounds.sendRowtimeBound, self.bounds.flush
        self.close = self.bounds.close

    def produce(self, row: Row) -> None:
        """Sends a row."""
        self.bounds.produce(rowtime=at(row.rowtime), **self.topic.message(row))


class OwnCuts(Writer):
    """A program that knows the offsets of the whole topic."""

    def produce(self, row: Row) -> None:
        """Sends a row."""
        self.sink.requireInTime(at(row.rowtime))
        self.client.produce(self.topic.name, **self.topic.message(row))

    def sendRowtimeBound(self, t: Any, strict: bool) -> None:
        """Sends a bound behind all messages."""
        self.sink.sendRowtimeBound(t, strict, cut=self._cut())

    def flush(self, checkpoint: str | None = None) -> None:
        """Commits the bounds."""
        self.client.flush()
        self.sink.flush(checkpoint)

    def close(self, *, complete: bool = False) -> None:
        """Leaves behind all messages."""
        self.sink.close(complete=complete, cut=self._cut())

    def _cut(self) -> dict[str, dict[int, int]]:
        self.client.flush()
        return {self.topic.name: dict(self.topic.ends)}
