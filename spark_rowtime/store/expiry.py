"""Finds the attached producers whose lease has ended or that have become idle."""

from collections.abc import Iterable

from spark_rowtime.bounds.clock import Detached, Event, Idled, Status

Ticking = tuple[str, Status, int | None, int | None, int, int]
"""An attached producer: name, status, floor, lease, when it was last seen alive, when it last sent a row or a bound."""


def overdue(producers: Iterable[Ticking], now: int, idle_timeout: int | None) -> list[Event]:
    """Returns the events that are due for ``producers``, in the order in which they are logged.

    The order does not depend on that of ``producers``. The producer with the lowest floor expires last.
    Otherwise, when all expire at once, the last one left would advance the bound alone.
    """
    found: list[tuple[int, Event]] = []
    for name, status, floor, lease, seen, sent in producers:
        if lease is not None and now > seen + lease:
            found.append((floor or 0, Detached(name)))
        elif idle_timeout is not None and status is Status.ATTACHED and now > sent + idle_timeout:
            found.append((floor or 0, Idled(name)))
    return [event for _, event in sorted(found, key=lambda pair: (-pair[0], pair[1].producer))]
