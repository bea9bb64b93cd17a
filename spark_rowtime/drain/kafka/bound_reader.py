"""BoundReader: the bound of a topic, as its messages say it: up to which time every partition is complete."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from spark_rowtime.bounds.bound import RowtimeBound
from spark_rowtime.drain.kafka.cluster import Cluster
from spark_rowtime.drain.properties import BOUND, FIRST, LAST, STRICT, bound_in, bound_properties
from spark_rowtime.errors import InvalidOptionError, KafkaTopicError
from spark_rowtime.kafka.address import TopicAddress
from spark_rowtime.kafka.client import REQUEST_SECONDS
from spark_rowtime.kafka.decoding import json_record
from spark_rowtime.kafka.malformed import MalformedError
from spark_rowtime.kafka.message_headers import headers_of
from spark_rowtime.kafka.topics import TopicState
from spark_rowtime.kafka.watermarks import resolved
from spark_rowtime.types.timestamps import to_micros

FIRST_WINDOW = 1_000
"""How many offsets at the end of a partition are read first. A drain puts its bound behind the rows."""
_WIDER = 10
_BATCH_MESSAGES, _STEP_SECONDS = 10_000, 0.05
_ADVICE = "Announce the topic again once that is mended; that continues where it was."


class BoundReader:
    """Reads the bound of one topic: the least over its partitions of the last bound in each.

    Law (*weaker*): a partition without a bound, and a message that cannot be understood, give no bound.
    """

    def __init__(self, address: TopicAddress, settings: Mapping[str, Any]) -> None:
        self._topic = address.topic
        self._cluster = Cluster(address, settings, advice=_ADVICE)
        self.id = self._cluster.topics.describe(self._topic).id
        """The id of the topic."""
        self._consumer: Any = self._cluster.reader()
        self._read: dict[int, int] = {}
        """The offset behind what was read, by partition."""
        self._said: dict[int, dict[str, str]] = {}
        """The last bound of each partition that has one, as properties."""

    def properties(self) -> dict[str, str]:
        """The bound of the topic, and the first and the last rowtime of its rows if they are told; empty without one.

        Raises:
            KafkaTopicError: The topic was deleted, or created again.
            KafkaUnavailableError: The brokers cannot be reached, or refuse.
        """
        state = self._checked()
        ends, window = self._unread(state), FIRST_WINDOW
        left = {number: span for number, span in ends.items() if span[0] < span[1]}
        while left:
            found = self._last_bounds({number: max(low, high - window) for number, (low, high) in left.items()})
            self._said |= found
            left = {n: span for n, span in left.items() if n not in found and span[1] - window > span[0]}
            window *= _WIDER
        self._read = {number: high for number, (_, high) in ends.items()}
        return self._weakest() if len(self._said) == state.partitions else {}

    def close(self) -> None:
        """Frees the connections."""
        self._consumer.close()

    def _checked(self) -> TopicState:
        found = self._cluster.topics.describe(self._topic)
        if found.id != self.id:
            raise self.replaced(self.id, found.id)
        return found

    def replaced(self, before: str, now: str) -> KafkaTopicError:
        """The error for a topic that was created again, with these ids."""
        return KafkaTopicError(
            f"The topic {self._topic} was created again (its id was {before} and is {now}), so its bounds are "
            "those of other rows. Announce it under another name (--name), or with another stream of positions "
            "(--positions): its periods are announced again then.",
            topic=self._topic,
            topicId=before,
            foundId=now,
        )

    def _unread(self, state: TopicState) -> dict[int, tuple[int, int]]:
        """The offsets of each partition that are not read yet, up to the first open transaction."""
        starts, ends = self._cluster.topics.starts(state.parts), self._cluster.topics.ends(state.parts, committed=True)
        return {p.number: (max(starts[p], self._read.get(p.number, 0)), ends[p]) for p in state.parts}

    def _last_bounds(self, starts: Mapping[int, int]) -> dict[int, dict[str, str]]:
        """Reads partitions to their ends; returns the last bound of each in which one was found."""
        partition = self._cluster.library.TopicPartition
        self._consumer.assign([partition(self._topic, number, start) for number, start in starts.items()])
        found: dict[int, dict[str, str]] = {}
        ended, quiet = set[int](), 0.0
        while len(ended) < len(starts):
            messages = self._consumer.consume(_BATCH_MESSAGES, _STEP_SECONDS)
            quiet = 0.0 if messages else quiet + _STEP_SECONDS
            if quiet > REQUEST_SECONDS:
                raise self._cluster.unavailable("The topic cannot be read.")
            for message in messages:
                if (error := message.error()) is None:
                    if said := bound_of_message(message):
                        found[message.partition()] = said
                elif self._cluster.is_end(error):
                    ended.add(message.partition())
        return found

    def _weakest(self) -> dict[str, str]:
        every = [*self._said.values()]
        weakest = min(every, key=_floor)
        bound = {name: weakest[name] for name in (BOUND, STRICT) if name in weakest}
        first = min((said[FIRST] for said in every if FIRST in said), key=to_micros, default=None)
        last = max((said[LAST] for said in every if LAST in said), key=to_micros, default=None)
        return bound | ({FIRST: first} if first else {}) | ({LAST: last} if last else {})


def bound_of_message(message: Any) -> dict[str, str]:
    """The bound that a message is, as properties; empty for another one."""
    try:
        headers = {name: value for name, value in headers_of(message) if name in (BOUND, STRICT, FIRST, LAST)}
    except MalformedError:  # a drain has no such header
        return {}
    if BOUND in headers:
        return _understood(headers)
    if message.key() is None and b'"resolved"' in (message.value() or b""):
        with suppress(MalformedError, InvalidOptionError):
            record = json_record(message)
            return bound_properties(resolved(record) if type(record) is dict else None)
    return {}


def _understood(headers: Mapping[str, Any]) -> dict[str, str]:
    """Headers as properties; empty if one of them is none of a drain's."""
    with suppress(UnicodeDecodeError, AttributeError, InvalidOptionError):
        found = {name: value.decode() for name, value in headers.items()}
        for name in (BOUND, FIRST, LAST):
            to_micros(found.get(name, found[BOUND]))
        return found
    return {}


def _floor(properties: Mapping[str, str]) -> int:
    bound = bound_in(properties)
    assert isinstance(bound, RowtimeBound)
    return bound.floor
