"""KafkaBounds: a producer of Kafka whose bounds lie in a stream beside the topic."""

import threading
import time
from datetime import timedelta, tzinfo
from functools import partial
from typing import Any

from spark_rowtime.bounds.bound import RowtimeBound
from spark_rowtime.bounds.topic_cut import require_same_topics
from spark_rowtime.errors import (
    InvalidOptionError,
    KafkaUnavailableError,
    RowtimeError,
    SchemaMismatchError,
    SinkClosedError,
)
from spark_rowtime.kafka.client import admin_of, library, unavailable
from spark_rowtime.kafka.deliveries import Deliveries, OnDelivery
from spark_rowtime.kafka.topics import Topics
from spark_rowtime.producer.block import BlockEnd
from spark_rowtime.producer.fork_guard import refuse_in_forks
from spark_rowtime.producer.late_log import late_before_sent
from spark_rowtime.producer.sink import StreamSink
from spark_rowtime.types.arguments import known_keywords
from spark_rowtime.types.timestamps import SECOND_MICROS, to_micros, to_required_interval

CONTACT_SECONDS = 0.05
"""For so long rows are judged by the bound in force that was seen last."""
POLL_SECONDS = 0.1
"""How long one wait for deliveries takes at most."""
_ADMIN = " If they ask for TLS or a user, give rt.KafkaBounds(admin=AdminClient(...)) with them."


