"""KafkaFeed: an adapter that reads topics of Kafka into a stream."""

import inspect
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from functools import partial
from typing import Any, ClassVar

import pyarrow as pa

from spark_rowtime.adapter.sinks import Sinks
from spark_rowtime.bounds.members import Status
from spark_rowtime.errors import InvalidOptionError, KafkaUnavailableError, ProducerFencedError
from spark_rowtime.kafka.avro import REGISTRY, AvroRecords
from spark_rowtime.kafka.checkpoint import Checkpoint
from spark_rowtime.kafka.client import PREFIX, REQUEST_SECONDS, Told, client_options, made, unavailable
from spark_rowtime.kafka.consumption import Consumption
from spark_rowtime.kafka.decoding import (
    MESSAGE_TIME,
    Decoder,
    RecordDecoder,
    called,
    function_named,
    json_record,
    stamped_by_broker,
    with_bounds,
)
from spark_rowtime.kafka.from_sql import require_allowed
from spark_rowtime.kafka.malformed import MalformedMessages
from spark_rowtime.kafka.partition_feed import PartitionFeed
from spark_rowtime.kafka.quiet import QuietPartitions
from spark_rowtime.kafka.topics import Part, Topics, TopicState
from spark_rowtime.kafka.watermarks import FORMATS
from spark_rowtime.store import open_store
from spark_rowtime.types.arguments import to_choice, to_flag, to_text, unknown_option
from spark_rowtime.types.schema import ROWTIME
from spark_rowtime.types.timestamps import to_interval, to_required_interval

APPEND_TIME, ROWS = "append-time", "rows"
_ONCE = "offsets are kept in the stream, with the rows, so that each row is there once."
REFUSED = {
    "bootstrap.servers": "servers=... names the brokers.",
    "enable.auto.commit": _ONCE,
    "enable.auto.offset.store": _ONCE,
    "auto.offset.reset": "start=... says where a topic begins, and lost=... what happens if offsets are gone.",
    "enable.partition.eof": "the feed looks at the ends of partitions.",
    "isolation.level": "the rows of a transaction that was aborted are no rows.",
    "partition.assignment.strategy": "a partition is handed over while the others go on (cooperative-sticky).",
}
"""Options of the client that the feed sets itself."""


