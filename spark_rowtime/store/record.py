"""What a stream knows of a producer: all of it in a record, what callers see in its info."""

from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from operator import attrgetter
from typing import NamedTuple

from spark_rowtime.bounds.clock import Detached, Event, Idled, ProducerClock, Status
from spark_rowtime.types.timestamps import END


@dataclass(frozen=True, slots=True)
class ProducerInfo:
    """A producer as the catalog records it. ``floor`` is in microseconds; rows received = accepted + rejected."""

    name: str
    status: Status
    epoch: int
    floor: int | None
    accepted: int
    rejected: int
    number: int
    checkpoint: str | None
    declaration: str
    """What openSink declared about this producer's order (rowsImplyBounds, lateness, kSort), as JSON."""
    disorder: str
    """The state of the producer's disorder, as JSON; empty if none is kept."""
    session: str = field(compare=False)
    """Whoever holds the producer, or held it last; see ``Store.attach``."""


class Held(NamedTuple):
    """A producer as a caller holds it.

    An epoch comes again in a stream that was set back, as by a restored backup; a session never does. None: any.
    """

    producer: str
    epoch: int
    session: str | None = None


class LastSeen(NamedTuple):
    """When a producer was last seen, in microseconds of uptime, and its lease.

    ``unseen``: since its last commit or renewal. ``silent``: since it last sent a row or a new bound, or joined.
    ``lease`` is that of ``attach``; None: it has none.
    """

    unseen: int
    silent: int
    lease: int | None


ATTACHED = (Status.ATTACHED, Status.IDLE)
"""The producers that are attached, idle or not."""
WAITED_FOR = (Status.EXPECTED, *ATTACHED)
"""The producers that the clock knows."""


@dataclass(slots=True)
class ProducerRecord:
    """Everything that a stream knows of a producer, apart from its keys. Times are in microseconds of uptime."""

    name: str
    status: Status = Status.LEFT
    floor: int | None = None
    lease: int | None = None
    seen: int = 0
    sent: int = 0
    detached_by_hand: bool = False
    """Whether it was detached by hand."""
    epoch: int = 0
    accepted: int = 0
    rejected: int = 0
    number: int = 0
    checkpoint: str | bytes | None = None
    """Bytes: what a store has in place of a large checkpoint that it has not read."""
    declaration: str = ""
    disorder: str = ""
    session: str = ""
    receipt_seq: int = 0
    receipt_floor: int | None = None

    def copy(self) -> "ProducerRecord":
        """Returns another object with the same values, as ``replace`` does, in a fraction of the time."""
        return ProducerRecord(*_VALUES(self))

    @property
    def attached(self) -> bool:
        """Whether the producer is attached, idle or not."""
        return self.status in ATTACHED

    @property
    def clock(self) -> ProducerClock | None:
        """The producer's state in the clock; None if the clock does not know it."""
        return ProducerClock(self.status, self.floor) if self.status in WAITED_FOR else None

    def tick(self, clock: ProducerClock | None, gone: Status) -> None:
        """Takes over the producer's state from the clock. ``gone`` is its status if the clock no longer has it."""
        self.status = clock.status if clock else gone
        gone_at = END if gone is Status.COMPLETE else self.floor
        self.floor = clock.floor if clock else gone_at
        if clock:
            self.detached_by_hand = False

    @property
    def info(self) -> ProducerInfo:
        """What the store says of the producer, whose checkpoint has been read."""
        assert not isinstance(self.checkpoint, bytes), "the checkpoint was not read"
        return ProducerInfo(
            self.name, self.status, self.epoch, self.floor, self.accepted, self.rejected, self.number, self.checkpoint,
            self.declaration, self.disorder, self.session,
        )  # fmt: skip

    def last_seen(self, now: int) -> LastSeen:
        """Returns when the producer was last seen, at the uptime ``now``."""
        return LastSeen(max(now - self.seen, 0), max(now - self.sent, 0), self.lease)


_VALUES = attrgetter(*(field.name for field in fields(ProducerRecord)))


def overdue(
    records: Iterable[ProducerRecord], now: int, idle_timeout: int | None
) -> list[tuple[Event, ProducerRecord]]:
    """Returns the events that are due for attached producers, in the order in which they are logged.

    The order does not depend on that of ``records``. The producer with the lowest floor expires last.
    Otherwise, when all expire at once, the last one left would advance the bound alone.
    """
    found: list[tuple[Event, ProducerRecord]] = []
    for record in records:
        if record.lease is not None and now > record.seen + record.lease:
            found.append((Detached(record.name), record))
        elif idle_timeout is not None and record.status is Status.ATTACHED and now > record.sent + idle_timeout:
            found.append((Idled(record.name), record))
    return sorted(found, key=lambda pair: (-(pair[1].floor or 0), pair[1].name))
