"""BoundsFeed: an adapter that takes bounds with offsets from a topic, into which programs in any language send them."""

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from spark_rowtime.bounds.bound import RowtimeBound
from spark_rowtime.bounds.topic_cut import to_cut
from spark_rowtime.errors import InvalidOptionError
from spark_rowtime.kafka.adapter_settings import settings_of
from spark_rowtime.kafka.decoding import json_of
from spark_rowtime.kafka.json_values import JsonNumber
from spark_rowtime.kafka.malformed import MalformedError
from spark_rowtime.kafka.partition_reader import PartitionReader
from spark_rowtime.kafka.times import time_reader
from spark_rowtime.kafka.topic_adapter import Readers, TopicAdapter
from spark_rowtime.kafka.topics import Part
from spark_rowtime.producer.sink import StreamSink
from spark_rowtime.store.base import Store
from spark_rowtime.types.short_repr import short_repr

_RESOLVED, _OFFSETS, _IDS = "resolved", "offsets", "topicIds"
_TIME = time_reader("hlc")


class BoundsFeed(TopicAdapter):
    """An adapter that takes bounds from topics of bounds into a stream of bounds. Needs the pip extra ``kafka``.

    A program in any language writes messages into a topic, and behind them a bound with their offsets into a topic of
    bounds: ``{"resolved": "1767607200000000000.0000000000", "offsets": {"orders": {"0": 4711, "1": 4690}}}``. Each
    partition of the topic of bounds is for one such program, and a producer of the stream, named like
    ``orders-bounds-0``; the stream waits for each of them. A query reads the messages themselves with Spark's Kafka
    source and ``rt.punctuate``. docs/kafka.md has the format.

    A message that is no bound promises nothing, and neither does one further ahead than the stream's ``maxAhead``; the
    log names the first one of each partition.

    Args:
        servers: The addresses of the brokers, such as "broker:9092", with commas.
        topics: The names of the topics of bounds, with commas, or a pattern, as for ``KafkaFeed``.
        start: Where a topic begins that the stream does not know: "earliest" or "latest".
        lost: "fail" or "skip", as for ``KafkaFeed``.
        untilEnd: If True, the feed ends once it has taken what is there.
        config: A properties file with options of the client, as for ``KafkaFeed``.
        options: Options of the client under their own names, as for ``KafkaFeed``.
        more: The same as keywords, with ``kafka.`` before their names.

    Raises:
        KafkaUnavailableError: No broker can be reached, or it refuses this client.
        KafkaTopicError: A topic does not exist, or was deleted and created again; also one that offsets name by its id.
        CutRegressionError: The offsets of a program go back.
        DataLostError: Retention has removed messages that were not taken.
        InvalidOptionError: An option has a value that cannot be used.
    """

    watches = True

    def __init__(
        self,
        *,
        servers: str,
        topics: str,
        start: str = "earliest",
        lost: str = "fail",
        untilEnd: bool = False,
        config: str | None = None,
        options: Mapping[str, Any] | None = None,
        **more: str,
    ) -> None:
        client = settings_of(BoundsFeed, config, options, more).client
        super().__init__(
            servers=servers, topics=topics, start=start, lost=lost, idle=None, untilEnd=untilEnd, client=client
        )
        self.sinkOptions = {"onLate": "reject", "lease": None, "rowsImplyBounds": False}

    def _readers(self, store: Store) -> Readers:  # noqa: ARG002
        def reader(part: Part, open_sink: Callable[[], StreamSink], _: str) -> PartitionReader:
            return PartitionOfBounds(part, open_sink)

        return reader


class PartitionOfBounds(PartitionReader):
    """Sends the bounds of one partition, each with the offsets that it follows."""

    def take(self, messages: list[Any]) -> None:
        """Takes messages in the order of their offsets."""
        for message in messages:
            if message.offset() < self.next:
                continue
            try:
                self._send(message)
            except MalformedError as error:
                self._tell(message, str(error))
            self._took(message)

    def _send(self, message: Any) -> None:
        if message.value() is None:
            return
        bound, offsets, ids = bound_with_offsets(message)
        self.promise(bound, cut=offsets, topicIds=ids)

    def _tell(self, message: Any, why: str) -> None:
        """Logs the first message that is no bound."""
        text = "The message at offset %s of %s is no bound with offsets, and promises nothing: %s"
        self._tell_once(text, message.offset(), self.part.producer, why)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON, if no key comes twice: of two offsets of a partition, one is wrong."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key comes twice in an object")
    return found


_UNAMBIGUOUS = json.JSONDecoder(parse_float=JsonNumber, object_pairs_hook=_once)


class BoundWithOffsets(NamedTuple):
    """What a message of a topic of bounds says: a bound, the offsets that it follows, and ids of topics, if told."""

    bound: RowtimeBound
    offsets: dict[str, dict[int, int]]
    ids: dict[str, str] | None


def bound_with_offsets(message: Any) -> BoundWithOffsets:
    """Reads a message of a topic of bounds; MalformedError if it is none."""
    record = json_of(message.value(), _UNAMBIGUOUS)
    if type(record) is not dict or _RESOLVED not in record:
        raise MalformedError(f"{short_repr(record)} is no object with 'resolved'")
    if _OFFSETS not in record:
        raise MalformedError(f"it has no {_OFFSETS!r}")
    bound = RowtimeBound(_TIME(record[_RESOLVED]))
    offsets, ids = record[_OFFSETS], record.get(_IDS)
    try:
        return BoundWithOffsets(bound, *_checked(_numbered(offsets), ids))
    except (ValueError, InvalidOptionError) as error:
        raise MalformedError(f"its offsets {short_repr(offsets)} or topicIds cannot be used: {error}") from None


def _checked(offsets: Any, ids: Any) -> tuple[dict[str, dict[int, int]], dict[str, str] | None]:
    cut = to_cut(offsets, ids)
    return {topic: dict(ends) for topic, ends in cut.offsets.items()}, dict(cut.ids) or None


def _numbered(offsets: Any) -> Any:
    """Offsets whose partitions are numbers; what has another form is left for ``to_cut`` to refuse."""
    if type(offsets) is not dict:
        return offsets
    return {topic: _by_number(ends) if type(ends) is dict else ends for topic, ends in offsets.items()}


def _by_number(ends: dict[str, Any]) -> dict[int, Any]:
    return {_number(partition): end for partition, end in ends.items()}


def _number(partition: str) -> int:
    if partition.isascii() and partition.isdecimal() and str(number := int(partition)) == partition:
        return number  # "00" beside "0" would be the same partition twice
    raise ValueError(f"{short_repr(partition)} is no number of a partition")
