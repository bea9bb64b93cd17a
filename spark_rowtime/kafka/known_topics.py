"""KnownTopics: whether the topics of a host are still those that they were, and which came since."""

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import TypeAlias

from spark_rowtime.kafka.checkpoint import replaced
from spark_rowtime.kafka.partition_reader import PartitionReader
from spark_rowtime.kafka.topics import Part, Topics, TopicState

TOPIC_LOOK_SECONDS = 1.0
"""Seconds between two looks at the topics that are known."""
NEW_TOPICS_SECONDS = 30.0
"""Seconds between two looks for topics that came since, for which the brokers list all that they have."""

_Answer: TypeAlias = tuple[dict[str, TopicState | None], dict[str, TopicState]]
"""The topics that are known, None for one that is gone, and those that came since, if it was asked for them."""


class KnownTopics:
    """The topics that a host reads. ``feeds``: the partitions that it has, which change.

    ``discover`` returns topics that came since and are to be read, too.

    Law: a topic that was deleted and created again is another one: offsets of the two say nothing about each other.
    """

    def __init__(
        self,
        topics: Topics,
        known: dict[str, TopicState],
        feeds: Mapping[Part, PartitionReader],
        discover: Callable[[], dict[str, TopicState]],
        ask: Callable[[Callable[[], _Answer]], Future[_Answer]],
        now: float,
    ) -> None:
        self._topics, self._known, self._feeds = topics, known, feeds
        self._discover, self._ask, self._looked_at = discover, ask, now
        self._discovered_at = now
        self._answer: Future[_Answer] | None = None
        """The question of the last look, until it is answered."""
        self._asked_at: dict[Part, int] = {}
        """The next offset of each partition when this was asked."""
        self._sure: dict[Part, int] = {}
        """The same of the last question whose answer was that they are; what was read since may be of other topics."""
        self._left_at: dict[Part, int] = {}

    def __getitem__(self, topic: str) -> TopicState:
        return self._known[topic]

    @property
    def names(self) -> list[str]:
        """The names of all of them."""
        return list(self._known)

    def left(self, part: Part, offset: int) -> None:
        """Notes that this host has let a partition go, whose next offset was this."""
        self._left_at[part] = offset

    def add(self, new: Mapping[str, TopicState]) -> None:
        """Takes topics that came since, or have more partitions, among those that are known."""
        self._known |= new

    def look(self, now: float) -> dict[str, TopicState]:
        """Asks from time to time; returns topics that came since, or have more partitions, once that is answered.

        Raises KafkaTopicError if a topic was deleted, or deleted and created again.
        """
        if self._answer is None and now - self._looked_at >= TOPIC_LOOK_SECONDS:
            self._looked_at = now
            self._asked_at, names, discover = self._reached(), self.names, self._discovery(now)
            self._answer = self._ask(lambda: (self._topics.found(names), discover()))
        if self._answer is None or not self._answer.done():
            return {}
        (found, new), self._answer = self._answer.result(), None
        for name, state in found.items():
            self._require_same(name, state)
        self._sure |= self._asked_at
        more = {name: now for name, now in found.items() if now and now.partitions > self._known[name].partitions}
        return {**more, **new}

    def _discovery(self, now: float) -> Callable[[], dict[str, TopicState]]:
        if now - self._discovered_at < NEW_TOPICS_SECONDS:
            return dict
        self._discovered_at = now
        return self._discover

    def require_same(self, name: str) -> None:
        """Asks at once whether a topic is still the same. Raises KafkaTopicError if it is not."""
        self._require_same(name, self._topics.find(name))

    def _require_same(self, name: str, state: TopicState | None) -> None:
        known, found = self._known[name], None if state is None else state.id
        if found != known.id:
            reached = self._left_at | self._reached()
            parts = [part for part in reached if part.topic == name] or known.parts
            part = max(parts, key=lambda part: reached.get(part, 0))
            raise replaced(part, known.id, reached.get(part), found, sure=self._sure.get(part))

    def _reached(self) -> dict[Part, int]:
        """The next offset of each partition that this host has."""
        return {part: feed.next for part, feed in self._feeds.items()}