class KafkaFeed:
    """An adapter that reads topics of Kafka into a stream. Needs the pip extra ``kafka``.

    Each partition is a producer, named like ``orders-0``, and its offset is the checkpoint of this producer: a row is
    in the stream once, whatever dies. Several hosts of one stream share the partitions; Kafka assigns them, and a host
    that loses one is fenced. Each host needs a name of its own (``producer``), as ``rowtime run --producer`` gives it.

    By default the stream waits for a partition as long as no host reads it (``lease=None``), since its rows are still
    in Kafka, and late rows are recorded (``onLate="reject"``). Keywords of ``runAdapter`` override both. The stream
    must exist, or the class gets its schema as a subclass: ``class Orders(KafkaFeed): schema = "..."``.

    Args:
        servers: The addresses of the brokers, such as "broker:9092", with commas.
        topics: The names of the topics, with commas.
        decoder: "json"; "avro", in the wire format of a schema registry; or a function, also as ``module:function``,
            that takes the message (of confluent-kafka) and returns a row, a list of rows, a RowtimeBound, or None for
            no row.
        rowtime: The field with the time, in a nested record with points ("source.ts_ms"); "kafka.timestamp": the time
            of the message. None: "rowtime", or the time of the message with ``bounds="append-time"``.
        timeUnit: None: the field is an ISO 8601 text. "s", "ms", "us", "ns": a number since 1970. "hlc": CockroachDB's
            "updated". "tso": TiDB's commit timestamp.
        row: The field that has the columns, such as "after", or a list of such records. None: the value itself.
            Fields that are no columns are left out.
        bounds: Where bounds come from. "rows": from rows in order per partition, or from ``lateness``. "append-time":
            from the brokers' clock; the topics must have LogAppendTime, and a partition where nothing comes goes on
            with it. "resolved", "ticdc": from messages that are bounds, as CockroachDB and TiCDC send them to each
            partition; rows come in any order between. Or a function, also as ``module:function``, that takes the
            message and returns a time or a RowtimeBound if it is a bound, else None; rows come in any order between.
            A message that is a row, too, is sent before its bound.
        lateness: With ``bounds="rows"``, an interval: how far a row may lie below the largest one of its partition.
        appendDelay: With ``bounds="append-time"``: how far the clocks of the brokers and of this host may differ, with
            the time that a message needs to be replicated.
        idle: An interval: the stream does not wait for a partition whose end was reached for so long, until its next
            message. It promises nothing by that: where all are idle, the bound stays. Rows below what the others have
            promised are late then. None: it waits. With ``bounds="append-time"`` no partition becomes idle.
        start: Where a topic begins that the stream does not know: "earliest" or "latest". A partition that is added
            later begins at its start.
        malformed: What happens to a message that is no row. None: MessageDecodeError. A path: it is kept in the stream
            there, which is created, and the feed goes on.
        tombstones: "malformed", or "skip" to leave out messages without a value, or without what ``row`` names.
        lost: What happens if retention has removed offsets that the stream does not have. "fail": DataLostError.
            "skip": the feed goes on behind them, with a warning in the log.
        untilEnd: If True, the feed ends once it has read what its partitions had when they were assigned.
        options: Options of the client under their own names, such as {"security.protocol": "SSL"}. ``{env:NAME}`` in a
            value stands for an environment variable.
        more: The same as keywords, with ``kafka.`` before their names, as ``rowtime run --set
            kafka.security.protocol=SSL`` gives them; and ``registry.url`` and others, options of the schema registry's
            client.

    Raises:
        KafkaUnavailableError: No broker can be reached, or it refuses this client.
        KafkaTopicError: A topic does not exist, or was deleted and created again.
        MessageDecodeError: A message is no row.
        DataLostError: Retention has removed messages that were not read.
        UnknownOptionError: There is no such option.
        InvalidOptionError: An option has a value that cannot be used.
        ExtraNotInstalledError: The pip extra is missing.
    """

    schema: ClassVar[Any] = None
    require_allowed = staticmethod(require_allowed)

    def __init__(
        self,
        *,
        servers: str,
        topics: str,
        decoder: Any = "json",
        rowtime: str | None = None,
        timeUnit: str | None = None,
        row: str | None = None,
        bounds: Any = ROWS,
        lateness: str | None = None,
        appendDelay: str = "1 minute",
        idle: str | None = None,
        start: str = "earliest",
        malformed: str | None = None,
        tombstones: str = "malformed",
        lost: str = "fail",
        untilEnd: bool = False,
        options: Mapping[str, Any] | None = None,
        **more: str,
    ) -> None:
        self._servers = _without_users(to_text(servers, "servers"))
        self._topics = _names(to_text(topics, "topics"))
        self._decoder, self._row, self._unit = decoder, row or "", timeUnit
        self._bounds = bounds if bounds in (ROWS, APPEND_TIME, *FORMATS) else function_named(bounds, "bounds")
        self._rowtime = rowtime or (MESSAGE_TIME if bounds == APPEND_TIME else ROWTIME)
        self._delay = to_required_interval(appendDelay, "appendDelay") if bounds == APPEND_TIME else None
        self._idle = to_interval(idle, "idle")
        self._latest = to_choice(start, "start", "earliest", "latest") == "latest"
        self._malformed = malformed
        self._skips = to_choice(tombstones, "tombstones", "malformed", "skip") == "skip"
        self._skips_lost = to_choice(lost, "lost", "fail", "skip") == "skip"
        self._until_end = to_flag(untilEnd, "untilEnd")
        self._registry = {name.removeprefix(REGISTRY): v for name, v in more.items() if name.startswith(REGISTRY)}
        self._client = client_options({**(options or {}), **_of_client(more)}, REFUSED)
        self.sinkOptions = self._sink_options(lateness)

    def _sink_options(self, lateness: str | None) -> dict[str, Any]:
        """How rows of a partition come, for ``openSink``."""
        if lateness is not None and self._bounds != ROWS:
            raise InvalidOptionError(
                "lateness is for bounds='rows': otherwise bounds come from messages, or from the brokers' clock, and "
                "rows may come in any order between them. Leave one of the two out.",
                option="lateness",
            )
        if self._bounds == APPEND_TIME and self._rowtime != MESSAGE_TIME:
            raise InvalidOptionError(
                f"bounds='append-time' says how far the brokers' clock is, which is no bound of {self._rowtime!r}. "
                "Leave rowtime out, or let lateness say how far that is behind.",
                option="bounds",
                value=APPEND_TIME,
            )
        order: dict[str, Any] = {"lateness": lateness} if lateness is not None else {}
        if self._bounds not in (ROWS, APPEND_TIME):
            order = {"rowsImplyBounds": False}
        return {"onLate": "reject", "lease": None, **order}

    def runProducers(self, sinks: Sinks) -> None:
        """Reads the partitions that Kafka assigns to this host."""
        with open_store(sinks.path) as store:
            schema, stream = store.schema, store.stream
        decode = self._decode(schema)
        base = {"bootstrap.servers": self._servers, **self._client}
        topics = _topics(self._servers, base)
        known = {name: topics.describe(name) for name in self._topics}
        self._require_append_time(topics)
        self._store_starts(sinks, topics, known)
        consumption = Consumption(
            {"group.id": f"rowtime-{stream}", **_CONSUMER_DEFAULTS, **base, **_CONSUMER},
            topics,
            known,
            partial(self._open, sinks, topics, known, decode),
            QuietPartitions(topics, self._delay, None if self._idle is None else self._idle / 1e6),
            skips_lost=self._skips_lost,
            until_end=self._until_end,
        )
        consumption.run()

    def _decode(self, schema: pa.Schema) -> Decoder:
        if self._decoder not in ("json", "avro"):
            decode = called(function_named(self._decoder, "decoder"))
        else:
            watermark = FORMATS.get(self._bounds) if isinstance(self._bounds, str) else None
            records = json_record if self._decoder == "json" else self._avro()
            decode = RecordDecoder(
                schema, records, self._rowtime, self._row, self._unit, watermark, skips=self._skips
            ).made()
        if self._bounds == APPEND_TIME:
            return stamped_by_broker(decode)
        return decode if isinstance(self._bounds, str) else with_bounds(self._bounds, decode)

    def _avro(self) -> Decoder:
        if "url" not in self._registry:
            raise InvalidOptionError(
                "decoder='avro' needs the address of the schema registry: registry.url='http://registry:8081'.",
                option="registry.url",
            )
        return AvroRecords(self._registry)

    def _require_append_time(self, topics: Topics) -> None:
        asked = self._topics if self._bounds == APPEND_TIME else []
        wrong = [name for name in asked if topics.setting(name, _STAMPED_BY) != "LogAppendTime"]
        if wrong:
            raise InvalidOptionError(
                f"bounds='append-time' needs topics whose messages the broker stamps, and {wrong} have the times of "
                "their producers. Set message.timestamp.type=LogAppendTime, or declare a lateness.",
                option="bounds",
                value=APPEND_TIME,
            )

    def _store_starts(self, sinks: Sinks, topics: Topics, known: dict[str, TopicState]) -> None:
        """Attaches all partitions before the first row, each with the offset where it begins.

        So the stream waits for the partitions that another host, or a later assignment, will read.
        """
        new = [part for topic in known.values() for part in reversed(self._unknown(sinks, topic))]
        for part, offset in self._first_offsets(sinks, topics, new).items():
            sink = sinks.open(part.producer)
            with suppress(ProducerFencedError), ExitStack() as ends:  # another host may start at the same time
                ends.callback(sink.abandon)
                if sink.checkpoint is None:
                    sink.flush(checkpoint=Checkpoint(known[part.topic].id, offset).text())

    def _first_offsets(self, sinks: Sinks, topics: Topics, new: list[Part]) -> dict[Part, int]:
        """Where these partitions begin. One of a topic that the stream knows begins at its start.

        They keep their order, in which partition 0 is the last one of its topic.
        """
        late = [part for part in new if self._latest and not self._knows(sinks, part.topic)]
        found = {**topics.starts(set(new).difference(late)), **topics.ends(late, committed=True)}
        return {part: found[part] for part in new}

    def _knows(self, sinks: Sinks, topic: str) -> bool:
        """Whether all partitions that the topic had at first are in the stream: partition 0 comes last."""
        with open_store(sinks.path) as store:
            found = store.producer(Part(topic, 0).producer)
        return found is not None and found.checkpoint is not None

    def _unknown(self, sinks: Sinks, topic: TopicState) -> list[Part]:
        with open_store(sinks.path) as store:
            infos = {part: store.producer(part.producer) for part in topic.parts}
        return [part for part, info in infos.items() if info is None or info.checkpoint is None]

    def _open(
        self, sinks: Sinks, topics: Topics, known: dict[str, TopicState], decode: Decoder, part: Part
    ) -> PartitionFeed:
        """Takes a partition over. One that was added to the topic gets its start first."""
        with open_store(sinks.path) as store:
            info = store.producer(part.producer)
        if info is None or info.checkpoint is None:
            self._store_starts(sinks, topics, {part.topic: topics.describe(part.topic)})
        kept = None
        if self._malformed is not None:
            kept = MalformedMessages(self._malformed, part.producer, known[part.topic].id)
        feed = PartitionFeed(part, partial(sinks.open, part.producer), decode, kept)
        feed.idle = info is not None and info.status is Status.IDLE
        feed.wake()  # until its end is reached again
        return feed


