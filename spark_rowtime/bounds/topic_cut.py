"""TopicCut: which messages of Kafka topics a bound follows."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from spark_rowtime.errors import CutRegressionError, InvalidOptionError, KafkaTopicError
from spark_rowtime.types.arguments import is_whole
from spark_rowtime.types.json_values import load
from spark_rowtime.types.short_repr import short_repr

Offsets = Mapping[str, Mapping[int, int]]
"""Offsets by topic and partition, as Spark's Kafka source has them. Each is that of the next message."""
LARGEST_OFFSET = (1 << 63) - 1
LARGEST_PARTITION = (1 << 31) - 1
_TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_FORM = '{"orders": {0: 4711, 1: 4690}}: for each partition the offset after the last message that the bound follows'


@dataclass(frozen=True, slots=True)
class TopicCut:
    """The messages of topics that lie before a bound: those below ``offsets``.

    ``ids`` has the ids of topics, as far as they are known: a topic that is deleted and created again has another id.
    ``whole``: the cut names every partition that an earlier cut of its producer has named. Otherwise it adds to them:
    a partition that it does not name stays where it was. ``folded``: it stands in the place of earlier cuts, too.

    Laws, each a property test of the same name in tests/unit/test_topic_cut.py:

    - *merge*: offsets have reached the merge of two cuts exactly when they have reached both.
    - *part*: the merge of a cut and what another cut has ``since`` it is the merge of both.
    - *text*: a cut is read as it was written.
    """

    offsets: Offsets
    ids: Mapping[str, str] = field(default_factory=dict)
    whole: bool = True
    folded: bool = False

    def reached(self, offsets: Offsets) -> bool:
        """Returns whether ``offsets`` are at or beyond the cut in every partition that it names."""
        return all(offsets.get(t, {}).get(p, 0) >= end for t, ends in self.offsets.items() for p, end in ends.items())

    def merged(self, later: "TopicCut") -> "TopicCut":
        """Returns the cut that has both as its past."""
        offsets = {topic: dict(ends) for topic, ends in self.offsets.items()}
        for topic, ends in later.offsets.items():
            known = offsets.setdefault(topic, {})
            known.update({partition: max(end, known.get(partition, 0)) for partition, end in ends.items()})
        return TopicCut(offsets, {**self.ids, **later.ids}, self.whole or later.whole)

    def since(self, earlier: "TopicCut") -> "TopicCut":
        """Returns the part that ``earlier`` does not have: the partitions that are further, or new."""
        found: dict[str, dict[int, int]] = {}
        for topic, ends in self.offsets.items():
            known = earlier.offsets.get(topic, {})
            further = {partition: end for partition, end in ends.items() if end > known.get(partition, -1)}
            if further:
                found[topic] = further
        return TopicCut(found, {t: i for t, i in self.ids.items() if earlier.ids.get(t) != i}, whole=False)

    def within(self, other: "TopicCut") -> "TopicCut":
        """Returns where this one lies in the partitions that ``other`` names; 0 where it names none."""
        offsets = {t: {p: self.offsets.get(t, {}).get(p, 0) for p in ends} for t, ends in other.offsets.items()}
        return TopicCut(offsets, whole=False)

    @property
    def partitions(self) -> int:
        """The number of partitions that the cut names."""
        return sum(map(len, self.offsets.values()))

    def text(self) -> str:
        """The cut as JSON, in the form of Spark's offsets, with the ids of topics beside them."""
        ids = {"topicIds": dict(self.ids)} if self.ids else {}
        marks = {**({} if self.whole else {"whole": False}), **({"folded": True} if self.folded else {})}
        return json.dumps({"offsets": self.offsets, **ids, **marks}, sort_keys=True)

    @classmethod
    def of_text(cls, text: str) -> "TopicCut":
        """Reads what ``text`` gave."""
        found = load(text)
        return cls(
            offsets_of(found["offsets"]),
            found.get("topicIds", {}),
            found.get("whole", True),
            found.get("folded", False),
        )

    def __str__(self) -> str:
        return ", ".join(f"{t}[{p}] at {end}" for t, ends in self.offsets.items() for p, end in sorted(ends.items()))


class CutBound(NamedTuple):
    """A bound that a producer sent, by its ``floor``, and the cut that it follows; None: it is about whole topics."""

    floor: int
    cut: TopicCut | None

    def logged(self, seq: int, producer: str, in_force: int | None) -> "LoggedCut":
        """Returns what the log keeps with the event ``seq`` of this bound. ``in_force``: the floor before it."""
        return LoggedCut(seq, producer, self.floor if self.cut is None else in_force, self.cut)


class LoggedCut(NamedTuple):
    """A cut in the log of a stream. Until offsets have reached it, the producer holds the bound back at ``floor``.

    ``seq``: the event that carries it. ``floor``: that which the producer had to respect before that event; None: it
    had promised nothing. If ``cut`` is None, the producer sent a bound without one, ``floor``: from this event on it
    holds nothing back below that.
    """

    seq: int
    producer: str
    floor: int | None
    cut: TopicCut | None


