"""Lease: how a producer keeps the stream waiting for it, and learns that the stream no longer does."""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from weakref import WeakKeyDictionary, WeakSet

from spark_rowtime.errors import (
    ProducerFencedError,
    RowtimeError,
    StoreUnavailableError,
    StreamCompleteError,
)
from spark_rowtime.producer.outbox import Outbox
from spark_rowtime.producer.timer import Timer
from spark_rowtime.store.base import Renewal, Store
from spark_rowtime.store.forks import ForkLock
from spark_rowtime.store.record import Held
from spark_rowtime.types.short_repr import traced
from spark_rowtime.types.timestamps import SECOND_MICROS, show_micros

LOG = logging.getLogger("spark_rowtime")
NAMED = 3
"""How many producers one log message names."""
LEAST_RENEWAL_MICROS = 1000
"""The least number of microseconds between two renewals of a lease."""
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

NOT_RENEWED = "The lease of producer %s could not be renewed (%d in all). %s"
"""The log message for producers whose leases could not be renewed."""


class Lease:
    """The lease of one sink's producer. A commit renews it; otherwise it is renewed after a third of its length.

    The leases of one store are renewed together, in one transaction: with the first that is due, each other one that
    has passed half of its pause and whose sink is in no call. Where that has not happened after half of its length, as
    in a commit that takes long, of this sink or of another one, the thread of ``watch`` renews it beside the call.

    ``micros``: its length; None: the producer has no lease, and nothing is ever due. ``now`` is a clock that nobody can
    set. All methods are called under the sink's ``lock``, but ``renew_if_overdue``.
    """

    def __init__(self, outbox: Outbox, micros: int | None, now: Callable[[], int], lock: threading.RLock) -> None:
        self.micros, self.outbox, self._now, self.lock = micros, outbox, now, lock
        self._pause = None if micros is None else max(micros // 3, LEAST_RENEWAL_MICROS)
        self._renewed_at = self._attached_at = self._tried_beside_at = now()
        self._told_detached = False
        self.lives = False
        """Whether the lease is to be renewed: False before the sink starts, and once it ends."""
        self.fenced: ProducerFencedError | None = None
        """The error of a renewal that found the producer taken over; calls of the sink raise it."""
        self.watch = Timer(threading.RLock(), self.renew_if_overdue, f"rowtime-leases-{outbox.path}")
        if micros is not None:
            with _GROUPING:
                _LEASES.setdefault(outbox.store, WeakSet()).add(self)

    def renewed(self) -> None:
        """Records that the lease was just renewed, as by a commit."""
        self._renewed_at = self._attached_at = self._now()

    def require_attached(self, *, commits: bool = False) -> None:
        """Finds out, before a call takes anything, whether the stream still waits for the producer.

        A producer that was detached joins again, so that the call's rows are judged by the stream's bound; one that
        was taken over or closed raises ProducerFencedError. An outage of the store is left to the next commit, unless
        the call ``commits``: it would wait for the store once more.
        """
        if self._now() - self._attached_at < self.outbox.store.contact_micros:
            return
        try:
            joined = self.outbox.join_again()
        except StoreUnavailableError:
            if commits:
                raise
            return
        except ProducerFencedError as error:
            self.fenced = error
            raise
        self._attached_at = self._now()
        if joined:
            self.renewed()
            self._told_detached = False
            LOG.warning(DETACHED, self.outbox.producer, show_micros(self.outbox.floors.in_force))

    def renew_if_due(self) -> int | None:
        """Renews the lease if that is due; returns the microseconds until the next renewal, None without a lease."""
        if self._pause is None:
            return None
        passed = self._now() - self._renewed_at
        if passed < self._pause:
            return self._pause - passed
        with ExitStack() as held:
            _renew([self, *self._others(held)], self.outbox.store)
        return self._pause

    def _others(self, held: ExitStack) -> Iterator["Lease"]:
        """Yields the leases to renew together with this one. Their sinks' locks go to ``held``."""
        with _GROUPING:
            leases = list(_LEASES[self.outbox.store])
        for other in leases:
            if other is self or not other.lock.acquire(blocking=False):
                continue
            if other.soon_due:
                held.callback(other.lock.release)
                yield other
            else:
                other.lock.release()

    def renew_if_overdue(self) -> float | None:
        """Renews the lease if half of it has passed, with others of the store; returns the seconds until then.

        None: the lease has ended. It takes no sink's lock. What fails is tried again after an eighth of the lease.
        """
        if not self.alive:
            return None
        if not self.micros_until_overdue:
            with _GROUPING:
                leases = [
                    other for other in _LEASES[self.outbox.store] if other.alive and not other.micros_until_overdue
                ]
            _renew_beside(leases, self.outbox.store)
        return self.micros_until_overdue / SECOND_MICROS

    @property
    def soon_due(self) -> bool:
        """Whether it costs nothing to renew the lease now, since half of the pause has passed."""
        assert self._pause is not None
        return self.alive and self._now() - self._renewed_at >= self._pause // 2

    @property
    def micros_until_overdue(self) -> int:
        """The microseconds until the lease is renewed beside calls, as half of it has passed; 0: from now on."""
        assert self.micros is not None
        due = self._renewed_at + max(self.micros // 2, LEAST_RENEWAL_MICROS)
        again = self._tried_beside_at + max(self.micros // 8, LEAST_RENEWAL_MICROS)
        return max(max(due, again) - self._now(), 0)

    @property
    def alive(self) -> bool:
        """Whether the lease is renewed."""
        return self.lives and self.fenced is None and not self.outbox.broken

    def note(self, result: Renewal) -> None:
        """Records the result of a renewal. It says nothing of a producer that was detached by hand: see ``renew``."""
        self.tried()
        if isinstance(result, ProducerFencedError):
            self.fenced = result
            self.outbox.end_fast_path()
        elif isinstance(result, StreamCompleteError):
            LOG.warning("The lease of producer %r could not be renewed: %s", self.outbox.producer, result)
        elif result:
            self._told_detached = False
            self.outbox.learn_head()
            LOG.warning(REJOINED, self.outbox.producer, show_micros(self.outbox.floors.in_force))
        elif not self._told_detached and self.outbox.is_detached():
            self._told_detached = True
            LOG.warning(WAS_DETACHED, self.outbox.producer)

    def tried_beside(self) -> None:
        """Records an attempt to renew the lease beside calls."""
        self._tried_beside_at = self._now()

    def tried(self) -> None:
        """Records an attempt to renew the lease. Whether the stream waits for the producer is found out by a call."""
        self._renewed_at = self._now()


_LEASES: "WeakKeyDictionary[Store, WeakSet[Lease]]" = WeakKeyDictionary()
"""The leases of each open store."""
_GROUPING = ForkLock()


def _renew(leases: list[Lease], store: Store) -> None:
    """Renews leases in one transaction."""
    try:
        for lease, result in zip(leases, store.renew_all(_held(leases)), strict=True):
            lease.note(result)
    except RowtimeError as error:
        _tell_failure(leases, error)
        for lease in leases:
            lease.tried()


def _renew_beside(leases: list[Lease], store: Store) -> None:
    """Renews leases beside calls. That a producer was taken over, or the stream is complete, a call finds out."""
    try:
        for lease, result in zip(leases, store.renew_beside(_held(leases)), strict=True):
            lease.tried()
            if result is True:
                LOG.warning(REJOINED, lease.outbox.producer, "the stream's bound")
    except Exception as error:  # noqa: BLE001  (nobody else would try it again)
        _tell_failure(leases, error)
    for lease in leases:
        lease.tried_beside()


def _held(leases: list[Lease]) -> list[Held]:
    return [lease.outbox.held for lease in leases]


def _tell_failure(leases: list[Lease], error: Exception) -> None:
    names = ", ".join(repr(held.producer) for held in _held(leases[:NAMED]))
    LOG.warning(NOT_RENEWED, names, len(leases), error, exc_info=traced(error))