_STAMPED_BY = "message.timestamp.type"
_CONSUMER_DEFAULTS = {"topic.metadata.refresh.interval.ms": 30_000, "session.timeout.ms": 10_000}
_CONSUMER = {
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "auto.offset.reset": "error",
    "enable.partition.eof": True,
    "isolation.level": "read_committed",
    "partition.assignment.strategy": "cooperative-sticky",
}


def _without_users(servers: str) -> str:
    if "@" not in servers:
        return servers
    raise InvalidOptionError(
        "servers has a user or a password before '@'. Addresses are printed and logged, so they must not contain "
        "secrets. Give sasl.username and sasl.password as options of the client. (The address is not shown.)",
        option="servers",
    )


def _names(topics: str) -> list[str]:
    names = [name.strip() for name in topics.split(",") if name.strip()]
    if names:
        return names
    raise InvalidOptionError(
        f"topics={topics!r} names no topic. Write their names, with commas between them.", option="topics", value=topics
    )


def _of_client(more: Mapping[str, str]) -> dict[str, str]:
    for name in more:
        if not name.startswith((PREFIX, REGISTRY)):
            raise unknown_option(name, _KNOWN, f"KafkaFeed has no argument {name!r}.")
    return {name: value for name, value in more.items() if name.startswith(PREFIX)}


def _topics(servers: str, options: Mapping[str, Any]) -> Topics:
    """Asks the brokers with a client of its own, whose errors of connections say why a question has failed."""
    told = Told()
    admin = made("admin", {**options, "error_cb": told})

    def failed(error: Any, what: str) -> KafkaUnavailableError:
        admin.poll(0)
        return unavailable(servers, told.last or error, what)

    return Topics(admin, failed, servers, REQUEST_SECONDS)


_KNOWN = [name for name in inspect.signature(KafkaFeed).parameters if name != "more"]
