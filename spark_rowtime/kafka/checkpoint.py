"""Checkpoint: how far a partition of a topic has been read into a stream. It is the checkpoint of its producer."""

import json
from collections.abc import Mapping
from typing import NamedTuple

from spark_rowtime.errors import InvalidOptionError, KafkaTopicError
from spark_rowtime.kafka.topics import Part, TopicState
from spark_rowtime.types.json_values import load


class LastRead(NamedTuple):
    """The offset behind the last message that was read, and the epoch of the leader that has written it.

    Law of Kafka: a partition that has no message of this epoch up to there was truncated since.
    """

    end: int
    epoch: int


class Checkpoint(NamedTuple):
    """The id of the topic, the offset of the next message, and the last one that was read, if that is known.

    ``watched``: the stream has bounds of the messages below that, and no rows. ``end``: the end of the partition, as it
    was known then; it is for people, who see by it how far the reader lags. None: nobody has read the partition since
    its start, or what is declared, was written. ``declared``: what a watch takes for true of the topic.
    """

    topic_id: str
    offset: int
    last: "LastRead | None" = None
    watched: bool = False
    end: int | None = None
    declared: Mapping[str, str] | None = None

    @property
    def followed(self) -> bool:
        """Whether a host has read the partition since its start, or what is declared, was written."""
        return self.end is not None

    def text(self) -> str:
        """As the stream stores it."""
        last = {} if self.last is None else {"readTo": self.last.end, "epoch": self.last.epoch}
        watched = {"watched": True} if self.watched else {}
        end = {} if self.end is None else {"end": self.end}
        declared = {} if self.declared is None else {"declared": dict(self.declared)}
        return json.dumps({"topicId": self.topic_id, "offset": self.offset, **last, **watched, **end, **declared})

    @classmethod
    def read(cls, text: str, producer: str) -> "Checkpoint":
        """The checkpoint that the stream has; InvalidOptionError if another program has written it."""
        try:
            found = load(text)
            last = LastRead(int(found["readTo"]), int(found["epoch"])) if "epoch" in found else None
            end = int(found["end"]) if "end" in found else None
            declared = dict(found["declared"]) if "declared" in found else None
            return cls(str(found["topicId"]), int(found["offset"]), last, found.get("watched") is True, end, declared)
        except (ValueError, TypeError, KeyError, OverflowError):
            pass
        raise InvalidOptionError(
            f"The checkpoint of producer {producer!r}, {text!r}, is not one of KafkaFeed or KafkaWatch: another "
            "program has sent under this name. Read the topic into another stream.",
            producer=producer,
        )

    def require_watched(self, producer: str, *, watched: bool) -> None:
        """Raises InvalidOptionError if a watch would pass over rows of a feed, or a feed over those of a watch."""
        if self.watched == watched:
            return
        has, other = ("bounds, by KafkaWatch", "KafkaFeed") if self.watched else ("rows, by KafkaFeed", "KafkaWatch")
        raise InvalidOptionError(
            f"The stream has producer {producer!r} up to offset {self.offset} as {has}. {other} would go on from "
            "there, and messages would be missing in the rows. Give each of the two a stream of its own.",
            producer=producer,
        )

    def otherwise_declared(self, producer: str, declared: Mapping[str, str]) -> InvalidOptionError:
        """The error for a watch that declares something else than another one, which runs or has just begun."""
        theirs = self.declared or {}
        names = sorted(name for name in {**theirs, **declared} if theirs.get(name) != declared.get(name))
        has, wants = (", ".join(f"{name}={one.get(name)!r}" for name in names) for one in (theirs, declared))
        return InvalidOptionError(
            f"Another host of a watch runs, or starts just now, which derives the bounds of {producer!r} with {has}; "
            f"this one has {wants}. The bounds of a partition would be those of the host that Kafka gives it to just "
            "now. Give all hosts the same declarations, or a stream of bounds of its own to each.",
            producer=producer,
            option=names[0],
        )

    def require_of(self, topic: TopicState, part: Part) -> None:
        """Raises KafkaTopicError unless the checkpoint is of this topic, not of an earlier one of the same name."""
        if self.topic_id != topic.id:
            raise replaced(part, self.topic_id, self.offset, topic.id)


def replaced(
    part: Part, topic_id: str, offset: int | None, found: str | None, *, sure: int | None = None, advice: str = ""
) -> KafkaTopicError:
    """The error for a topic that was deleted, and perhaps created again.

    ``offset``: up to where the partition was read; None: this host has not read the topic. ``found``: the new id.
    ``sure``: up to where it was surely the old topic that was read; None: this host does not know.
    """
    read = "" if offset is None else f" partition {part.number} up to offset {offset} of"
    now = f"the topic of that name has the id {found} now" if found else "there is no topic of that name now"
    return KafkaTopicError(
        f"Topic {part.topic!r} was deleted: the stream has{read} the topic with the id {topic_id}, and {now}. "
        f"{_doubt(offset, sure) if found else ''}What the old one still had is lost; offsets of a new one start again. "
        f"{advice or 'Read the new topic into a new stream.'}",
        topic=part.topic,
        topicId=topic_id,
        foundId=found,
        partition=part.number,
        producer=part.producer,
    )


def _doubt(offset: int | None, sure: int | None) -> str:
    """Which rows may be of the new topic, since a host looks at the id only now and then."""
    if offset is None or (sure is not None and sure >= offset):
        return ""
    if sure is None:
        return "The last rows may be of the new topic, if a host ran then: it looks at the id each second. "
    return f"At the last look at the id it was offset {sure}: rows from there on may be of the new topic. "
