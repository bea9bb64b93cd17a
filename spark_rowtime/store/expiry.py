"""Leases that have ended and producers that went idle: what the wall clock makes of the attached ones."""

from collections.abc import Iterable

from spark_rowtime.bounds.clock import Detached, Event, Idled, Status

Ticking = tuple[str, Status, int | None, int | None, int, int]
"""An attached producer: name, status, floor, lease, when it was seen alive, and when it sent a row or a bound."""


def overdue(producers: Iterable[Ticking], now: int, idle_timeout: int | None) -> list[Event]:
    """What has become of ``producers``, in the order that it is logged in, whatever theirs.

    The weakest last: where all go, the bound stays; the other way round the last to go would have
    moved it as the only one left.
    """
    found: list[tuple[int, Event]] = []
    for name, status, floor, lease, seen, sent in producers:
        if lease is not None and now > seen + lease:
            found.append((floor or 0, Detached(name)))
        elif idle_timeout is not None and status is Status.ATTACHED and now > sent + idle_timeout:
            found.append((floor or 0, Idled(name)))
    return [event for _, event in sorted(found, key=lambda pair: (-pair[0], pair[1].producer))]
