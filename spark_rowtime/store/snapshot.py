"""Snapshot: a stream at one moment, with its producers, its readers and what these say of themselves."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import pyarrow as pa

from spark_rowtime.bounds.clock import Detached, Event, Status, StreamClock
from spark_rowtime.bounds.members import SortedMembers
from spark_rowtime.bounds.topic_cut import LoggedCut
from spark_rowtime.store.position import Head, Position
from spark_rowtime.store.record import LastSeen, ProducerInfo, ProducerRecord, overdue
from spark_rowtime.store.settings import StreamSettings
from spark_rowtime.types.timestamps import DAY_MICROS, WEEK_MICROS


@dataclass(frozen=True, slots=True)
class Summary:
    """All producers in brief: the stream's floor, who holds it, how many producers are attached, idle ones included.

    ``expected`` says whether the holder is an expected producer. ``rejected`` is the number of rows rejected from any
    producer, ``forgotten`` that of the producers that ``gc`` has forgotten. Their rows stay counted.
    """

    floor: int | None
    holder: str | None
    expected: bool
    attached: int
    rejected: int
    forgotten: int


FORGET_MICROS = DAY_MICROS
"""``gc`` forgets a producer that left at least this long ago: a day."""


READS_STREAM, READS_TOPIC, READS_UNKNOWN = "stream", "topic", ""
"""What a registered reader reads: the stream, or a topic beside it, to which the stream's cuts belong. Of readers that
an earlier version has registered it is not known: rows and cuts are kept for these."""
READS_COPIED = "copied"
"""What a reader of a copy reads, registered in the original by a user who may only read that. The original keeps rows
and cuts for it for a limited time, until it registers in the copy."""


@dataclass(frozen=True, slots=True)
class ReaderInfo:
    """A registered reader. The store keeps rows after its ``position``.

    ``unseen``: microseconds since the reader last registered. ``reads``: see READS_STREAM. ``trusted``: whether its
    user may write, too.
    """

    name: str
    position: Position
    unseen: int
    reads: str
    trusted: bool = True


@dataclass(frozen=True, slots=True)
class Collected:
    """What one ``gc`` removed: ``rows``, and ``size`` bytes in ``files`` files.

    ``kept_for`` says who needs the first train that was kept although it is old enough; None if nobody does.
    ``forgotten`` is the number of producers that were forgotten.
    """

    rows: int
    files: int
    size: int
    kept_for: str | None
    forgotten: int = 0


WRITER, READER, HOST = "writer", "reader", "host"
"""The roles of a status: a query writes the stream, a query reads it, a process hosts an adapter for it."""
FORGET_STATUS_MICROS = WEEK_MICROS
"""A status of a reader or a host that was reported at least this long ago is removed: a week."""


@dataclass(frozen=True, slots=True)
class ReportedStatus:
    """What a query, or the host of an adapter, last reported about itself.

    It is for people alone: no result, bound or position depends on it. ``role`` is WRITER, READER or HOST. ``name`` is
    that of the producer under which the query or the adapter writes; of a READER, the id of the query. ``content`` is
    a JSON object of a few KB, which the store does not interpret. ``unseen``: microseconds of uptime since then.
    """

    role: str
    name: str
    content: str
    unseen: int


@dataclass(frozen=True)
class Snapshot:
    """A stream at one moment; everything that is said of a stream as a whole is a function of it.

    Law (*one moment*; tests/store/test_snapshot.py): all of it is as one transaction has left it, whatever others
    commit meanwhile. What lies between two positions of the log is read afterwards, since it stays the same.

    ``wall`` is the wall clock, ``uptime`` that of leases. ``records`` are the producers that are not forgotten, by
    name, as the log has them. ``rejected`` counts the rows rejected from any producer, also of those that are
    forgotten, of whose epochs ``forgotten_epoch`` is the largest; ``rejections`` is the number of the newest rejection.
    A full snapshot alone has the rest. ``moved``: how many microseconds of uptime ago the stream's bound became what it
    is; None if there is none, or if ``gc`` may have removed the event that raised it. ``keys`` are those of each
    producer that has any, see ``Store.keys``; ``cuts`` the last of each producer, see ``Store.last_cuts``.
    ``restarted``: the machine, or the database, was restarted, and nothing was committed since. Until then ``uptime``
    stays, so nobody's lease ends, and when somebody was seen is not known.
    ``open_transactions``: what is known of transactions that keep a database from freeing space, each as a text.
    """

    path: str
    stream: str
    ancestors: Mapping[str, int]
    schema: pa.Schema
    settings: StreamSettings
    wall: int
    uptime: int
    head: Head
    horizon: Head
    records: Mapping[str, ProducerRecord]
    forgotten: int
    rejected: int
    rejected_removed: int
    rejections: int
    readers: tuple[ReaderInfo, ...]
    statuses: tuple[ReportedStatus, ...]
    moved: int | None = None
    keys: Mapping[str, Sequence[bytes]] = field(default_factory=dict)
    cuts: Mapping[str, Sequence[LoggedCut]] = field(default_factory=dict)
    open_transactions: tuple[str, ...] = ()
    forgotten_epoch: int = 0
    restarted: bool = False

    @cached_property
    def due(self) -> list[Event]:
        """The events that ``Store.expire`` would log at this moment."""
        attached = [record for record in self.records.values() if record.attached]
        return [event for event, _ in overdue(attached, self.uptime, self.settings.idleTimeout)]

    def position_of(self, reader: str) -> Position | None:
        """Returns the position of a registered reader; None if it is not registered."""
        return next((one.position for one in self.readers if one.name == reader), None)

    @property
    def logged_clock(self) -> StreamClock:
        """The clock after the last event of the log."""
        clocks = {name: record.clock for name, record in self.records.items()}
        members = SortedMembers({name: clock for name, clock in clocks.items() if clock is not None})
        clock = self.settings.clock(members)
        clock.floor, clock.largest = self.head.floor, self.head.largest
        return clock

    @cached_property
    def clock(self) -> StreamClock:
        """The clock as the next poll logs it, which may be long in coming: after the events that are ``due``."""
        clock = self.logged_clock
        clock.replay(self.due)
        return clock

    @cached_property
    def producers(self) -> Mapping[str, ProducerInfo]:
        """The producers by name. Those whose lease has ended, or who became idle, have that status."""
        due = {event.producer: Status.DETACHED if isinstance(event, Detached) else Status.IDLE for event in self.due}
        infos = {name: record.info for name, record in self.records.items()}
        return {name: replace(info, status=due[name]) if name in due else info for name, info in infos.items()}

    @cached_property
    def seen(self) -> Mapping[str, LastSeen]:
        """When each producer was last seen."""
        return {name: record.last_seen(self.uptime) for name, record in self.records.items()}
