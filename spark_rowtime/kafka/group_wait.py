"""GroupWait: how long a host has waited for the consumer group to say which partitions it has."""

from typing import Any

from spark_rowtime.errors import KafkaUnavailableError
from spark_rowtime.kafka.client import LOG, brokers, name_and_text

GROUP_TOLD_SECONDS = 30.0
"""A wait that has lasted so long is logged."""
POLL_SECONDS = 300.0
"""librdkafka's default of max.poll.interval.ms: for so long a member that stands still may hold a group up."""


class GroupWait:
    """The wait of a host that has no assignment. It fails once nothing but a missing coordinator explains it.

    Law: a wait is logged once, after GROUP_TOLD_SECONDS. It raises KafkaUnavailableError when it has lasted so much
    longer than ``max.poll.interval.ms``, within which a group with a coordinator shares out its partitions.
    """

    def __init__(self, servers: str, group: str, now: float, poll_seconds: float = POLL_SECONDS) -> None:
        self._servers, self._group, self._longest = servers, group, poll_seconds + GROUP_TOLD_SECONDS
        self.begin(now)

    def begin(self, now: float) -> None:
        """Nobody knows any more which partitions this host has."""
        self._since, self._told = now, False

    def look(self, now: float, last: Any) -> None:
        """Logs the wait, or raises the error. ``last``: the last error that the client has told, if any."""
        seconds = now - self._since
        if seconds > self._longest:
            raise KafkaUnavailableError(
                f"{self._text(seconds, last)} Check that all brokers run and can be reached, and that the topic "
                "__consumer_offsets has leaders.",
                servers=self._servers,
                code=None if last is None else last.name(),
            )
        if seconds >= GROUP_TOLD_SECONDS and not self._told:
            self._told = True
            LOG.warning("%s Nothing is read meanwhile.", self._text(seconds, last))

    def _text(self, seconds: float, last: Any) -> str:
        said = "none" if last is None else "{} ({})".format(*name_and_text(last))
        return (
            f"The consumer group {self._group!r} at {brokers(self._servers)} has given this host no partitions for "
            f"{seconds:.0f} s; its coordinator may be gone. The client's last error: {said}."
        )
