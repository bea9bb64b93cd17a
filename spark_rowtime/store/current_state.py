"""Computes the current state of a stream without writing to it."""

from dataclasses import replace

from spark_rowtime.bounds.clock import Detached, Status, StreamClock
from spark_rowtime.store.base import Store
from spark_rowtime.store.record import ProducerInfo


def clock_now(store: Store) -> tuple[StreamClock, dict[str, Status]]:
    """Returns the clock as the next poll will log it, and the new status of each producer that is due.

    A producer is due if its lease has ended or it has become idle. This is logged only when a process polls or
    commits, which may not happen for a long time.
    """
    due, clock = store.due(), store.clock()
    clock.replay(due)
    return clock, {e.producer: Status.DETACHED if isinstance(e, Detached) else Status.IDLE for e in due}


def producers_now(store: Store, due: dict[str, Status]) -> list[ProducerInfo]:
    """Returns the producers; those in ``due`` have the status given there."""
    return [replace(info, status=due.get(info.name, info.status)) for info in store.producers()]
