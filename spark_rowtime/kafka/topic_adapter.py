"""TopicAdapter: the part of an adapter that follows topics, whatever it keeps of their messages."""

import re
from collections.abc import Callable, Container, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from functools import partial
from typing import Any, ClassVar

from spark_rowtime.adapter.sinks import Sinks
from spark_rowtime.bounds.members import Status
from spark_rowtime.errors import InvalidOptionError, KafkaTopicError, KafkaUnavailableError, ProducerFencedError
from spark_rowtime.kafka.alignment import Alignment
from spark_rowtime.kafka.checkpoint import Checkpoint, replaced
from spark_rowtime.kafka.client import (
    REQUEST_SECONDS,
    ConnectionErrors,
    client_options,
    new_client,
    plaintext_advice,
    unavailable,
)
from spark_rowtime.kafka.client_failures import RECEIVED_BYTES
from spark_rowtime.kafka.consumption import Consumption
from spark_rowtime.kafka.declaration import Declaration
from spark_rowtime.kafka.decoding import function_named
from spark_rowtime.kafka.from_sql import require_allowed
from spark_rowtime.kafka.partition_reader import PartitionReader
from spark_rowtime.kafka.quiet import QuietPartitions
from spark_rowtime.kafka.topics import Part, Topics, TopicState
from spark_rowtime.kafka.watermarks import FORMATS
from spark_rowtime.producer.sink import StreamSink
from spark_rowtime.store import open_shared_store, open_store
from spark_rowtime.store.base import Store
from spark_rowtime.store.record import WAITED_FOR
from spark_rowtime.types.arguments import to_choice, to_flag, to_text
from spark_rowtime.types.timestamps import SECOND_MICROS, to_interval

Readers = Callable[[Part, Callable[[], StreamSink], str], PartitionReader]
"""Opens the reader of a partition, with what opens its sink, and the id of its topic."""
APPEND_TIME, ROWS = "append-time", "rows"
"""Where bounds come from: the brokers' clock, or the times of messages."""


def bounds_of_messages(bounds: Any, lateness: str | None) -> Any:
    """Where bounds come from: one of the words, or the function that is named. ``lateness`` is for those of rows."""
    if lateness is not None and bounds != ROWS:
        raise InvalidOptionError(
            "lateness is for bounds='rows': otherwise bounds come from messages, or from the brokers' clock, and rows "
            "may come in any order between them. Leave one of the two out.",
            option="lateness",
        )
    return bounds if bounds in (ROWS, APPEND_TIME, *FORMATS) else function_named(bounds, "bounds")


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


