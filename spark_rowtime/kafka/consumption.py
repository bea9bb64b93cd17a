"""Consumption: reads the partitions that Kafka assigns to this host, and hands them over when Kafka takes them."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from operator import methodcaller
from typing import Any

from spark_rowtime.errors import MessageNotReadyError, ProducerFencedError, RowtimeError
from spark_rowtime.kafka.alignment import Alignment
from spark_rowtime.kafka.checkpoint import Checkpoint
from spark_rowtime.kafka.client import LOG, library, new_client, unavailable
from spark_rowtime.kafka.client_failures import PASSING_READS, RECEIVED_BYTES, ClientFailures
from spark_rowtime.kafka.group_offsets import GroupOffsets
from spark_rowtime.kafka.group_wait import POLL_SECONDS as GROUP_POLL_SECONDS
from spark_rowtime.kafka.group_wait import GroupWait
from spark_rowtime.kafka.inquiry import in_background
from spark_rowtime.kafka.known_topics import KnownTopics
from spark_rowtime.kafka.lost_messages import LostMessages
from spark_rowtime.kafka.partition_reader import PartitionReader
from spark_rowtime.kafka.quiet import QuietPartitions
from spark_rowtime.kafka.topics import Part, Topics, TopicState
from spark_rowtime.kafka.waits import Waits

BATCH_MESSAGES = 20_000
POLL_SECONDS = 0.05
"""The longest wait for a batch of messages."""
UNREAD_POLL_SECONDS = 0.5
"""The same where no messages are read: the wait for what Kafka says about the partitions."""
SETTLE_SECONDS = 15.0
"""How long a host that was fenced waits for Kafka to take the partition from it. Longer than a session's timeout."""
OTHERS_SECONDS = 0.5
"""Seconds between two looks at how far other hosts have read."""
CONTEST_SECONDS = 120.0
"""If a partition that was taken back is taken over again within so many seconds, there is a second consumer group."""


