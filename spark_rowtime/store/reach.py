"""Reach: how far ahead of the clock rowtimes of a stream may lie, ``maxAhead``."""

from datetime import timedelta
from typing import NamedTuple

from spark_rowtime.errors import RowtimeAheadError
from spark_rowtime.store.commits import Commit
from spark_rowtime.store.settings import StreamSettings
from spark_rowtime.types.timestamps import END, LARGEST, show_interval, show_micros


def ceiling(settings: StreamSettings, wall: int) -> int | None:
    """The largest rowtime that is not too far ahead of the wall clock; None: no limit but that of rowtimes."""
    return None if settings.maxAhead is None else min(wall + settings.maxAhead, LARGEST)


class Reach(NamedTuple):
    """How far ahead of ``wall``, the wall clock in microseconds, rowtimes of the stream at ``path`` may lie.

    Law (*ahead*; tests/store/test_ahead.py): no row and no bound lands that lies more than the stream's ``maxAhead``
    after the wall clock of the store, whichever way it comes; the end of time may. For a bound cannot be taken back:
    one of a wrong year would make all later rows late. A sink asks the same by the clock of its machine, when it takes
    rows and bounds, so that the bounds which rows imply are not those of rows that will be rejected.
    """

    path: str
    settings: StreamSettings
    wall: int

    def require(self, producer: str, bound: int, promised: int | None = None) -> None:
        """Raises RowtimeAheadError if the bound is too far ahead, and above what the producer has ``promised``."""
        most = ceiling(self.settings, self.wall)
        if most is not None and max(most, promised or 0) < bound < END:
            raise self.error(producer, "The bound", bound)

    def require_of(self, commit: Commit, promised: int | None) -> None:
        """Does the same for the bounds of a commit."""
        for bound in (commit.floor, *(one.floor for one in commit.bounds)):
            self.require(commit.producer, bound or 0, promised)

    def error(self, producer: str, what: str, rowtime: int) -> RowtimeAheadError:
        """Returns the error about ``what``, which lies too far ahead at ``rowtime``."""
        ahead, most = (timedelta(microseconds=one) for one in (rowtime - self.wall, self.settings.maxAhead or 0))
        return RowtimeAheadError(
            f"{what} {show_micros(rowtime)} of producer {producer!r} lies {show_interval(ahead)} ahead of the clock, "
            f"which is at {show_micros(self.wall)}; the stream at {self.path} takes what lies at most "
            f"{show_interval(most)} ahead (maxAhead). Nothing of this call has landed. A bound cannot be taken back: "
            "all rows before it would be late. Correct the time, its unit or the clock. If such times are right, lift "
            "the limit: rt.alterStream(path, maxAhead=...), or `rowtime alter STREAM --max-ahead ...`.",
            path=self.path,
            producer=producer,
            rowtime=rowtime,
            ceiling=ceiling(self.settings, self.wall),
        )
