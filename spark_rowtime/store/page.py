"""Page: one transaction on one stream, as the ledger sees it."""

from collections.abc import Sequence
from typing import Protocol

from spark_rowtime.bounds.clock import Event, ProducerClock
from spark_rowtime.bounds.key_parts import KeyChanges
from spark_rowtime.bounds.origin import BoundOrigin
from spark_rowtime.bounds.topic_cut import LoggedCut
from spark_rowtime.store.commits import Rejected, Staged
from spark_rowtime.store.position import Head
from spark_rowtime.store.record import ProducerRecord


class Page(Protocol):
    """One transaction on one stream. Nobody else changes the stream meanwhile, and a page decides nothing.

    Laws, each a test of the same name in tests/store/test_pages.py:

    - *whole*: if the transaction ends well, everything written is there for the next page; otherwise nothing is.
    - *read your writes*: whatever is read contains what was written before in the same page.
    - *apart*: a record that was found or saved may be changed; the page has it as it was saved last.
    - *log*: ``head`` is that of the event appended last.
    - *members*: ``weakest_but``, ``strongest_floor_but`` and ``has_idle_but`` are what a scan of the records gives.
    - *overdue*: no record is missing whose lease ended before ``now``, or that was silent for longer than idleTimeout.
    - *raised*: of the events in the log, the first after which the stream's floor had reached the bound.
    - *receipt*: the late rows of a producer's last commit are there until its next one.
    - *uptime*: ``now`` stays the same in a page, and is not below that of any page before.
    """

    head: Head
    now: int
    """The uptime, in microseconds, as the store counts it for leases."""
    wall: int
    """The wall clock of the store, in microseconds. It may jump: ``maxAhead`` and times for people depend on it."""

    def forgotten_epoch(self) -> int:
        """Returns the largest epoch of a producer that ``gc`` has forgotten; 0 if there is none."""

    def find(self, name: str, /) -> ProducerRecord | None:
        """Returns what was last saved of the producer."""

    def names(self) -> Sequence[str]:
        """Returns the names of all producers."""

    def weakest_but(self, name: str, /) -> tuple[str, ProducerClock] | None:
        """Returns the first of the expected and attached producers apart from ``name``, idle ones left out.

        The order is that of ``bounds.members.place``.
        """

    def strongest_floor_but(self, name: str, /) -> int | None:
        """Returns the highest floor of the attached producers apart from ``name``, idle ones left out."""

    def has_idle_but(self, name: str, /) -> bool:
        """Returns whether a producer apart from ``name`` is idle."""

    def overdue(self) -> Sequence[ProducerRecord]:
        """Returns the attached producers whose time may be up."""

    def raised(self, bound: int, /) -> BoundOrigin | None:
        """See ``Store.raised``."""

    def late_rows(self, record: ProducerRecord, /) -> tuple[Rejected, ...]:
        """Returns what the producer's last commit had in rows that only the commit found to be late."""

    def require_staged(self, trains: Sequence[Staged], /) -> None:
        """Raises StoreUnavailableError, or DataLostError, if the bytes of a train are no longer there."""

    def append(self, event: Event, head: Head, train: Staged | None, /) -> None:
        """Appends an event to the log, which ends at ``head`` with it, and the rows that it brings."""

    def save(self, record: ProducerRecord, /) -> None:
        """Replaces what the stream knows of the producer."""

    def add_cut(self, logged: LoggedCut, /) -> None:
        """Stores a cut, with its event."""

    def reject(self, producer: str, number: int, known: Sequence[Rejected], late: Sequence[Rejected], /) -> None:
        """Keeps rejected rows under the commit ``number``: those that the sink knew, and those found late by it.

        It may remove older rejections; see ``Store.rejections``. The record is saved behind it.
        """

    def add_keys(self, producer: str, number: int, keys: KeyChanges, /) -> None:
        """Stores the changes of the producer's keys, of its commit ``number``; all of them, if they are whole."""

    def set_query_status(self, producer: str, content: str, /) -> None:
        """Replaces the producer's ReportedStatus as a WRITER."""
