"""UnreachedCuts: how far each producer holds the bound back at given offsets, because its cuts are not reached yet."""

from array import array
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import NamedTuple

from spark_rowtime.bounds.topic_cut import LoggedCut, Offsets, TopicCut, require_same_topics


class Unreached(NamedTuple):
    """A producer that holds the bound back at ``floor`` (None: there is none), until offsets have reached ``cut``.

    ``cut`` has the partitions that are missing.
    """

    producer: str
    floor: int | None
    cut: TopicCut


@dataclass(slots=True)
class _Uncut:
    """A bound without a cut, which is about whole topics: it counts at any offset. ``cuts``: how many came before."""

    seq: int
    floor: int
    cuts: int


def _numbers() -> "array[int]":
    return array("q")


@dataclass(slots=True)
class _Chain:
    """The cuts of one producer, merged one by one, so that each has all earlier ones as its past.

    There may be millions of them, so numbers lie in arrays: 16 bytes for a cut, and 16 for each partition it moved.
    """

    seqs: "array[int]" = field(default_factory=_numbers)
    floors: "array[int]" = field(default_factory=_numbers)
    """Where each cut holds the bound; not above that of a later cut before the next bound without one."""
    steps: dict[tuple[str, int], "tuple[array[int], array[int]]"] = field(default_factory=dict)
    """By partition: the offsets of the cuts that moved it, ascending, and the numbers of these cuts."""
    uncut: list[_Uncut] = field(default_factory=list)
    folded: int = 0
    """How many of the first cuts were folded: 0 or 1. Such a cut counts at each event, as cuts before it did."""

    def add(self, logged: LoggedCut) -> None:
        if logged.cut is None:
            if self.seqs:
                self.uncut.append(_Uncut(logged.seq, logged.floor or 0, len(self.seqs)))
            return
        for topic, ends in logged.cut.offsets.items():
            for partition, end in ends.items():
                offsets, cuts = self.steps.setdefault((topic, partition), (_numbers(), _numbers()))
                if end > (offsets[-1] if offsets else 0):
                    offsets.append(end)
                    cuts.append(len(self.seqs))
        self._lower(logged.floor or 0)
        self.folded += logged.cut.folded
        self.seqs.append(logged.seq)
        self.floors.append(logged.floor or 0)

    def _lower(self, floor: int) -> None:
        """Lowers the last cuts to ``floor``, where a new holder of the producer began below what the old one promised.

        It changes no result as of an earlier event, since ``floor`` is not below the stream's bound at any of these.
        """
        first = self.uncut[-1].cuts if self.uncut else 0
        for at in range(len(self.floors) - 1, first - 1, -1):
            if self.floors[at] <= floor:
                return
            self.floors[at] = floor

    def first_unreached(self, seq: int, offsets: Offsets) -> int | None:
        """Returns the number of the first cut up to ``seq`` that ``offsets`` have not reached; None: all are."""
        end = first = max(self.folded, bisect_right(self.seqs, seq))
        for (topic, partition), (steps, cuts) in self.steps.items():
            at = bisect_right(steps, offsets.get(topic, {}).get(partition, 0))
            if at < len(cuts):
                first = min(first, cuts[at])
        return first if first < end else None

    def floor(self, cut: int, seq: int) -> int:
        """Returns where the producer holds the bound at the event ``seq``, if ``cut`` is the first not reached."""
        counting = [u for u in self.uncut if cut < u.cuts and u.seq <= seq]
        stretches = [cut, *(u.cuts for u in counting if u.cuts < bisect_right(self.seqs, seq))]
        return min(max([self.floors[at], *(u.floor for u in counting if u.cuts > at)]) for at in stretches)

    def passed(self, seq: int, offsets: Offsets) -> int:
        """Returns the event up to which, at most ``seq``, ``offsets`` have reached all cuts."""
        cut = self.first_unreached(seq, offsets)
        return seq if cut is None else min(seq, self.seqs[cut] - 1)

    def unreached_fold(self, upto: int, offsets: Offsets) -> bool:
        """Returns whether the first cut was folded, at an event up to ``upto``, and ``offsets`` have not reached it."""
        return self.folded > 0 and self.seqs[0] <= upto and self.first_unreached(upto, offsets) == 0

    def missing(self, cut: int, offsets: Offsets) -> TopicCut:
        """Returns the part of ``cut`` that ``offsets`` have not reached."""
        found: dict[str, dict[int, int]] = {}
        for (topic, partition), (steps, cuts) in self.steps.items():
            at = bisect_right(cuts, cut)
            if at and steps[at - 1] > offsets.get(topic, {}).get(partition, 0):
                found.setdefault(topic, {})[partition] = steps[at - 1]
        return TopicCut(found, whole=False)


class UnreachedCuts:
    """The cuts of a stream up to some event, added in the order of the log.

    Each producer's cuts never go back, so the first of them that offsets have not reached is found by a binary search
    in each partition. Laws, which an oracle in tests/store/test_against_oracle.py has by definition:

    - *weakest*: the result is what a scan of all bounds of all producers gives.
    - *monotone*: at larger offsets, or a later event, a producer never holds the bound further back.
    """

    def __init__(self) -> None:
        self._chains: dict[str, _Chain] = {}
        self.ids: dict[str, str] = {}
        """The ids of topics, as far as cuts have named them."""
        self.last = 0
        """The last event whose cut was added."""

    def misses(self, logged: LoggedCut) -> bool:
        """Whether a cut stands in the place of cuts of which these have some, and not all."""
        return logged.cut is not None and logged.cut.folded and logged.producer in self._chains

    def add(self, logged: LoggedCut) -> None:
        """Adds the next cut. Raises KafkaTopicError if a topic has another id than in an earlier cut."""
        if logged.cut is not None:
            require_same_topics(self.ids, logged.cut.ids)
            self.ids.update(logged.cut.ids)
        self._chains.setdefault(logged.producer, _Chain()).add(logged)
        self.last = logged.seq

    def passed(self, seq: int, offsets: Offsets) -> int:
        """Returns the event up to which, at most ``seq``, ``offsets`` have reached the cuts of all producers."""
        return min((chain.passed(seq, offsets) for chain in self._chains.values()), default=seq)

    def folded(self, upto: int, offsets: Offsets) -> str | None:
        """Returns a producer whose cuts were folded, up to an event at most ``upto``, and are not reached; or None."""
        unreached = (name for name, chain in self._chains.items() if chain.unreached_fold(upto, offsets))
        return next(unreached, None)

    def __len__(self) -> int:
        return sum(len(chain.seqs) for chain in self._chains.values())

    def weakest(self, seq: int, offsets: Offsets) -> Unreached | None:
        """Returns the producer that holds the bound furthest back at ``offsets``, by its cuts up to the event ``seq``.

        Returns None if all of these cuts are reached.
        """
        found = None
        for producer, chain in self._chains.items():
            cut = chain.first_unreached(seq, offsets)
            if cut is not None and (found is None or chain.floor(cut, seq) < found[0]):
                found = chain.floor(cut, seq), producer, cut
        if found is None:
            return None
        floor, producer, cut = found
        return Unreached(producer, floor or None, self._chains[producer].missing(cut, offsets))
