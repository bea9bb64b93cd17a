"""KafkaFeed: an adapter that reads topics of Kafka into a stream."""

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from spark_rowtime.errors import InvalidOptionError
from spark_rowtime.kafka.adapter_settings import settings_of
from spark_rowtime.kafka.address import KAFKA, topic_address
from spark_rowtime.kafka.dead_letters import DeadLetters, require_apart
from spark_rowtime.kafka.decoding import (
    MESSAGE_TIME,
    Decoder,
    called,
    function_named,
    record_decoder,
    stamped_by_broker,
    with_bounds,
)
from spark_rowtime.kafka.malformed import MalformedMessages
from spark_rowtime.kafka.message_columns import column_places, message_columns
from spark_rowtime.kafka.partition_feed import PartitionFeed
from spark_rowtime.kafka.records import FORMATS as RECORD_FORMATS
from spark_rowtime.kafka.records import records_of
from spark_rowtime.kafka.registry import REGISTRY
from spark_rowtime.kafka.topic_adapter import (
    APPEND_TIME,
    ROWS,
    Readers,
    TopicAdapter,
    bounds_of_messages,
)
from spark_rowtime.kafka.topics import Part, Topics
from spark_rowtime.kafka.watermarks import FORMATS
from spark_rowtime.producer.sink import StreamSink
from spark_rowtime.store.base import Store
from spark_rowtime.types.arguments import to_choice
from spark_rowtime.types.schema import ROWTIME
from spark_rowtime.types.timestamps import to_interval, to_required_interval


