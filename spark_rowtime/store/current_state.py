"""A stream as it is at this moment, without writing to it."""

from dataclasses import replace

from spark_rowtime.bounds.clock import Detached, Status, StreamClock
from spark_rowtime.store.base import ProducerInfo, Store


def clock_now(store: Store) -> tuple[StreamClock, dict[str, Status]]:
    """The clock as the next poll will log it, and the producers whose lease has ended or that went idle since.

    What is due is in the log only once somebody polls or commits, who may not come for long.
    """
    due, clock = store.due(), store.clock()
    clock.replay(due)
    return clock, {e.producer: Status.DETACHED if isinstance(e, Detached) else Status.IDLE for e in due}


def producers_now(store: Store, due: dict[str, Status]) -> list[ProducerInfo]:
    """The producers, with the status of those that are ``due``."""
    return [replace(info, status=due.get(info.name, info.status)) for info in store.producers()]
