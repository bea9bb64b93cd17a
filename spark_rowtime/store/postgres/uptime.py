"""The uptime of a stream: how long the database's server has run, as the stream's head counts it.

It follows the clock of the database, so the clocks of the clients do not count. It starts at that clock's time. While
the server is down it stands still, so no lease or age includes a time in which no client could act. If the clock is put
back, the uptime goes on from where it was. If the clock is put forward, that much time has passed.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from spark_rowtime.errors import StoreUnavailableError
from spark_rowtime.store.postgres.log_state import LogState
from spark_rowtime.store.steady_clock import Reading

STALL_MICROS = 200_000
"""This much of each stall is counted all the same, so that the uptime also goes on where transactions often fail."""


class Stall:
    """What a process knows of a stall, in which nobody can write: since when its own transactions have failed.

    Law (*stalls*): a process takes out of the uptime what it knows of a stall, as on a full disk. What others wrote
    shows that it was none until then.
    """

    def __init__(self, now: Callable[[], int]) -> None:
        """``now``: a clock of the machine that nobody can set, in microseconds."""
        self._now = now
        self._since: int | None = None

    @property
    def micros(self) -> int:
        """How long transactions have failed; 0 if the last one has not."""
        since = self._since  # other threads use the store, too
        return 0 if since is None else self._now() - since

    def before(self, silent: int) -> int:
        """How much of the last ``silent`` microseconds, in which nobody has written, was a stall as far as is known.

        If somebody has written since transactions fail here, it is none, until they fail again.
        """
        stalled = self.micros
        if stalled >= silent:
            self.ended()
            return 0
        return max(stalled - STALL_MICROS, 0)

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Notes whether what is done fails, since the store cannot be written."""
        at = self._now()
        try:
            yield
        except StoreUnavailableError:
            self._since = at if self._since is None else self._since
            raise

    def ended(self) -> None:
        """Notes that somebody has written."""
        self._since = None


class Moment(NamedTuple):
    """The ``uptime`` at a reading of the clock, which is ``ahead`` of the reading, and ``wall``, the wall clock."""

    boot: str
    uptime: int
    ahead: int
    wall: int


def moment(head: LogState, at: Reading, wall: int, stall: Stall | None = None) -> Moment:
    """Returns the moment of a reading. ``stall``: what is known of a time before it in which nobody could write."""
    if head.boot is None:
        uptime = max(wall, head.stamp)
    elif restarted(head, at):
        uptime = head.stamp
    else:
        uptime = at.micros + head.ahead
        uptime -= 0 if stall is None else stall.before(uptime - head.stamp)
    return Moment(at.boot, uptime, uptime - at.micros, wall)


def restarted(head: LogState, at: Reading) -> bool:
    """Returns whether the server was restarted, or its clock put back, since the last transaction.

    Until a transaction notes it, :func:`moment` always returns the same uptime.
    """
    return head.boot is not None and (head.boot != at.boot or at.micros + head.ahead < head.stamp)


def note(head: LogState, at: Moment) -> None:
    """Notes the moment of a transaction in the stream's head."""
    head.boot, head.ahead, head.stamp = at.boot, at.ahead, max(head.stamp, at.uptime)
