"""Cluster: what a drain asks and tells the brokers besides messages, and how their errors are told."""

import time
from collections.abc import Mapping
from typing import Any

from spark_rowtime.errors import (
    KafkaUnavailableError,
    ProducerFencedError,
    RowtimeError,
    SchemaMismatchError,
)
from spark_rowtime.kafka.address import TopicAddress
from spark_rowtime.kafka.client import REQUEST_SECONDS, ConnectionErrors, library, new_client
from spark_rowtime.kafka.settings import of_connections, redacted
from spark_rowtime.kafka.topics import Topics, TopicState

_READING = {
    "group.id": "rowtime-positions",  # the client wants one; no group is joined
    "enable.auto.commit": False,
    "enable.partition.eof": True,
    "isolation.level": "read_committed",
    "auto.offset.reset": "earliest",
    "fetch.wait.max.ms": 10,
}
_POLL_SECONDS = 0.05
"""The pause between two looks whether a topic that was just made is there, or is the same."""
_ADVICE = "Run the drain again once that is mended; it continues from the topic's position."
SETTLE_SECONDS = 2.0
"""How long a broker's metadata may be behind the controller's: it still answers with a topic that was deleted."""


class Cluster:
    """The brokers of a topic, by Kafka's client, whose errors become errors of the one tree."""

    def __init__(self, address: TopicAddress, settings: Mapping[str, Any], advice: str = _ADVICE) -> None:
        self.target, self._advice = str(address), advice
        self.library, self._admins = library(), library("confluent_kafka.admin")
        self.settings, self._servers, self._topic = dict(settings), *address
        self._errors = ConnectionErrors()
        self._admin: Any = new_client("admin", self._options(self.settings, {}))
        self.topics = Topics(self._admin, self._not_asked, self._servers, REQUEST_SECONDS)

    def producer(self, own: Mapping[str, Any], defaults: Mapping[str, Any]) -> Any:
        """A producer with its ``own`` settings, and with ``defaults``, which the drain's settings replace."""
        return new_client("producer", self._options({**defaults, **self.settings}, own))

    def reader(self) -> Any:
        """A consumer of committed messages that joins no group, and is told the ends of partitions."""
        return new_client("consumer", self._options(of_connections(self.settings), _READING))

    def _options(self, settings: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
        return {**settings, "bootstrap.servers": self._servers, "error_cb": self._errors, **own}

    def make(self, name: str, partitions: int, settings: Mapping[str, str]) -> TopicState:
        """Makes a topic, if no other process does so at the same time, and waits until it is there."""
        new = self._admins.NewTopic(name, num_partitions=partitions, replication_factor=-1, config=dict(settings))
        try:
            self._admin.create_topics([new], request_timeout=REQUEST_SECONDS)[name].result()
        except self.library.KafkaException as error:
            if error.args[0].code() != self.library.KafkaError.TOPIC_ALREADY_EXISTS:
                raise self.failure(error, f"The topic {name} is not there, and cannot be made.") from error
        deadline = time.monotonic() + REQUEST_SECONDS
        while (found := self.topics.find(name)) is None or not found.partitions:
            if time.monotonic() > deadline:
                raise self.unavailable(f"The topic {name} was made, but is not there after {REQUEST_SECONDS:.0f} s.")
            time.sleep(_POLL_SECONDS)
        return found

    def settled(self, name: str, replaced: str | None = None) -> TopicState | None:
        """The topic of this name, once two answers in a row have the same; None if there is none.

        ``replaced``: the id of a topic that is said to be created again. For some time it is not believed to be there.
        """
        deadline, found = time.monotonic() + SETTLE_SECONDS, self.topics.find(name)
        while True:
            before, found = found, self.topics.find(name)
            same = _id(before) == _id(found)
            if same and (found is None or found.id != replaced):
                return found
            if time.monotonic() > deadline:
                break
            time.sleep(_POLL_SECONDS)
        if same:
            return found
        raise self.unavailable(
            f"Its brokers do not agree on the topic {name}: they answer with the ids {_id(before)} and {_id(found)} "
            "(None: there is no such topic). It was deleted or created again, and one of them does not know that yet."
        )

    def is_end(self, error: Any) -> bool:
        """Whether what a reader got in the place of a message is the end of a partition; raises other errors."""
        codes = self.library.KafkaError
        if error.code() == codes._PARTITION_EOF:  # noqa: SLF001  (the names of the client's own codes begin so)
            return True
        if error.code() == codes.GROUP_AUTHORIZATION_FAILED:  # no group is needed here
            return False
        raise self.failure(error)

    def failure(self, error: Any, what: str = "") -> RowtimeError:
        """The error of the tree for one of Kafka's client, which may be an exception or its KafkaError."""
        reason = error.args[0] if isinstance(error, BaseException) else error
        codes, code = self.library.KafkaError, reason.code()
        begin = f"{what} " if what else ""
        if code in (codes._FENCED, codes.PRODUCER_FENCED, codes.INVALID_PRODUCER_EPOCH):  # noqa: SLF001
            return ProducerFencedError(
                f"{begin}Another drain into {self.target} has started since this one. Let only one of them run; a new "
                "drain continues from the topic's position.",
                path=self.target,
            )
        if code in (codes.MSG_SIZE_TOO_LARGE, codes.INVALID_MSG_SIZE, codes.RECORD_LIST_TOO_LARGE):
            return SchemaMismatchError(
                f"{begin}A message for {self.target} is larger than the client (message.max.bytes) or the topic "
                f"(max.message.bytes) allows: {self._shown(reason.str())}. Nothing of this transaction is in the "
                "topic. Raise both settings, or leave the large column out in the stream's query.",
                path=self.target,
            )
        return self.unavailable(f"{begin}{self._shown(reason.str())} ({reason.name()}).", reason.name())

    def unavailable(self, what: str, code: str | None = None) -> KafkaUnavailableError:
        """The error for brokers that cannot be reached, or refuse."""
        self._admin.poll(0)
        noticed = f" The client reported: {self._shown(self._errors.last.str())}." if self._errors.last else ""
        return KafkaUnavailableError(
            f"{self.target}: {what}{noticed} {self._advice}",
            servers=self._servers,
            topic=self._topic,
            code=code,
        )

    def _not_asked(self, error: Any, what: str) -> RowtimeError:
        if isinstance(error, TimeoutError):
            return self.unavailable(f"{what} has timed out.")
        return self.failure(error, f"{what} failed.")

    def _shown(self, text: Any) -> str:
        return redacted(str(text), self.settings)


def _id(topic: TopicState | None) -> str | None:
    return None if topic is None else topic.id