class TopicAdapter:
    """Follows the partitions that Kafka assigns to this host; each is a producer, and its offset the checkpoint.

    A subclass says in ``_readers`` what is kept of a message. ``reads``: whether messages are read at all. ``watches``:
    whether bounds alone are kept of them. ``waitsForOthers``: whether it ends with ``untilEnd`` only when other hosts
    have read what there was in their partitions, too. ``declared``: what all hosts have to take for true of the topics.
    """

    schema: ClassVar[Any] = None
    reads = True
    watches: ClassVar[bool] = False
    waitsForOthers = False
    declared: Mapping[str, str] | None = None
    require_allowed = staticmethod(require_allowed)

    def __init__(
        self,
        *,
        servers: str,
        topics: str,
        start: str,
        lost: str,
        idle: str | None,
        untilEnd: bool,
        client: Mapping[str, Any],
    ) -> None:
        self._servers = _without_users(to_text(servers, "servers"))
        self._pattern = _pattern(to_text(topics, "topics"))
        self._topics = _names(topics) if self._pattern is None else []
        self._latest = to_choice(start, "start", "earliest", "latest") == "latest"
        self._skips_lost = to_choice(lost, "lost", "fail", "skip") == "skip"
        self._idle = to_interval(idle, "idle")
        self._until_end = to_flag(untilEnd, "untilEnd")
        self._client = client_options(client, REFUSED)
        self._most_ahead: int | None = None
        """How many microseconds a partition may be ahead of the stream before it is paused; None: without a limit."""
        self._delay: int | None = None
        """By how many microseconds a message may be seen after its time; None: that is not known."""

    def _readers(self, store: Store) -> Readers:
        raise NotImplementedError

    def _stamped(self, topics: Topics) -> Sequence[str]:
        """The topics whose messages have the brokers' time, as far as that matters."""
        del topics
        return []

    def runProducers(self, sinks: Sinks) -> None:
        """Follows the partitions that Kafka assigns to this host."""
        with open_store(sinks.path) as store:
            stream, readers = store.stream, self._readers(store)
        base = {"bootstrap.servers": self._servers, **self._client}
        topics = _topics(self._servers, base)
        if self._pattern is not None:
            self._topics = self._matching(topics)
            self._require_there(sinks, self._pattern)
        known = {name: topics.describe(name) for name in self._topics}
        stamped = {*self._stamped(topics)}
        options = {"group.id": f"rowtime-{stream}", **_CONSUMER_DEFAULTS, **base, **_CONSUMER}
        declaration = None if self.declared is None else self._declaration(sinks, topics, options["group.id"])
        self._store_starts(sinks, topics, known)
        if declaration is not None:
            declaration.require()
        others = partial(self._reached, sinks, self._all_ends(topics, known)) if self.waitsForOthers else None
        consumption = Consumption(
            options,
            topics,
            known,
            partial(self._open, sinks, topics, known, readers, declaration),
            QuietPartitions(
                topics, self._delay, None if self._idle is None else self._idle / SECOND_MICROS, stamped=stamped
            ),
            skips_lost=self._skips_lost,
            until_end=self._until_end,
            reads=self.reads,
            discover=partial(self._discovered, topics, known),
            attach=partial(self._attach, sinks, topics, stamped),
            alignment=None if self._most_ahead is None else Alignment(self._most_ahead, partial(_floor, sinks)),
            others=others,
            assigned=(lambda: None) if declaration is None else partial(declaration.compare, known),
        )
        consumption.run()

    def _declaration(self, sinks: Sinks, topics: Topics, group: str) -> Declaration:
        assert self.declared is not None
        declaration = Declaration(sinks, self.declared, partial(topics.has_members, group, self._topics))
        declaration.look(self._topics)
        return declaration

    def _all_ends(self, topics: Topics, known: Mapping[str, TopicState]) -> dict[Part, int]:
        return topics.ends([part for topic in known.values() for part in topic.parts], committed=True)

    def _reached(self, sinks: Sinks, ends: Mapping[Part, int], own: Container[Part]) -> bool:
        """Whether the stream has all partitions but ``own`` up to their ends: other hosts have read them."""
        with open_store(sinks.path) as store:
            found = {part: store.producer(part.producer) for part in ends if part not in own}
        texts = {part: None if info is None else info.checkpoint for part, info in found.items()}
        return all(text and Checkpoint.read(text, part.producer).offset >= ends[part] for part, text in texts.items())

    def _matching(self, topics: Topics) -> list[str]:
        """The topics that the pattern matches; KafkaTopicError if there is none."""
        assert self._pattern is not None
        if found := topics.matching(self._pattern):
            return found
        raise KafkaTopicError(
            f"No topic at Kafka's brokers {self._servers} has a name that {self._pattern.pattern!r} matches as a "
            "whole. Check the pattern, and the rights of this client.",
            topic=self._pattern.pattern,
            servers=self._servers,
        )

    def _require_there(self, sinks: Sinks, pattern: "re.Pattern[str]") -> None:
        """Raises KafkaTopicError if the stream waits for partitions of a topic that is gone and that matches."""
        with open_store(sinks.path) as store:
            infos = store.snapshot().producers
        for name, info in infos.items():
            part = Part.of_producer(name)
            if part is None or part.topic in self._topics or not pattern.fullmatch(part.topic):
                continue
            if info.status not in WAITED_FOR:  # it holds nothing back
                continue
            with suppress(InvalidOptionError):  # another program has sent under this name
                found = Checkpoint.read(info.checkpoint or "", name)
                if found.watched == self.watches:
                    raise replaced(part, found.topic_id, found.offset, None, advice=_CLOSE.format(name))

    def _discovered(self, topics: Topics, known: Mapping[str, TopicState]) -> dict[str, TopicState]:
        """The topics that the pattern matches and that came since; none without a pattern."""
        names = [] if self._pattern is None else topics.matching(self._pattern)
        found = {name: topics.find(name) for name in names if name not in known}
        return {name: state for name, state in found.items() if state is not None}

    def _attach(self, sinks: Sinks, topics: Topics, stamped: set[str], new: dict[str, TopicState]) -> None:
        """Attaches partitions, and topics, that came while others were read; each begins at its start."""
        self._topics, self._latest = list(dict.fromkeys([*self._topics, *new])), False
        stamped.update(self._stamped(topics))
        self._store_starts(sinks, topics, new)

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
                    starts = Checkpoint(known[part.topic].id, offset, watched=self.watches, declared=self.declared)
                    sink.flush(checkpoint=starts.text())

    def _first_offsets(self, sinks: Sinks, topics: Topics, new: list[Part]) -> dict[Part, int]:
        """Where these partitions begin. One of a topic that the stream knows begins at its start.

        So does a topic that has come to others which a pattern matches.

        They keep their order, in which partition 0 is the last one of its topic.
        """
        latest = self._latest and not (self._pattern and any(self._knows(sinks, topic) for topic in self._topics))
        late = [part for part in new if latest and not self._knows(sinks, part.topic)]
        found = {**topics.starts(set(new).difference(late)), **topics.ends(late, committed=True)}
        return {part: found[part] for part in new}

    def _knows(self, sinks: Sinks, topic: str) -> bool:
        """Whether all partitions that the topic had at first are in the stream: partition 0 comes last."""
        with open_store(sinks.path) as store:
            found = store.producer(Part(topic, 0).producer)
        return found is not None and found.checkpoint is not None

    def _unknown(self, sinks: Sinks, topic: TopicState) -> list[Part]:
        """The partitions that the stream does not have; KafkaTopicError if it has others of a topic with another id."""
        with open_store(sinks.path) as store:
            infos = {part: store.producer(part.producer) for part in topic.parts}
        known = {part: info.checkpoint for part, info in infos.items() if info and info.checkpoint is not None}
        for part, text in known.items():
            checkpoint = Checkpoint.read(text, part.producer)
            checkpoint.require_watched(part.producer, watched=self.watches)
            if len(known) < len(topic.parts):
                checkpoint.require_of(topic, part)
        return [part for part in topic.parts if part not in known]

    def _open(
        self,
        sinks: Sinks,
        topics: Topics,
        known: dict[str, TopicState],
        readers: Readers,
        declaration: Declaration | None,
        part: Part,
    ) -> PartitionReader:
        """Takes a partition over. One that was added to the topic gets its start first."""
        with open_store(sinks.path) as store:
            info = store.producer(part.producer)
        if info is None or info.checkpoint is None:
            self._store_starts(sinks, topics, {part.topic: topics.describe(part.topic)})
        feed = readers(part, partial(sinks.open, part.producer), known[part.topic].id)
        if declaration is not None and part.number == 0:
            self._follow(feed, declaration)
        feed.idle = info is not None and info.status is Status.IDLE
        feed.wake()  # until its end is reached again
        return feed

    @staticmethod
    def _follow(feed: PartitionReader, declaration: Declaration) -> None:
        """Begins to follow partition 0, which has the declaration, and says so in its checkpoint."""
        try:
            declaration.compare([feed.part.topic])
        except InvalidOptionError:
            feed.drop()
            raise
        if not feed.followed:
            with suppress(ProducerFencedError):  # by the one whose declaration counts now, which is compared again
                feed.flush()


