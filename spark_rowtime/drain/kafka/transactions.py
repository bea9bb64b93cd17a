"""Transactions: a producer whose messages are committed together, one transaction at a time."""

import time
from collections.abc import Iterable
from typing import Any

from spark_rowtime.drain.kafka.cluster import Cluster
from spark_rowtime.drain.kafka.messages import Message
from spark_rowtime.errors import RowtimeError
from spark_rowtime.kafka.client import REQUEST_SECONDS

PREFIX = "rowtime-drain-"
"""How a transactional.id begins; the topic's name follows. So the brokers know two drains into one topic."""
_STEP_SECONDS = 1.0
"""How long one call of the client may wait. Between two, the process can be interrupted."""
_ABORT_SECONDS = 5.0
DEFAULTS = {"transaction.timeout.ms": 60_000, "partitioner": "murmur2_random", "queue.buffering.max.messages": 200_000}
"""Settings that others may replace. The partitioner is that of Java's producers."""


class Transactions:
    """The producer of the drain into a topic."""

    def __init__(self, cluster: Cluster, topic: str) -> None:
        self._cluster, self._topic, self._library = cluster, topic, cluster.library
        self._failed: Any = None
        """The first error of a message of this transaction, as the client has told it."""
        self._began = 0.0
        own = {"transactional.id": f"{PREFIX}{topic}", "delivery.report.only.error": True, "on_delivery": self._note}
        self._producer: Any = cluster.producer(own, DEFAULTS)
        self._limit = float(cluster.settings.get("transaction.timeout.ms", DEFAULTS["transaction.timeout.ms"])) / 1000

    def open(self) -> None:
        """Fences an older drain, and ends the transaction that it has begun."""
        if (error := self._unanswered(self._producer.init_transactions, REQUEST_SECONDS)) is not None:
            raise self._failure(error) from error

    def begin(self) -> None:
        """Begins a transaction."""
        self._failed, self._began = None, time.monotonic()
        try:
            self._producer.begin_transaction()
        except self._library.KafkaException as error:
            raise self._failure(error) from error

    def send(self, messages: Iterable[Message]) -> None:
        """Sends messages; the partition is that of the key."""
        produce, topic = self._producer.produce, self._topic
        for key, value in messages:
            try:
                produce(topic, value, key)
            except BufferError:
                self._produce(topic, value, key=key)
            except self._library.KafkaException as error:
                raise self._failure(error) from error

    def send_to(self, topic: str, partition: int, message: Message, headers: Any = None) -> None:
        """Sends one message into a partition."""
        self._produce(topic, message[1], key=message[0], partition=partition, headers=headers or [])

    def flush(self) -> None:
        """Returns when the brokers have all messages that were sent."""
        while True:
            error = self._error_of(self._producer.flush, _STEP_SECONDS) or self._failed
            if error is not None:
                raise self._failure(error)
            if not len(self._producer):
                return
            if self._left() <= 0:
                raise self._expired()

    def commit(self) -> None:
        """Commits. If this raises, whether the transaction is committed is known to the next drain.

        Law (*once*): a commit whose answer is lost is asked for again; the brokers commit a transaction once, and do
        not end one that they have committed. So the answer may come after the transaction's time limit.
        """
        self.flush()
        seconds = max(self._left(), REQUEST_SECONDS)
        if self._unanswered(self._producer.commit_transaction, seconds):
            raise self._cluster.unavailable(
                f"The brokers have not answered for {seconds:.0f} s whether a transaction is committed. The next drain "
                "finds that out; each row is in the topic once all the same."
            )

    def abort(self) -> None:
        """Ends the transaction without its messages, if the brokers can be reached; else they end it some time."""
        self._error_of(self._producer.purge)
        self._error_of(self._producer.abort_transaction, _ABORT_SECONDS)

    def close(self) -> None:
        """Frees the connections."""
        self._producer = None

    def _produce(self, topic: str, value: bytes, **where: Any) -> None:
        """Sends a message; waits while the client's buffer is full."""
        while not self._produced(topic, value, **where):
            self._poll()

    def _produced(self, topic: str, value: bytes, **where: Any) -> bool:
        """Sends a message; False if the client's buffer is full, or the client does not know the partition yet."""
        try:
            self._producer.produce(topic, value, **where)
        except BufferError:
            return False
        except self._library.KafkaException as error:
            if error.args[0].name() != "_UNKNOWN_PARTITION":
                raise self._failure(error) from error
            self._learn(topic)
            return False
        return True

    def _learn(self, topic: str) -> None:
        """Asks the brokers for the partitions of a topic, to which some may have been added."""
        if (error := self._error_of(self._producer.list_topics, topic, REQUEST_SECONDS)) is not None:
            raise self._failure(error) from error

    def _poll(self) -> None:
        if (error := self._error_of(self._producer.poll, 0.1)) is not None:
            raise self._failure(error) from error
        if self._failed is not None:
            raise self._failure(self._failed)
        if self._left() <= 0:
            raise self._expired()

    def _unanswered(self, call: Any, seconds: float) -> Any:
        """Makes a call, and repeats it for so many seconds; returns the last error if the brokers never answered."""
        deadline = time.monotonic() + seconds
        while (error := self._error_of(call, _STEP_SECONDS)) is not None:
            if not error.args[0].retriable():
                raise self._failure(error) from error
            if time.monotonic() > deadline:
                return error
        return None

    def _error_of(self, call: Any, *arguments: Any) -> Any:
        """Makes a call in which the client calls back; returns its error, if it has failed."""
        try:
            call(*arguments)
        except self._library.KafkaException as error:
            return error
        except SystemError:  # the client's, if a fatal error comes up while it calls back
            if (fatal := self._fatal()) is None:
                raise
            return fatal
        return None

    def _fatal(self) -> Any:
        """The fatal error of the producer, with which it refuses each further transaction; None if there is none."""
        try:
            self._producer.begin_transaction()
        except self._library.KafkaException as error:
            return error if error.args[0].fatal() else None
        return None

    def _left(self) -> float:
        """How many seconds the transaction may still take."""
        return self._began + self._limit - time.monotonic()

    def _note(self, error: Any, _: Any) -> None:
        if error is not None and self._failed is None and not error.name().startswith("_PURGE"):
            self._failed = error

    def _failure(self, error: Any) -> RowtimeError:
        if self._began and self._left() <= 0:
            return self._expired()
        return self._cluster.failure(self._fatal() or self._failed or error)

    def _expired(self) -> RowtimeError:
        return self._cluster.unavailable(
            f"A transaction has taken longer than {self._limit:.0f} s (transaction.timeout.ms), so the brokers end it. "
            "Commit fewer rows at a time (--max-rows), or raise that setting."
        )