class Consumption:
    """The loop of a host. ``open_feed`` opens a partition's producer; ``skips_lost``: see KafkaFeed's ``lost``.

    ``reads``: whether messages are read. Otherwise Kafka shares out the partitions, and the brokers' ends are enough.
    ``alignment`` says which partitions are not read for a while; None: all are.
    ``discover`` returns topics that came since and are to be read, too; ``attach`` is called before they are, and
    where a topic has got more partitions. With
    ``until_end``, ``others`` says whether other hosts have read all but the given partitions; None: they are not waited
    for. ``assigned`` is called when Kafka has given partitions, also none; what it raises ends the host.
    """

    def __init__(
        self,
        options: Mapping[str, Any],
        topics: Topics,
        known: dict[str, TopicState],
        open_feed: Callable[[Part], PartitionReader],
        quiet: QuietPartitions,
        *,
        skips_lost: bool,
        until_end: bool,
        reads: bool = True,
        discover: Callable[[], dict[str, TopicState]] = dict,
        attach: Callable[[dict[str, TopicState]], object] = len,
        alignment: Alignment | None = None,
        others: Callable[[Iterable[Part]], bool] | None = None,
        assigned: Callable[[], object] = lambda: None,
        ask: Callable[[Callable[[], Any]], Future[Any]] = in_background,
    ) -> None:
        self._reads, self._attach = reads, attach
        self._alignment, self._others, self._assigned = alignment, others, assigned
        self._others_done, self._looked_at_others = others is None, 0.0
        self._poll_seconds = POLL_SECONDS if reads else UNREAD_POLL_SECONDS
        self._topics, self._open, self._quiet = topics, open_feed, quiet
        self._skips_lost, self._until_end = skips_lost, until_end
        self._ends: dict[Part, int] = {}
        self._feeds: dict[Part, PartitionReader] = {}
        self._known = KnownTopics(topics, known, self._feeds, discover, ask, time.monotonic())
        self._unchecked: set[Part] = set()
        """The partitions that are read, without a question yet whether they still have what was read before."""
        self._checking: set[Part] = set()
        """Those of which this was asked; the next message, or error, comes after the answer."""
        self._fenced: dict[Part, float] = {}
        self._taken_back: dict[Part, float] = {}
        """When this host took each partition back."""
        self._waits = Waits()
        self._failure: Exception | None = None
        self._assigned_at: float | None = None
        """When Kafka last told this host which partitions it has, which may be none; None: not yet."""
        self._group, self._kafka = options.get("group.id", ""), library()
        self._client_failures = ClientFailures(topics.servers, options.get(RECEIVED_BYTES))
        self._consumer = new_client("consumer", {**options, "error_cb": self._client_failures})
        self._offsets = GroupOffsets(self._consumer, self._feeds)
        poll_seconds = float(options.get("max.poll.interval.ms", GROUP_POLL_SECONDS * 1000)) / 1000
        self._group_wait = GroupWait(topics.servers, self._group, time.monotonic(), poll_seconds)

    def run(self) -> None:
        """Reads until an error, or with ``until_end`` until all that was there has been read."""
        try:
            self._subscribe()
            while not self._ended():
                self._step()
            self._offsets.tell(self._feeds, wait=True)
        except BaseException as error:
            self._failure = self._failure or (error if isinstance(error, Exception) else RuntimeError("ended"))
            raise
        finally:
            self._leave()

    def _leave(self) -> None:
        """Leaves the consumer group. A client without partitions that only closes stays in it for a session's time."""
        with suppress(self._kafka.KafkaException):
            self._consumer.unsubscribe()
        self._consumer.close()

    def _subscribe(self) -> None:
        """Tells Kafka which topics this host reads; a second call adds topics, and takes no partition away."""
        self._consumer.subscribe(self._known.names, on_assign=self._assign, on_revoke=self._revoke, on_lost=self._lose)

    def _step(self) -> None:
        batches = self._consumed()
        if (failure := self._failed) is not None:
            raise failure
        for part, messages in batches.items():
            self._take(part, messages)
        if batches:
            self._client_failures.received()
        self._learn_ends()
        self._promise_quiet()
        self._keep_up(time.monotonic())

    def _consumed(self) -> Mapping[Part, list[Any]]:
        """The next messages by partition. Errors in their place are met, behind the messages before them."""
        batches: defaultdict[Part, list[Any]] = defaultdict(list)
        checked, part = set[Part](), Part("", -1)
        for message in self._consumer.consume(BATCH_MESSAGES, self._poll_seconds):
            if message.partition() != part.number or message.topic() != part.topic:  # most are of the last one's
                part = Part(message.topic(), message.partition())
            if self._unchecked and part in self._unchecked and self._is_read(message):
                self._check(part)
                checked.add(part)
            if checked and part in checked:  # it comes again
                continue
            if self._checking:
                self._checking.discard(part)
            if message.error() is None:
                batches[part].append(message)
            else:
                self._take(part, batches.get(part, []))  # what came before the error is there, whatever it says
                self._event(part, message)
        return batches

    def _promise_quiet(self) -> None:
        """Lets partitions to whose end this host has read promise a time."""
        paused = () if self._alignment is None else self._alignment.paused
        self._quiet.look(list(self._feeds.values()), self._guarded, paused)
        for part, feed in list(self._feeds.items()):
            if feed.shorter:
                self._out_of_range(part, feed)

    def _keep_up(self, now: float) -> None:
        """Does what is due by now, whether or not messages came."""
        self._flush(feed for feed in self._feeds.values() if feed.due(now))
        self._offsets.keep_up(now)
        if new := self._known.look(now):
            self._read_new(new)
        self._settle(now)
        self._go_on(now)
        self._align()
        if self._assigned_at is None:
            self._group_wait.look(now, self._client_failures.last)

    def _read_new(self, topics: dict[str, TopicState]) -> None:
        """Reads topics, and partitions, that came since, too."""
        LOG.info("New topics, or topics with new partitions, are read, too: %s", ", ".join(topics))
        self._attach(topics)
        self._known.add(topics)
        self._subscribe()

    @property
    def _failed(self) -> Exception | None:
        """With what this host ends."""
        return self._failure or self._client_failures.first

    def _is_read(self, message: Any) -> bool:
        """Whether the client reads the partition: it has a message, or has met the end."""
        error = message.error()
        return error is None or error.code() == self._kafka.KafkaError._PARTITION_EOF  # noqa: SLF001

    def _check(self, part: Part) -> None:
        """Has the client ask whether the partition still has what was read, and read on; it tells if not.

        The client asks where it is given an epoch with an offset, and takes that only of a partition that it reads.
        """
        self._unchecked.discard(part)
        self._checking.add(part)
        last = self._feeds[part].last
        assert last is not None, "a partition is checked if there is something to compare"
        try:
            self._consumer.seek(self._kafka.TopicPartition(*part, last.end, leader_epoch=last.epoch))
        except self._kafka.KafkaException as error:
            raise unavailable(self._topics.servers, error, f"Reading {part.producer}") from error

    def _learn_ends(self) -> None:
        """Notes the end of each partition that the client knows from its last answer; it is not asked for."""
        for part, feed in self._feeds.items():
            _, end = self._consumer.get_watermark_offsets(self._kafka.TopicPartition(*part), cached=True)
            feed.known_end = max(end, 0)

    def _take(self, part: Part, messages: list[Any]) -> None:
        """Sends the rows of messages, unless the partition waits for one before them, and clears the list."""
        if messages and part not in self._waits:
            self._guarded(part, methodcaller("take", messages))
        messages.clear()

    def _flush(self, feeds: Iterable[PartitionReader]) -> None:
        for feed in list(feeds):
            self._guarded(feed.part, methodcaller("flush"))

    def _guarded(self, part: Part, action: Callable[[PartitionReader], object]) -> None:
        """Does something with a partition. One that another host has taken over is let go."""
        feed = self._feeds.get(part)
        if feed is None:
            return
        try:
            action(feed)
        except MessageNotReadyError as error:
            self._wait(part, feed, error)
        except ProducerFencedError as error:
            if time.monotonic() - self._taken_back.get(part, -CONTEST_SECONDS) < CONTEST_SECONDS:
                raise
            LOG.warning("Another host has taken over %s; this one lets it go: %s", part.producer, error)
            self._release(part)
            self._fenced[part] = time.monotonic()

    def _wait(self, part: Part, feed: PartitionReader, error: MessageNotReadyError) -> None:
        """Lets a partition wait whose next message cannot be decoded just now."""
        self._waits.begin(feed, time.monotonic(), error)
        feed.end = None
        self._consumer.pause([self._kafka.TopicPartition(*part)])

    def _go_on(self, now: float) -> None:
        """Reads the partitions whose pause has passed again from the message for which they wait."""
        for part in self._waits.end(now):
            self._consumer.resume([self._kafka.TopicPartition(*part)])
            self._read_on(self._feeds[part])

    def _align(self) -> None:
        """Pauses the partitions that are far ahead, and goes on with those that no longer are."""
        if self._alignment is not None:
            readers = [feed for part, feed in self._feeds.items() if part not in self._waits]
            self._alignment.look(readers, self._pause, self._resume, ends=self._until_end)

    def _pause(self, parts: list[Part]) -> None:
        self._consumer.pause([self._kafka.TopicPartition(*part) for part in parts])

    def _resume(self, parts: list[Part]) -> None:
        self._consumer.resume([self._kafka.TopicPartition(*part) for part in parts if part in self._feeds])

    def _ended(self) -> bool:
        """Whether all that was there is committed. The last commit may find that another host has taken over."""
        if not self._done():
            return False
        self._flush(feed for feed in self._feeds.values() if self._others is None or feed.pending)
        return self._done() and self._others_have_all()

    def _done(self) -> bool:
        if not self._until_end or self._fenced or self._waits or self._unchecked or self._checking:
            return False
        if not self._feeds and not self._settled():
            return False
        return all(self._has_all(feed, self._ends.get(part, 0)) for part, feed in self._feeds.items())

    def _settled(self) -> bool:
        """Whether other hosts have all partitions, as far as that can be known, or are waited for."""
        waits = 0.0 if self._others is not None else SETTLE_SECONDS
        return self._assigned_at is not None and time.monotonic() - self._assigned_at > waits

    def _others_have_all(self) -> bool:
        now = time.monotonic()
        if self._others is not None and not self._others_done and now - self._looked_at_others >= OTHERS_SECONDS:
            self._looked_at_others = now
            self._others_done = self._others(self._feeds)
        return self._others_done

    def _has_all(self, feed: PartitionReader, end: int) -> bool:
        """Whether a partition was read up to ``end``, and it is known whether it is quiet there, where that counts."""
        if not self._quiet.promises:
            return feed.at_end or feed.next >= end
        return self._quiet.has_answered(feed, end) if feed.at_end else feed.next > end

    def _assign(self, _: Any, partitions: list[Any]) -> None:
        """Kafka's client calls it, within ``consume``. What it raises there would be lost."""
        self._assigned_at = time.monotonic()
        try:
            parts = [Part(p.topic, p.partition) for p in partitions]
            starts = self._start(parts)
            self._assigned()
        except Exception as error:  # noqa: BLE001
            self._failure = self._failure or error
            starts = []
        self._assign_at(starts)

    def _start(self, parts: list[Part]) -> list[Any]:
        if self._until_end:
            self._ends |= self._topics.ends(parts, committed=True)
        found = []
        for part in parts:
            feed = self._feeds[part] = self._opened(part)
            found.append(self._place(feed))
        return found

    def _opened(self, part: Part) -> PartitionReader:
        feed = self._open(part)
        Checkpoint(feed.topic_id, feed.next).require_of(self._known[part.topic], part)
        return feed

    def _revoke(self, _: Any, partitions: list[Any]) -> None:
        for part in [Part(p.topic, p.partition) for p in partitions]:
            if self._failed is None:
                try:
                    self._guarded(part, methodcaller("flush"))
                except Exception as error:  # noqa: BLE001
                    self._failure = error
            self._offsets.tell([part])
            self._release(part)

    def _lose(self, _: Any, partitions: list[Any]) -> None:
        self._assigned_at = None  # Kafka assigns again, if only nothing: until then nobody knows who has them
        self._group_wait.begin(time.monotonic())
        for partition in partitions:
            self._release(Part(partition.topic, partition.partition))

    def _release(self, part: Part) -> None:
        for kept in (self._fenced, self._taken_back):
            kept.pop(part, None)
        for asked in (self._unchecked, self._checking):
            asked.discard(part)
        self._waits.forget(part)
        self._offsets.forget(part)
        if self._alignment is not None:
            self._alignment.forget(part)
        feed = self._feeds.pop(part, None)
        if feed is not None:
            self._known.left(part, feed.next)
            with suppress(RowtimeError):
                feed.drop()

    def _settle(self, now: float) -> None:
        """Takes partitions back that another host took, but that Kafka has left to this one.

        So it is when a host stood still between its assignment and its start. If it happens again soon, there is a
        second consumer group, and the error of the sink is raised.
        """
        for part in [part for part, since in self._fenced.items() if now - since > SETTLE_SECONDS]:
            del self._fenced[part]
            self._taken_back[part] = now
            feed = self._feeds[part] = self._opened(part)
            self._read_on(feed)

    def _event(self, part: Part, message: Any) -> None:
        """An error that comes in the place of a message."""
        error, codes = message.error(), self._kafka.KafkaError
        feed = self._feeds.get(part)
        if error.code() == codes._PARTITION_EOF:  # noqa: SLF001  (the client's own name)
            if feed is not None and part not in self._waits:
                feed.end = message.offset()
        elif error.code() in (codes.OFFSET_OUT_OF_RANGE, codes._AUTO_OFFSET_RESET):  # noqa: SLF001
            self._guarded(part, methodcaller("flush"))  # nobody can read again what came before
            if feed is not None and part in self._feeds:
                self._out_of_range(part, feed, error.str())
        elif error.code() in (codes.UNKNOWN_TOPIC_OR_PART, codes._UNKNOWN_TOPIC, codes._UNKNOWN_PARTITION):  # noqa: SLF001
            self._known.require_same(part.topic)
        elif error.code() in [getattr(codes, name) for name in PASSING_READS]:
            LOG.debug("Reading %s: %s", part.producer, error)
        elif not part.topic:
            lacks = error.code() == codes.GROUP_AUTHORIZATION_FAILED
            advice = " The client needs the right Read on this group." if lacks else ""
            raise unavailable(self._topics.servers, error, f"The consumer group {self._group!r}", advice=advice)
        else:
            raise unavailable(self._topics.servers, error, f"Reading {part.producer}")

    def _out_of_range(self, part: Part, feed: PartitionReader, text: str = "") -> None:
        """The broker does not have what the feed has read, or has others there, or the topic is another one.

        ``text``: what the client says.
        """
        self._known.require_same(part.topic)
        start, end = self._topics.starts([part])[part], self._topics.ends([part], committed=False)[part]
        if feed.shorter and end >= feed.next:  # an old leader's answer
            feed.shorter = False
            return
        if part in self._unchecked and feed.last is not None:
            if feed.last.end > end:  # it was truncated: the client tells where, once it reads the partition
                self._read_on(feed, end)
                return
            if feed.last.end < start <= feed.next:  # only markers of transactions followed the last message
                feed.go_on_at(feed.next)
                self._read_on(feed)
                return
        lost = LostMessages(part, feed.next, start, end, text)
        if not self._skips_lost:
            raise lost.error
        LOG.warning("%s. The stream goes on at offset %s.", lost, lost.on_at)
        feed.go_on_at(lost.on_at)
        self._read_on(feed)

    def _read_on(self, feed: PartitionReader, at: int | None = None) -> None:
        """Has the client read a partition from the next offset, also after an error that has stopped it.

        ``at``: from there, until the partition is checked.
        """
        place = self._place(feed)
        if self._alignment is not None:
            self._alignment.forget(feed.part)  # it is not paused any more
        if at is not None:
            place.offset = at
        self._consumer.incremental_unassign([self._kafka.TopicPartition(*feed.part)])
        self._assign_at([place])

    def _assign_at(self, places: list[Any]) -> None:
        self._consumer.incremental_assign(places)
        if places and not self._reads:
            self._consumer.pause(places)

    def _place(self, feed: PartitionReader) -> Any:
        """Where the client reads a partition: behind the last message that was taken, so that it can be checked."""
        self._unchecked.discard(feed.part)
        self._checking.discard(feed.part)
        if feed.last is None or not self._reads:
            return self._kafka.TopicPartition(*feed.part, feed.next)
        self._unchecked.add(feed.part)
        return self._kafka.TopicPartition(*feed.part, feed.last.end)
