"""ClientFailures: which errors of Kafka's client end a host that reads, and which it gets over by itself."""

import time
from typing import Any

from spark_rowtime.errors import KafkaUnavailableError
from spark_rowtime.kafka.client import LOG, PASSING, ConnectionErrors, brokers, library, unavailable

DOWN_SECONDS = 30.0
"""How long all brokers may be away before the feed fails."""
RECEIVED_BYTES = "receive.message.max.bytes"
"""The client's option for the largest answer that it takes. It names it where an answer is larger."""
PASSING_READS = (
    *PASSING,
    *("_ALL_BROKERS_DOWN", "_RESOLVE", "_MAX_POLL_EXCEEDED", "_WAIT_COORD", "REQUEST_TIMED_OUT"),
    *("COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR", "COORDINATOR_LOAD_IN_PROGRESS", "REBALANCE_IN_PROGRESS"),
    *("UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION", "FENCED_LEADER_EPOCH", "UNKNOWN_LEADER_EPOCH"),
)
"""Errors in the place of a message that the client gets over by itself."""


class ClientFailures:
    """Listens to the errors of a client: call it with each of them. ``limit``: the value of RECEIVED_BYTES, if given.

    The client goes on by itself where it can; ``first`` is the first error with which it cannot.
    """

    def __init__(self, servers: str, limit: Any) -> None:
        self._servers, self._limit, self._errors = servers, limit, ConnectionErrors()
        self._down: tuple[float, float] | None = None
        """When the client first told that all brokers are away, and last; None: not since the last message."""
        self.first: KafkaUnavailableError | None = None

    @property
    def last(self) -> Any:
        """The last KafkaError of a connection; None: there was none."""
        return self._errors.last

    def received(self) -> None:
        """Messages came: a broker is there."""
        self._down = None

    def __call__(self, error: Any) -> None:
        """Takes a KafkaError."""
        LOG.warning("Kafka's client: %s", error)
        self._errors(error)
        self.first = self.first or self._failure(error, time.monotonic())

    def _failure(self, error: Any, now: float) -> KafkaUnavailableError | None:
        codes = library().KafkaError
        if error.code() in (codes._AUTHENTICATION, codes._SSL) or error.fatal():  # noqa: SLF001
            return unavailable(self._servers, error, "The connection")
        if RECEIVED_BYTES in error.str():
            return self._too_large(error)
        if error.code() == codes._ALL_BROKERS_DOWN:  # noqa: SLF001
            first, last = self._down or (now, now)
            self._down = (first if now - last <= DOWN_SECONDS else now), now
            if now - self._down[0] > DOWN_SECONDS:
                return unavailable(self._servers, self._errors.last, "Reading")
        return None

    def _too_large(self, error: Any) -> KafkaUnavailableError:
        """The error for an answer that the client does not take. It asks again and gets the same."""
        return KafkaUnavailableError(
            f"A message at {brokers(self._servers)} is larger than {RECEIVED_BYTES} ({self._limit}), "
            f"so no partition of its broker goes on: {error.str()}. Set kafka.{RECEIVED_BYTES} higher, at most to "
            "2147483647.",
            servers=self._servers or None,
            code=error.name(),
        )
