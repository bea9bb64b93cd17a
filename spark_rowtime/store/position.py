"""Position and Head: a place in the log of a stream, and what the log is up to there."""

from typing import NamedTuple


class Position(NamedTuple):
    """A reader's position in the log. Times are in microseconds. No coordinate ever decreases.

    The reader has read those rows of the trains up to ``seq`` whose rowtime is below ``cut``; if
    ``cut`` is None, it has read all rows of these trains. ``floor`` is the least rowtime that the
    reader may still receive; None if nothing is promised. ``made`` is when the event ``seq`` was committed, by which
    another log is known that has grown as far: None if nobody knows.
    """

    seq: int
    cut: int | None
    floor: int | None
    made: int | None = None

    def is_behind(self, other: "Position") -> bool:
        """Whether a coordinate is less than that of ``other``, the floor aside: it has not read all that it has."""
        return self.seq < other.seq or (self.cut is not None and (other.cut is None or self.cut < other.cut))


class Head(NamedTuple):
    """The log at one ``seq``: the stream's floor, and the largest rowtime and the number of rows up to there."""

    seq: int
    floor: int | None
    largest: int | None
    rows: int


EMPTY = Head(0, None, None, 0)
"""The log before its first event."""
AFTER_ALL = Position(1 << 60, None, None)
"""The position of a reader that has read whatever will come."""