_CONSUMER_DEFAULTS = {
    "topic.metadata.refresh.interval.ms": 30_000,
    "session.timeout.ms": 10_000,
    RECEIVED_BYTES: 2_147_483_647,  # the largest: a message that does not fit stops all partitions of its broker
}
_CONSUMER = {
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "auto.offset.reset": "error",
    "enable.partition.eof": True,
    "isolation.level": "read_committed",
    "partition.assignment.strategy": "cooperative-sticky",
}


_CLOSE = (
    "If the topic is there, this client may not see it: check its rights. If it stays away, close the producer of each "
    "of its partitions, so that the stream does not wait for them: rowtime close STREAM {}."
)


def _floor(sinks: Sinks) -> int | None:
    """The stream's floor. The sinks have the stream open."""
    with closing(open_shared_store(sinks.path)) as store:
        return store.head().floor


def _without_users(servers: str) -> str:
    if "@" not in servers:
        return servers
    raise InvalidOptionError(
        "servers has a user or a password before '@'. Addresses are printed and logged, so they must not contain "
        "secrets. Give sasl.username and sasl.password as options of the client. (The address is not shown.)",
        option="servers",
    )


def _pattern(topics: str) -> "re.Pattern[str] | None":
    """The pattern of topics that a text is; None for names. As for Kafka's clients, one begins with ``^``."""
    text = topics.strip()
    if not text.startswith("^"):
        return None
    try:
        return re.compile(text)
    except re.error as error:
        raise InvalidOptionError(f"topics={topics!r} is no pattern: {error}.", option="topics", value=topics) from None


def _names(topics: str) -> list[str]:
    names = [name.strip() for name in topics.split(",") if name.strip()]
    if names:
        return names
    raise InvalidOptionError(
        f"topics={topics!r} names no topic. Write their names, with commas between them, or a pattern that begins with "
        "'^'.",
        option="topics",
        value=topics,
    )


def _topics(servers: str, options: Mapping[str, Any]) -> Topics:
    """Asks the brokers with a client of its own, whose errors of connections say why a question has failed."""
    errors = ConnectionErrors()
    admin = new_client("admin", {**options, "error_cb": errors})

    def failed(error: Any, what: str) -> KafkaUnavailableError:
        admin.poll(0)
        last = errors.last or error
        return unavailable(servers, last, what, advice=plaintext_advice(options, last))

    return Topics(admin, failed, servers, REQUEST_SECONDS)
