"""CutFloors: the bound of rows in Kafka topics, whose bounds lie in a stream beside them."""

from collections.abc import Mapping
from typing import Any

from spark_rowtime.bounds.bound import weaker
from spark_rowtime.bounds.topic_cut import Offsets, require_same_topics
from spark_rowtime.bounds.unreached_cuts import Unreached, UnreachedCuts
from spark_rowtime.errors import DataLostError
from spark_rowtime.store.base import Store
from spark_rowtime.store.position import Position

_ANY_EVENT = 1 << 60
"""Greater than every seq."""


class CutFloors:
    """The floors of topics at given offsets, by the bounds of a stream up to a position of its log.

    A bound counts where the offsets have reached its cut in every partition that the cut names. The floor is the
    weakest over the attached producers of the strongest bound that counts. This is the stream's own bound, held back
    by each producer whose cuts are not reached yet, also by one that has left since:

        floor = min(stream's bound, for each producer with an unreached cut: its strongest bound that counts)

    Laws, which an oracle in tests/store/test_against_oracle.py has by definition:

    - *function*: the result follows from the log up to the position and the offsets, however the log was read.
    - *weakest*: it is what a scan of all events gives.
    - *folded*: where retention has folded cuts that ``offsets`` have not reached, it is not above that.
    - *monotone*: at a later position, or at larger offsets, it is never lower.
    - *reached*: where all cuts are reached, it is the stream's own bound.

    An object belongs to one thread. It reads each part of the log once.
    """

    def __init__(self, store: Store) -> None:
        self._store, self._unreached, self._read = store, UnreachedCuts(), 0

    @property
    def topicIds(self) -> Mapping[str, str]:
        """The ids of topics that cuts up to the last position asked for have named."""
        return self._unreached.ids

    def requireTopics(self, seq: int, ids: Mapping[str, str]) -> None:
        """Raises KafkaTopicError if a topic has another id now than bounds up to the event ``seq`` have named."""
        self._catch_up(seq)
        require_same_topics(self.topicIds, ids)

    def floorAt(self, position: int | Position, offsets: Offsets) -> int | None:
        """Returns the least rowtime, in microseconds, that a row at or beyond ``offsets`` may have; None: any.

        Args:
            position: A position in the bounds' stream, or its seq.
            offsets: By topic and partition, the offset up to which rows are read, exclusively. A partition that is
                missing is read up to 0.

        Raises:
            DataLostError: The stream does not have the log at that position any more, or it has folded cuts that this
                object has read in part.
            KafkaTopicError: Cuts name two topics of the same name.
        """
        seq = _seq(position)
        floor, behind = self._store.at(seq).floor, self.unreachedAt(seq, offsets)
        return floor if behind is None else weaker(floor, behind.floor)

    def unreachedAt(self, position: int | Position, offsets: Offsets) -> Unreached | None:
        """Returns the producer that holds the floor furthest back, and the part of its cut that is not reached.

        Returns None if ``offsets`` have reached all cuts, so that the stream's own bound is the floor. Otherwise the
        floor of the result may still be above the stream's.
        """
        seq = _seq(position)
        self._catch_up(seq)
        return self._unreached.weakest(seq, offsets)

    def passedAt(self, position: int | Position, offsets: Offsets) -> int:
        """Returns the event up to which, at most ``position``, ``offsets`` have reached all cuts.

        Whoever reads on from there needs no cut up to that event.
        """
        seq = _seq(position)
        self._catch_up(seq)
        return self._unreached.passed(seq, offsets)

    def __len__(self) -> int:
        """The number of cuts in memory."""
        return len(self._unreached)

    def requireUnfolded(self, position: int | Position, offsets: Offsets, passed: int) -> None:
        """Raises DataLostError if cuts that ``offsets`` have not reached were folded up to the event ``passed``.

        A query that has ``passed`` them before would get weaker bounds now than it has used.
        """
        self._catch_up(_seq(position))
        producer = self._unreached.folded(passed, offsets)
        if producer is not None:
            raise _put_back(self._store.path, producer, passed)

    def _catch_up(self, seq: int) -> None:
        """Reads the cuts up to ``seq``, and those behind it that were folded: they stand for earlier ones, too.

        Cuts that are folded while they are read for the first time are read again.
        """
        while seq > self._read:
            first = self._read == 0
            for logged in self._store.cuts(self._read, _ANY_EVENT):
                if logged.seq > seq and not (logged.cut and logged.cut.folded):
                    self._read = max(seq, self._read)
                    return
                if self._unreached.misses(logged):
                    if not first:
                        raise _folded(self._store.path, self._read)
                    self._unreached, self._read = UnreachedCuts(), 0
                    break
                self._unreached.add(logged)
                self._read = logged.seq
            else:
                self._read = max(seq, self._read)


def _put_back(path: str, producer: str, passed: int) -> DataLostError:
    return DataLostError(
        f"The offsets of this query have gone back. It was registered with {path} as having passed event {passed}, so "
        f"the cuts of producer {producer!r} up to event {passed} were folded into one, and its offsets lie below them "
        "now: an older checkpoint has taken the place of its own, or a topic with smaller offsets. Its batches would "
        "get weaker bounds than they had. Start the query with a new checkpoint.",
        path=path,
        producer=producer,
        asked=passed,
    )


def _folded(path: str, read: int) -> DataLostError:
    return DataLostError(
        f"Cuts in {path} after event {read} were folded into one before this query had read them. Registered queries "
        "had passed them, and this query is not registered: its checkpoint is temporary, or its user may not write to "
        "the stream. Start the query again. With a checkpointLocation, and the right to register, the stream waits for "
        "it.",
        path=path,
        asked=read,
    )


def _seq(position: Any) -> int:
    return position.seq if isinstance(position, Position) else int(position)
