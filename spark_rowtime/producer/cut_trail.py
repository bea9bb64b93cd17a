"""CutTrail: the cuts that a producer has sent, and its bounds that are not committed yet."""

from collections.abc import Iterable

from spark_rowtime.bounds.topic_cut import CutBound, LoggedCut, TopicCut, merged, require_forward


class CutTrail:
    """The merge of all cuts of one producer, and the bounds that its next commit makes into events.

    Only what a cut adds to earlier ones is stored. A whole cut is stored where the parts since the last one have named
    as many partitions as it has, so that nobody reads more than twice as much as there is.
    """

    def __init__(self, producer: str, sent: Iterable[LoggedCut]) -> None:
        """``sent``: the last whole cut in the store, and those after it."""
        self._producer = producer
        self.end = merged(sent)
        """What lies before the last cut."""
        self._named = 0
        self.pending: list[CutBound] = []
        """The bounds that are not committed, in the order of the calls. Empty for a producer without cuts."""
        self._fresh = True

    @property
    def active(self) -> bool:
        """Whether the producer has ever sent a cut."""
        return self.end is not None

    def require_forward(self, cut: TopicCut) -> None:
        """Raises CutRegressionError if ``cut`` lies below an earlier one in some partition."""
        require_forward(self.end, cut, self._producer)

    def advance(self, cut: TopicCut) -> TopicCut:
        """Moves the end to ``cut``; returns what is to be stored of it: a part, or all."""
        part, self.end = cut if self.end is None else cut.since(self.end), self.with_(cut)
        self._named += part.partitions
        if self._fresh or self._named >= self.end.partitions:
            self._fresh, self._named = False, 0
            return self.end
        return part

    def with_(self, cut: TopicCut) -> TopicCut:
        """Returns what lies before ``cut`` and all earlier ones, as a whole cut."""
        return cut if self.end is None else self.end.merged(cut)

    def landed(self, bounds: int) -> None:
        """Drops the first ``bounds`` pending bounds, which are in the store now."""
        self.pending = self.pending[bounds:]