class KafkaFeed(TopicAdapter):
    """An adapter that reads topics of Kafka into a stream. Needs the pip extra ``kafka``.

    Each partition is a producer, named like ``orders-0``, and its offset is the checkpoint of this producer: a row is
    in the stream once, whatever dies. Several hosts of one stream share the partitions; Kafka assigns them, and a host
    that loses one is fenced. Each host needs a name of its own (``producer``), as ``rowtime run --producer`` gives it.

    By default the stream waits for a partition as long as no host reads it (``lease=None``), since its rows are still
    in Kafka, and late rows are recorded (``onLate="reject"``). Keywords of ``runAdapter`` override both. The stream
    must exist, or the class gets its schema as a subclass: ``class Orders(KafkaFeed): schema = "..."``.

    Args:
        servers: The addresses of the brokers, such as "broker:9092", with commas.
        topics: The names of the topics, with commas. Or a pattern that begins with ``^`` and matches whole names, as
            "^orders-.*" does: topics that come later are read, too, from their start.
        decoder: "json"; "avro", "protobuf" or "json-schema", in the wire format of a schema registry; or a function,
            also as ``module:function``, that takes the message (of confluent-kafka) and returns a row, a list of rows,
            a RowtimeBound, or None for no row. With a function, ``rowtime``, ``timeUnit``, ``row``, ``columns`` and
            ``tombstones="skip"`` are refused.
        rowtime: The field with the time, in a nested record with points ("source.ts_ms"); "kafka.timestamp": the time
            of the message. None: "rowtime", or the time of the message with ``bounds="append-time"``.
        timeUnit: None: the field is an ISO 8601 text. "s", "ms", "us", "ns": a number since 1970. "hlc": CockroachDB's
            "updated". "tso": TiDB's commit timestamp.
        row: The field that has the columns, such as "after", or a list of such records. None: the value itself.
            Fields that are no columns are left out.
        columns: The columns of the stream that are a part of the message: a dict such as {"shop": "kafka.key"}, or the
            text "shop=kafka.key,n=kafka.offset". The parts are kafka.key and kafka.header.NAME (BINARY, or STRING for
            UTF-8), kafka.topic, kafka.partition, kafka.offset, kafka.timestamp, and kafka.headers
            (ARRAY<STRUCT<key STRING, value BINARY>>). A decoder of your own has the message itself.
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
        alignment: An interval: a partition whose bound is further ahead of the stream's bound is paused until it no
            longer is, so that the rows of others do not pile up in the stream while one is filled from its past. A
            partition that is silent holds them, too, unless it has ``idle``. None: no partition is paused.
        start: Where a topic begins that the stream does not know: "earliest" or "latest". A partition that is added
            later begins at its start.
        malformed: What happens to a message that is no row. None: MessageDecodeError. A path: it is kept in the stream
            there, which is created, once, and the feed goes on. ``kafka://HOST:PORT/TOPIC``: it is sent into that
            topic, which must exist, with its key, value and headers, and in more headers the cause, its topic,
            partition, offset and timestamp; after a crash it may come again.
        tombstones: "malformed", or "skip" to leave out messages without a value, or without what ``row`` names.
        lost: What happens if retention has removed offsets that the stream does not have. "fail": DataLostError.
            "skip": the feed goes on behind them, with a warning in the log.
        untilEnd: If True, the feed ends once it has read what its partitions had when they were assigned.
        config: A properties file with options of the client, and with ``registry.url`` and others; those given
            otherwise are stronger. None: no file.
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

    def __init__(
        self,
        *,
        servers: str,
        topics: str,
        decoder: Any = "json",
        rowtime: str | None = None,
        timeUnit: str | None = None,
        row: str | None = None,
        columns: Mapping[str, str] | str | None = None,
        bounds: Any = ROWS,
        lateness: str | None = None,
        appendDelay: str = "1 minute",
        idle: str | None = None,
        alignment: str | None = None,
        start: str = "earliest",
        malformed: str | None = None,
        tombstones: str = "malformed",
        lost: str = "fail",
        untilEnd: bool = False,
        config: str | None = None,
        options: Mapping[str, Any] | None = None,
        **more: str,
    ) -> None:
        client, self._registry = settings_of(KafkaFeed, config, options, more, REGISTRY)
        super().__init__(
            servers=servers, topics=topics, start=start, lost=lost, idle=idle, untilEnd=untilEnd, client=client
        )
        self._decoder, self._row, self._unit = decoder, row or "", timeUnit
        self._bounds = bounds_of_messages(bounds, lateness)
        self._rowtime = rowtime or (MESSAGE_TIME if bounds == APPEND_TIME else ROWTIME)
        self._delay = to_required_interval(appendDelay, "appendDelay") if bounds == APPEND_TIME else None
        self._most_ahead = to_interval(alignment, "alignment")
        self._malformed = malformed
        self._letters = self._dead_letters(malformed)
        self._places = column_places(columns)
        self._skips = to_choice(tombstones, "tombstones", "malformed", "skip") == "skip"
        if decoder not in RECORD_FORMATS:
            _require_none(columns=self._places, row=row, rowtime=rowtime, timeUnit=timeUnit, tombstones=self._skips)
        self.sinkOptions = self._sink_options(lateness)

    def _dead_letters(self, malformed: str | None) -> DeadLetters | None:
        """What sends messages that are no rows into a topic; None if ``malformed`` names none."""
        if not malformed or not malformed.startswith(KAFKA):
            return None
        address = topic_address(malformed)
        require_apart(address, self._topics, self._pattern)
        return DeadLetters(address, self._client)

    def _sink_options(self, lateness: str | None) -> dict[str, Any]:
        """How rows of a partition come, for ``openSink``."""
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

    def _readers(self, store: Store) -> Readers:
        decode = self._decode(store.schema)

        def reader(part: Part, open_sink: Callable[[], StreamSink], topic_id: str) -> PartitionFeed:
            return PartitionFeed(part, open_sink, decode, self._kept(part, topic_id))

        return reader

    def _kept(self, part: Part, topic_id: str) -> MalformedMessages | DeadLetters | None:
        """What keeps the messages of a partition that are no rows; None if such a message is an error."""
        if self._malformed is None or self._letters is not None:
            return self._letters
        return MalformedMessages(self._malformed, part.producer, topic_id)

    def _decode(self, schema: pa.Schema) -> Decoder:
        if self._decoder not in RECORD_FORMATS:
            decode = called(function_named(self._decoder, "decoder"))
        else:
            watermark = FORMATS.get(self._bounds) if isinstance(self._bounds, str) else None
            records = records_of(self._decoder, self._registry)
            own, skips = message_columns(self._places, schema), self._skips
            decode = record_decoder(schema, records, self._rowtime, self._row, self._unit, watermark, skips, own)
        if self._bounds == APPEND_TIME:
            return stamped_by_broker(decode)
        return decode if isinstance(self._bounds, str) else with_bounds(self._bounds, decode)

    def _stamped(self, topics: Topics) -> list[str]:
        asked = self._topics if self._bounds == APPEND_TIME else []
        found = topics.with_append_time(asked)
        wrong = [name for name in asked if name not in found]
        if wrong:
            raise InvalidOptionError(
                f"bounds='append-time' needs topics whose messages the broker stamps, and {wrong} have the times of "
                "their producers. Set message.timestamp.type=LogAppendTime, or declare a lateness.",
                option="bounds",
                value=APPEND_TIME,
            )
        return found


def _require_none(**options: Any) -> None:
    """Raises InvalidOptionError for an option that a function as decoder would not see."""
    name = next((name for name, given in options.items() if given), None)
    if name is not None:
        raise InvalidOptionError(
            f"{name} is for messages that this feed decodes: a function has the message itself. Leave it out.",
            option=name,
        )
