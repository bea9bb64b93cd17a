"""Lease: how a producer renews its lease, so that the stream waits for it while its process lives."""

import logging
from collections.abc import Callable

from spark_rowtime.errors import ProducerFencedError, RowtimeError
from spark_rowtime.producer.outbox import Outbox
from spark_rowtime.types.timestamps import show_micros

LOG = logging.getLogger("spark_rowtime")
LEAST_RENEWAL_MICROS = 1000
"""The least number of microseconds between two renewals of a lease."""
REJOINED = (
    "The lease of producer %r had ended before it was renewed, as where its process stood still: the stream no longer "
    "waited for it. It has joined again and holds the stream's bound; its rows before %s are late now."
)
"""The log message for a producer that joins again after its lease has ended."""


class Lease:
    """The lease of one sink's producer. A commit renews it; otherwise it is renewed after a third of its length.

    ``micros``: its length; None: the producer has no lease, and nothing is ever due. All methods are called under the
    sink's lock.
    """

    def __init__(self, outbox: Outbox, micros: int | None, now: Callable[[], int]) -> None:
        self.micros, self._outbox, self._now = micros, outbox, now
        self._pause = None if micros is None else max(micros // 3, LEAST_RENEWAL_MICROS)
        self._renewed_at = now()
        self.fenced: ProducerFencedError | None = None
        """The error of a renewal that found the producer taken over; calls of the sink raise it."""

    def renewed(self) -> None:
        """Records that the lease was just renewed, as by a commit."""
        self._renewed_at = self._now()

    def renew_if_due(self) -> int | None:
        """Renews the lease if that is due; returns the microseconds until the next renewal, None without a lease."""
        if self._pause is None:
            return None
        passed = self._now() - self._renewed_at
        if 0 <= passed < self._pause:
            return self._pause - passed
        self._renew()
        self.renewed()
        return self._pause

    def _renew(self) -> None:
        try:
            if self._outbox.renew():
                LOG.warning(REJOINED, self._outbox.producer, show_micros(self._outbox.floors.in_force))
        except ProducerFencedError as error:
            self.fenced = error
            self._outbox.end_fast_path()
        except RowtimeError:
            LOG.warning("The lease of producer %r could not be renewed", self._outbox.producer, exc_info=True)