def merged(sent: Iterable[LoggedCut]) -> TopicCut | None:
    """Returns what lies before all of a producer's cuts; None if there are none."""
    end = None
    for logged in sent:
        if logged.cut is not None:
            end = logged.cut if end is None else end.merged(logged.cut)
    return end


class _Alone(dict[Any, Any]):
    """Offsets of all that a query reads: what else a cut names holds nothing back, as if it were read to its end."""

    def get(self, key: Any, default: Any = None) -> Any:
        del default
        return super().get(key, self._rest)

    _rest: Any = LARGEST_OFFSET


class _AloneByTopic(_Alone):
    _rest = _Alone()


def offsets_of(found: Mapping[str, Mapping[Any, int]], reads: str | None = None) -> Offsets:
    """Returns offsets of Spark's Kafka source, whose JSON has the partitions as texts.

    ``reads``: the source reads no other "topics", or no other "partitions", so a bound that follows messages there
    counts for it without them. None: a topic that is missing may come.
    """
    kind = _Alone if reads == "partitions" else dict
    ends = {topic: kind((int(partition), end) for partition, end in ends.items()) for topic, ends in found.items()}
    return ends if reads is None else _AloneByTopic(ends)


def to_cut(cut: Any, topicIds: Any = None) -> TopicCut:
    """Returns the cut that a caller gave; raises InvalidOptionError for anything else."""
    if not isinstance(cut, Mapping) or not cut:
        raise _no_cut(cut, f"It has the form {_FORM}.")
    return TopicCut({_topic(cut, topic): _ends(cut, topic) for topic in cut}, _ids(topicIds, cut))


def _topic(cut: Any, topic: Any) -> str:
    if not isinstance(topic, str) or not _TOPIC.fullmatch(topic):
        raise _no_cut(
            cut,
            f"{short_repr(topic)} is not the name of a topic, which has letters, digits, '.', '_' and '-', at most "
            f"249. It has the form {_FORM}.",
        )
    return topic


def _ends(cut: Any, topic: Any) -> dict[int, int]:
    ends = cut[topic]
    if not isinstance(ends, Mapping) or not ends:
        raise _no_cut(cut, f"It names no partition of topic {topic!r}. It has the form {_FORM}.")
    for partition, end in ends.items():
        if not is_whole(partition) or not 0 <= partition <= LARGEST_PARTITION:
            raise _no_cut(cut, f"{short_repr(partition)} is not the number of a partition of topic {topic!r}.")
        if not is_whole(end) or not 0 <= end <= LARGEST_OFFSET:
            raise _no_cut(cut, f"{short_repr(end)} is not an offset of {topic}[{partition}].")
    return dict(ends)


def _ids(given: Any, cut: Mapping[Any, Any]) -> dict[str, str]:
    if given is None:
        return {}
    if isinstance(given, Mapping) and all(isinstance(i, str) and i and topic in cut for topic, i in given.items()):
        return dict(given)
    raise InvalidOptionError(
        f"topicIds={short_repr(given)} must have the id, as a text, of topics that the cut names: {sorted(cut)}.",
        option="topicIds",
        value=short_repr(given),
    )


def _no_cut(cut: Any, why: str) -> InvalidOptionError:
    return InvalidOptionError(f"cut={short_repr(cut)} is not a cut. {why}", option="cut", value=short_repr(cut))


def require_forward(before: TopicCut | None, cut: TopicCut, producer: str) -> None:
    """Raises CutRegressionError if a producer's ``cut`` lies below its cuts ``before`` in some partition."""
    if before is None:
        return
    require_same_topics(before.ids, cut.ids)
    for topic, ends in cut.offsets.items():
        for partition, end in ends.items():
            said = before.offsets.get(topic, {}).get(partition, 0)
            if end < said:
                raise CutRegressionError(
                    f"The cut of producer {producer!r} goes back: {topic}[{partition}] is at {end}, but an earlier "
                    f"cut of this producer was at {said}. Offsets only grow. Check that they are of the same topic "
                    "and brokers. A topic that was deleted and created again needs a new stream of bounds.",
                    producer=producer,
                    topic=topic,
                    partition=partition,
                    offset=end,
                    said=said,
                )


def require_same_topics(before: Mapping[str, str], now: Mapping[str, str]) -> None:
    """Raises KafkaTopicError if a topic has another id ``now`` than it had ``before``. Ids are in any Base64."""
    for topic, found in now.items():
        if _plain(before.get(topic, found)) != _plain(found):
            raise KafkaTopicError(
                f"Topic {topic!r} was deleted and created again: cuts of this stream are about the topic with id "
                f"{before[topic]}, but now its id is {found}. Its offsets began again at 0, so no earlier cut means "
                "anything in it. Create a new stream for the bounds of the new topic, and start a query over it with a "
                "new checkpoint.",
                topic=topic,
                topicId=before[topic],
                foundId=found,
            )


def _plain(topic_id: str) -> str:
    """An id as librdkafka writes it. Java's client writes the same id in the Base64 that URLs allow."""
    return topic_id.replace("-", "+").replace("_", "/")