class KafkaBounds(BlockEnd):
    """Sends rows to a Kafka topic through a confluent-kafka producer, and their bounds into a stream beside it.

    It refuses a late row before it is sent. A bound is sent when the broker has every message that was produced before
    it, with their offsets as its cut. The first bound follows all messages that the topic has by then, also those of an
    earlier process; so a restart under the same name goes on where the last process ended.

    All messages of this producer to the topic go through this object. It is thread-safe. A child made by fork cannot
    use it, nor the client of Kafka. The sink belongs to it: rows and bounds go through this object alone, and ``close``
    closes the sink. The producer does not.

    It is a context manager: leaving the block calls ``close``, or ``abandon`` after an error.

    Example:
        with rt.KafkaBounds(producer, "orders", rt.openSink("orders-bounds.rowtime", producer="app")) as orders:
            orders.produce(b'{"units": 3}', rowtime="2026-01-05T09:58:00Z")
            orders.sendRowtimeBound("2026-01-05T10:00:00Z")
    """

    @known_keywords
    def __init__(
        self, producer: Any, topic: str, sink: StreamSink, *, admin: Any = None, timeout: str | timedelta = "30 seconds"
    ) -> None:
        """Opens the bounds beside a topic.

        Args:
            producer: A ``confluent_kafka.Producer``, best with ``enable.idempotence``: then a message that was not
                delivered cannot arrive later.
            topic: The name of the topic. It must be there.
            sink: The sink of the stream for the bounds, as ``openSink`` returns it.
            admin: A ``confluent_kafka.admin.AdminClient`` for the same broker. Left out: one without TLS and without a
                user, which asks the brokers that the producer knows.
            timeout: How long a call waits for the broker.

        Raises:
            ExtraNotInstalledError: confluent-kafka is not installed.
            KafkaTopicError: There is no such topic, or it was deleted and created again.
            KafkaUnavailableError: The broker cannot be reached.
        """
        self._producer, self.topic, self._sink = producer, topic, sink
        self._seconds = to_required_interval(timeout, "timeout") / SECOND_MICROS
        self._topics = self._asked(admin)
        self._id = self._topics.describe(topic).id
        self._deliveries, self._follows_all = Deliveries(), False
        self._lock, self._one_bound = threading.Lock(), threading.Lock()
        refuse_in_forks(self, "KafkaBounds", "_lock", "_one_bound")
        self._floor = self._promising = 0
        self._closing, self._contact_until = False, 0.0

    def produce(
        self,
        value: str | bytes | None = None,
        *,
        rowtime: Any,
        key: str | bytes | None = None,
        tz: str | tzinfo | None = None,
        on_delivery: OnDelivery | None = None,
        **more: Any,
    ) -> None:
        """Produces one message, unless it is late.

        Args:
            value: The message.
            rowtime: Its rowtime, in any form that ``sendRow`` takes. The message itself must have it too, since a query
                reads it there.
            key: The key of the message.
            tz: The time zone of a time without one; None: UTC.
            on_delivery: Called with an error and the message once the broker has it, or does not take it.
            more: Further arguments of ``confluent_kafka.Producer.produce``: ``partition``, ``headers``, ``timestamp``.

        Raises:
            LateRowError: The rowtime lies below the bound in force. Nothing was produced.
            SinkClosedError: The sink is closed, or another thread closes it.
            ProducerFencedError: Another sink took the producer over.
            KafkaUnavailableError: The client's queue was full for the whole timeout; or the client does not take the
                message, as where its transaction has not begun, or the topic has no such partition.
            SchemaMismatchError: The message is larger than the client allows.
        """
        micros, deadline = to_micros(rowtime, tz), time.monotonic() + self._seconds
        while not self._produced(micros, on_delivery, {"value": value, "key": key, **more}):
            if time.monotonic() >= deadline:
                raise self._full()
            self._producer.poll(POLL_SECONDS)
        self._producer.poll(0)

    def sendRowtimeBound(self, t: Any, strict: bool = False, tz: str | tzinfo | None = None) -> None:
        """Promises that every later row of this producer is at or after ``t``, once the broker has all earlier ones.

        From the beginning of the call on, rows below the bound are late.

        Args:
            t: The time, as for ``StreamSink.sendRowtimeBound``.
            strict: If True, every later row is after ``t``, not at it.
            tz: The time zone of a time without one; None: UTC.

        Raises:
            KafkaUnavailableError: Messages were not delivered, or not within the timeout. The bound was not sent.
                Produce the messages that failed again, then send the bound.
            KafkaTopicError: The topic was deleted and created again.
            BoundRegressionError: The bound is weaker than what was promised.
            InvalidOptionError: The producer does not tell the offsets of its messages (acks=0).
            SinkClosedError: The sink is closed.
            ProducerFencedError: Another sink took the producer over.
        """
        bound = RowtimeBound.inZone(t, strict, tz, None)
        with self._one_bound:
            generation = self._begin(bound.floor)
            try:
                self._sink.sendRowtimeBound(bound, cut=self._cut(generation), topicIds={self.topic: self._id})
            except BaseException:
                self._promising, self._contact_until = 0, 0.0  # the sink may have taken it: the next row asks
                raise
            with self._lock:
                self._floor, self._promising = max(self._floor, bound.floor), 0

    def getRowtimeBound(self) -> RowtimeBound | None:
        """Returns the bound below which a row is late; None while there is none."""
        return self._sink.getRowtimeBound()

    def flush(self, checkpoint: str | None = None) -> str:
        """Waits until the broker has all messages, and commits all bounds that were sent.

        Args:
            checkpoint: A text that the sink stores in the same commit; None: no checkpoint.

        Returns:
            The token of ``StreamSink.flush``.
        """
        with self._one_bound:
            self._await(self._deliveries.begin())
        return self._sink.flush(checkpoint)

    def close(self, *, complete: bool = False) -> None:
        """Waits until the broker has all messages; then the producer leaves the stream behind them.

        From the beginning of the call on, ``produce`` is refused, unless ``close`` raises.

        Args:
            complete: If True, the producer will never send again.
        """
        if self._sink.closed:
            return
        with self._one_bound:
            try:
                cut = self._cut(self._begin_close())
                self._sink.close(complete=complete, cut=cut, topicIds={self.topic: self._id})
            finally:
                self._closing = False

    def abandon(self) -> None:
        """Ends this object, but the producer stays attached: it holds the bound back until it is taken over."""
        self._sink.abandon()

    def _asked(self, admin: Any) -> Topics:
        """Asks the brokers about the topic with the caller's client, or with one of its own."""
        failed = partial(unavailable, "", advice=_ADMIN, topic=self.topic)
        if admin is None:
            try:
                admin = admin_of(self._producer, self.topic, self._seconds)
            except library().KafkaException as error:
                raise failed(error, f"Reading the description of topic {self.topic!r}") from error
        return Topics(admin, failed, seconds=self._seconds)

    def _produced(self, micros: int, on_delivery: OnDelivery | None, message: dict[str, Any]) -> bool:
        """Gives a message to the client; returns False if its queue is full."""
        with self._lock:
            self._require_in_time(micros)
            generation, arrived = self._deliveries.sent(on_delivery)
            try:
                self._producer.produce(self.topic, on_delivery=arrived, **message)
            except BufferError:
                self._deliveries.not_sent(generation)
                return False
            except BaseException as error:
                self._deliveries.not_sent(generation)
                if isinstance(error, library().KafkaException):
                    raise self._not_taken(error.args[0]) from error
                raise
            return True

    def _require_in_time(self, micros: int) -> None:
        if self._closing:
            raise SinkClosedError(
                f"The bounds of producer {self._sink.producer!r} are being closed. Nothing of this call was produced. "
                "Open a sink again under its name to continue.",
                producer=self._sink.producer,
            )
        if micros < self._promising:
            raise late_before_sent(self._sink.producer, micros, self._promising, None)
        if self._sink.closed or micros < self._floor or time.monotonic() >= self._contact_until:
            self._floor = self._sink.requireInTime(micros)
            self._contact_until = time.monotonic() + CONTACT_SECONDS

    def _begin(self, floor: int) -> int:
        """Begins a bound: rows below ``floor`` are late from here on. Returns the generation of messages before it."""
        with self._lock:
            self._promising = floor
            return self._deliveries.begin()

    def _begin_close(self) -> int:
        """Begins the end: a message that is produced from here on would lie behind the last cut. As ``_begin``."""
        with self._lock:
            self._closing = True
            return self._deliveries.begin()

    def _cut(self, generation: int) -> dict[str, dict[int, int]]:
        """Returns the cut behind all messages up to ``generation``, once the broker has them."""
        self._await(generation)
        if self._deliveries.tells_no_offsets:
            raise self._not_told("does not tell the offset of any message, as with acks=0. Set acks=all")
        if not self._follows_all or self._deliveries.take_back():
            now = self._topics.describe(self.topic)
            require_same_topics({self.topic: self._id}, {self.topic: now.id})
            ends = self._topics.ends(now.parts, committed=False)  # messages of open transactions may be committed later
            self._deliveries.reach({part.number: end for part, end in ends.items()})
            self._follows_all = True
        return {self.topic: self._deliveries.ends()}

    def _await(self, generation: int) -> None:
        deadline = time.monotonic() + self._seconds
        while waiting := self._deliveries.waiting(generation):
            if time.monotonic() >= deadline:
                if not len(self._producer):
                    raise self._not_told("has not told of all messages. Leave delivery.report.only.error out")
                raise KafkaUnavailableError(
                    f"The broker has not acknowledged {waiting} message(s) to topic {self.topic!r} within "
                    f"{self._seconds:g} s. No bound was sent. Check that it runs, and that the topic is still "
                    "there; then call again.",
                    topic=self.topic,
                )
            self._producer.flush(POLL_SECONDS)
        if failed := self._deliveries.take_failed():
            self._follows_all = False  # one of them may have arrived nevertheless
            raise KafkaUnavailableError(
                f"{len(failed)} message(s) to topic {self.topic!r} were not delivered, the first because of "
                f"{failed[0]}. No bound was sent. Produce them again (on_delivery says which they are), and call "
                "again.",
                topic=self.topic,
                code=failed[0].partition(":")[0],
            )

    def _not_taken(self, error: Any) -> RowtimeError:
        text = (
            f"Kafka's client has not taken a message to topic {self.topic!r}: {error.name()} ({error.str()}). Nothing "
            "of this call was produced, and no bound waits for it."
        )
        if error.code() == library().KafkaError.MSG_SIZE_TOO_LARGE:
            return SchemaMismatchError(
                f"{text} Raise message.max.bytes of the producer and max.message.bytes of the topic, or send less.",
                topic=self.topic,
            )
        return KafkaUnavailableError(f"{text} Mend the cause, then produce again.", topic=self.topic, code=error.name())

    def _not_told(self, what: str) -> InvalidOptionError:
        return InvalidOptionError(
            f"The producer of topic {self.topic!r} {what}: a bound needs the offset of each message before it. "
            "No bound was sent.",
            option="producer",
        )

    def _full(self) -> KafkaUnavailableError:
        return KafkaUnavailableError(
            f"The queue of the client for topic {self.topic!r} was full for {self._seconds:g} s. Nothing of this call "
            "was produced. Check that the broker runs, or raise queue.buffering.max.messages.",
            topic=self.topic,
        )
