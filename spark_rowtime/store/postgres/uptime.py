"""The uptime of a stream: how long the database's server has run, as the stream's head counts it.

It follows the clock of the database, so the clocks of the clients do not count. It starts at that clock's time. While
the server is down it stands still, so no lease or age includes a time in which no client could act. If the clock is put
back, the uptime goes on from where it was. If the clock is put forward, that much time has passed.
"""

from typing import NamedTuple

from spark_rowtime.store.postgres.log_state import LogState
from spark_rowtime.store.steady_clock import Reading


class Moment(NamedTuple):
    """The ``uptime`` at a reading of the clock, which is ``ahead`` of the reading, and ``wall``, the wall clock."""

    boot: str
    uptime: int
    ahead: int
    wall: int


def moment(head: LogState, at: Reading, wall: int) -> Moment:
    """Returns the moment of a reading."""
    if head.boot is None:
        uptime = max(wall, head.stamp)
    elif restarted(head, at):
        uptime = head.stamp
    else:
        uptime = at.micros + head.ahead
    return Moment(at.boot, uptime, uptime - at.micros, wall)


def restarted(head: LogState, at: Reading) -> bool:
    """Returns whether the server was restarted, or its clock put back, since the last transaction.

    Until a transaction notes it, :func:`moment` always returns the same uptime.
    """
    return head.boot is not None and (head.boot != at.boot or at.micros + head.ahead < head.stamp)


def note(head: LogState, at: Moment) -> None:
    """Notes the moment of a transaction in the stream's head."""
    head.boot, head.ahead, head.stamp = at.boot, at.ahead, max(head.stamp, at.uptime)
