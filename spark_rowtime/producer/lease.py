"""Lease: how a producer keeps the stream waiting for it, and learns that the stream no longer does."""

import logging
from collections.abc import Callable

from spark_rowtime.errors import ProducerFencedError, RowtimeError, StoreUnavailableError
from spark_rowtime.producer.outbox import Outbox
from spark_rowtime.types.timestamps import show_micros

LOG = logging.getLogger("spark_rowtime")
LEAST_RENEWAL_MICROS = 1000
"""The least number of microseconds between two renewals of a lease."""
CONTACT_MICROS = 10_000
"""For this many microseconds after a commit or a renewal, a sink assumes that its producer is still attached."""
REJOINED = (
    "The lease of producer %r ended before it was renewed, perhaps because its process was suspended, and the "
    "stream no longer waited for it. The producer has joined again and holds the stream's bound; its rows before "
    "%s are late now."
)
"""The log message for a producer that joins again after its lease has ended."""
DETACHED = (
    "Producer %r was detached by somebody else, or its lease had ended: the stream no longer waited for it. It has "
    "joined again with this call and holds the stream's bound; its rows before %s are late now."
)
"""The log message for a producer that joins again because it is about to send."""
WAS_DETACHED = (
    "Producer %r was detached by somebody else: the stream no longer waits for it. It joins again with its next call, "
    "at the stream's bound."
)
"""The log message for a detached producer that has nothing to send."""


class Lease:
    """The lease of one sink's producer. A commit renews it; otherwise it is renewed after a third of its length.

    ``micros``: its length; None: the producer has no lease, and nothing is ever due. All methods are called under the
    sink's lock.
    """

    def __init__(self, outbox: Outbox, micros: int | None, now: Callable[[], int]) -> None:
        self.micros, self._outbox, self._now = micros, outbox, now
        self._pause = None if micros is None else max(micros // 3, LEAST_RENEWAL_MICROS)
        self._renewed_at = self._attached_at = now()
        self._told_detached = False
        self.fenced: ProducerFencedError | None = None
        """The error of a renewal that found the producer taken over; calls of the sink raise it."""

    def renewed(self) -> None:
        """Records that the lease was just renewed, as by a commit."""
        self._renewed_at = self._attached_at = self._now()

    def require_attached(self) -> None:
        """Finds out, before a call takes anything, whether the stream still waits for the producer.

        A producer that was detached joins again, so that the call's rows are judged by the stream's bound; one that
        was taken over or closed raises ProducerFencedError. An outage of the store is left to the next commit.
        """
        if 0 <= self._now() - self._attached_at < CONTACT_MICROS:
            return
        try:
            joined = self._outbox.join_again()
        except StoreUnavailableError:
            return
        except ProducerFencedError as error:
            self.fenced = error
            raise
        self._attached_at = self._now()
        if joined:
            self.renewed()
            self._told_detached = False
            LOG.warning(DETACHED, self._outbox.producer, show_micros(self._outbox.floors.in_force))

    def renew_if_due(self) -> int | None:
        """Renews the lease if that is due; returns the microseconds until the next renewal, None without a lease."""
        if self._pause is None:
            return None
        passed = self._now() - self._renewed_at
        if 0 <= passed < self._pause:
            return self._pause - passed
        self._renew()
        self._renewed_at = self._now()
        return self._pause

    def _renew(self) -> None:
        try:
            if self._outbox.renew():
                LOG.warning(REJOINED, self._outbox.producer, show_micros(self._outbox.floors.in_force))
            elif self._outbox.is_detached() and not self._told_detached:
                self._told_detached = True
                LOG.warning(WAS_DETACHED, self._outbox.producer)
        except ProducerFencedError as error:
            self.fenced = error
            self._outbox.end_fast_path()
        except RowtimeError:
            LOG.warning("The lease of producer %r could not be renewed", self._outbox.producer, exc_info=True)
