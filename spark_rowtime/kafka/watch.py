"""KafkaWatch: an adapter that derives bounds from topics of Kafka, and leaves their messages where they are."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from spark_rowtime.errors import InvalidOptionError, KafkaUnavailableError, StreamNotFoundError
from spark_rowtime.kafka.adapter_settings import settings_of
from spark_rowtime.kafka.decoding import MESSAGE_TIME
from spark_rowtime.kafka.message_floors import message_floor
from spark_rowtime.kafka.partition_watch import PartitionWatch, UnreadPartition
from spark_rowtime.kafka.records import FORMATS as RECORD_FORMATS
from spark_rowtime.kafka.records import records_of
from spark_rowtime.kafka.registry import REGISTRY
from spark_rowtime.kafka.times import time_reader
from spark_rowtime.kafka.topic_adapter import (
    APPEND_TIME,
    ROWS,
    Readers,
    TopicAdapter,
    bounds_of_messages,
)
from spark_rowtime.kafka.topics import Part, Topics
from spark_rowtime.producer.sink import StreamSink
from spark_rowtime.store import open_store
from spark_rowtime.store.base import Store
from spark_rowtime.store.reach import ceiling
from spark_rowtime.stream import createStream
from spark_rowtime.types.arguments import to_choice
from spark_rowtime.types.schema import ROWTIME
from spark_rowtime.types.timestamps import SECOND_MICROS, to_interval, to_required_interval, wall_clock, zone_named

EVERY = "10 seconds"
WATCHED_SCHEMA = (
    "rowtime TIMESTAMP NOT NULL, topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP, key BINARY, "
    "value BINARY"
)
"""The schema of a stream of bounds that is made for a watch: what a query keeps of a late row."""


def create_watched(path: str) -> None:
    """Creates a stream of bounds at ``path`` if there is none. One that is there may have other columns."""
    try:
        open_store(path).close()
    except StreamNotFoundError:
        createStream(path, WATCHED_SCHEMA, existOk=True)


class KafkaWatch(TopicAdapter):
    """An adapter that derives bounds with cuts from topics of Kafka. Needs the pip extra ``kafka``.

    The messages stay in their topics, and a query reads them with Spark's Kafka source and ``rt.punctuate``. The stream
    gets bounds alone, each with the offsets that it follows. Each partition is a producer, named like ``orders-0``, and
    its offset is the checkpoint of this producer. Several hosts of one stream share the partitions, as those of
    ``KafkaFeed`` do.

    A message without a time, or with one further ahead than the stream's ``maxAhead``, promises nothing; the log names
    the first one of each partition. Late rows are found, counted and kept by the query. The stream must exist;
    ``rowtime watch`` and ``rt.punctuate(watch=...)`` create it.

    Args:
        servers: The addresses of the brokers, such as "broker:9092", with commas.
        topics: The names of the topics, with commas. A pattern is refused.
        bounds: Where bounds come from. "rows": from times of messages in order per partition, or from ``lateness``.
            "append-time": from the brokers' clock; no message is read. "resolved", "ticdc", or a function, also as
            ``module:function``: as for ``KafkaFeed``.
        rowtime: The field with the time, in a nested record with points; "kafka.timestamp": the time of the message.
            None: "rowtime", or the time of the message with ``bounds="append-time"``.
        timeUnit: The unit of the field, as for ``KafkaFeed``.
        tz: The time zone of texts that name none, such as "Europe/Berlin" or "+02:00". None: UTC.
        decoder: "json"; "avro", "protobuf" or "json-schema", in the wire format of a schema registry.
        lateness: With ``bounds="rows"``, an interval: how far a message may lie below the largest one of its partition.
        delay: An interval: how long after its time a message may be seen in the topic, with the difference of the
            clocks of this host and of the brokers. So a partition that was read to its end at noon promises noon less
            this delay, also where nothing ever comes; behind an open transaction it promises nothing. It is your
            declaration: a message that breaks it is late. None: a partition where nothing comes promises nothing. With
            ``bounds="append-time"`` it is needed, unless the time is that of the messages and the brokers stamp them:
            then it is 1 minute.
        every: An interval: a partition sends a bound at most so often.
        idle: An interval, as for ``KafkaFeed``. It is of no account with ``delay``.
        start: Where a topic begins that the stream does not know: "earliest" or "latest".
        lost: "fail" or "skip", as for ``KafkaFeed``.
        untilEnd: If True, the watch ends once the stream has followed what the topics had when it began; partitions of
            other hosts are waited for.
        config: A properties file with options of the client and the registry, as for ``KafkaFeed``.
        options: Options of the client under their own names, as for ``KafkaFeed``.
        more: The same as keywords, with ``kafka.`` before their names; and ``registry.url`` and others.

    Raises:
        KafkaUnavailableError: No broker can be reached, or it refuses this client.
        KafkaTopicError: A topic does not exist, or was deleted and created again.
        DataLostError: Retention has removed messages that were not read.
        UnknownOptionError: There is no such option.
        InvalidOptionError: An option has a value that cannot be used.
        ExtraNotInstalledError: The pip extra is missing.
    """

    watches = True

    def __init__(
        self,
        *,
        servers: str,
        topics: str,
        bounds: Any = ROWS,
        rowtime: str | None = None,
        timeUnit: str | None = None,
        tz: str | None = None,
        decoder: str = "json",
        lateness: str | None = None,
        delay: str | None = None,
        every: str = EVERY,
        idle: str | None = None,
        start: str = "earliest",
        lost: str = "fail",
        untilEnd: bool = False,
        config: str | None = None,
        options: Mapping[str, Any] | None = None,
        **more: str,
    ) -> None:
        client, self._registry = settings_of(KafkaWatch, config, options, more, REGISTRY)
        super().__init__(
            servers=servers, topics=topics, start=start, lost=lost, idle=idle, untilEnd=untilEnd, client=client
        )
        if self._pattern is not None:
            raise InvalidOptionError(
                f"topics={topics!r} is a pattern, and a watch needs names: a query reads a topic that comes before the "
                "watch has seen it, so its rows could lie below bounds. Write the names, with commas.",
                option="topics",
                value=topics,
            )
        self._bounds = bounds_of_messages(bounds, lateness)
        self._rowtime = rowtime or (MESSAGE_TIME if bounds == APPEND_TIME else ROWTIME)
        self._unit, self._zone = timeUnit, zone_named(tz)
        time_reader(timeUnit)  # raises an error for a unit that is not known
        self._lateness = to_interval(lateness, "lateness") or 0
        self._delay, self._every = to_interval(delay, "delay"), to_required_interval(every, "every") / SECOND_MICROS
        self._decoder = to_choice(decoder, "decoder", *RECORD_FORMATS)
        self.reads, self.waitsForOthers = self._bounds != APPEND_TIME, self._until_end
        self.sinkOptions = {"onLate": "reject", "lease": None, "rowsImplyBounds": False}
        self.declared = _texts(
            bounds=bounds if isinstance(bounds, str) else _name(bounds),
            decoder=decoder,
            rowtime=self._rowtime,
            timeUnit=timeUnit,
            tz=tz,
            lateness=lateness,
            delay=delay,
        )

    def _readers(self, store: Store) -> Readers:
        records = records_of(self._decoder, self._registry)
        bounds = self._bounds if self.reads else ROWS
        floor = message_floor(bounds, records, self._rowtime, self._unit, self._zone, self._lateness)
        kind, settings = PartitionWatch if self.reads else UnreadPartition, store.settings

        def reader(part: Part, open_sink: Callable[[], StreamSink], _: str) -> PartitionWatch:
            return kind(part, open_sink, floor, self._every, lambda: ceiling(settings, wall_clock()), self.declared)

        return reader

    def _stamped(self, topics: Topics) -> list[str]:
        if self.reads and self._delay is None:
            return []
        found: list[str] = []
        with suppress(KafkaUnavailableError):  # without the right to read settings, this host's clock is taken
            found = topics.with_append_time(self._topics)
        if self._delay is None and self._rowtime == MESSAGE_TIME and len(found) == len(self._topics):
            self._delay = to_required_interval("1 minute", "delay")
        if self._delay is None:
            raise InvalidOptionError(
                "bounds='append-time' reads no message, so delay must say how long after its time a message may be "
                "seen in the topic: delay='5 minutes'. It may be left out only where rowtime is kafka.timestamp, and "
                "the brokers stamp the messages (message.timestamp.type=LogAppendTime).",
                option="delay",
            )
        return found


def _texts(**values: str | None) -> dict[str, str]:
    """Those that are given."""
    return {name: str(value) for name, value in values.items() if value is not None}


def _name(function: Any) -> str:
    """The name of a function, or of the class of another object that can be called."""
    named = function if hasattr(function, "__qualname__") else type(function)
    return f"{named.__module__}:{named.__qualname__}"
