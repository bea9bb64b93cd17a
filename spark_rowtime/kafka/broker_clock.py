"""BrokerClock: the clock of the brokers, as far as the times that they give to messages show it."""

from spark_rowtime.kafka.client import LOG
from spark_rowtime.kafka.topics import Newest, Part
from spark_rowtime.types.timestamps import SECOND_MICROS

TOLD_MICROS = SECOND_MICROS
"""A larger difference between the clocks is logged."""
CLOSE_MICROS = 10_000_000
"""Questions that lie further apart than this are not close together."""


class BrokerClock:
    """The time of a partition's leader when it was asked for the end of the partition, in microseconds.

    A message that has come since the question before was stamped by the leader's clock meanwhile. So this host's clock
    is at most as far ahead of that clock as the answer is behind the stamp, and at least as far as the question before.
    Until a message shows that, this host's clock is taken. While another host has a partition, or messages are read,
    nobody asks for its end. A message that came between questions far apart only shows what is impossible.

    Laws: if the difference of the clocks stays what it was, and a message has come between two questions close
    together, the result is not after the leader's time (*never ahead*), and not further behind it than these questions
    lie apart (*not far behind*).
    """

    def __init__(self) -> None:
        self._ends: dict[Part, tuple[int, int]] = {}
        """The last end of each partition, and when it was asked for."""
        self._ahead: dict[Part, int] = {}
        self._told: set[Part] = set()

    def at(self, part: Part, end: int, newest: Newest | None, asked: int, answered: int) -> int:
        """The leader's time at ``asked``. ``newest``: the message with the largest time; None: times are no stamps."""
        before, since = self._ends.get(part, (None, asked))
        if newest is not None and before is not None and newest.offset >= before:
            least, most = since - newest.micros, answered - newest.micros
            taken = most if most - least <= CLOSE_MICROS else self._ahead.get(part, 0)
            self._ahead[part] = min(most, max(least, taken))
            self._tell(part, least=least, most=most)
        self._ends[part] = end, asked
        return asked - self._ahead.get(part, 0)

    def _tell(self, part: Part, *, least: int, most: int) -> None:
        """Logs once that the clocks differ: this host's is ahead by at least ``least``, and by at most ``most``."""
        if part in self._told or (least < TOLD_MICROS and most > -TOLD_MICROS):
            return
        self._told.add(part)
        LOG.warning(
            "The clock of this host is %.1f s %s that of the leader of %s. Bounds go by the leader's clock where it is "
            "known from new messages.",
            max(least, -most) / SECOND_MICROS,
            "ahead of" if least > 0 else "behind",
            part.producer,
        )
