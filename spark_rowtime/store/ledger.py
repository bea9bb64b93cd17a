"""Ledger: what attach, expect, renew, expire, commit, reject, leave, detach and close do to a stream of any store."""

from collections.abc import Sequence

from spark_rowtime.bounds.bound import stronger
from spark_rowtime.bounds.clock import GONE, Detached, Event, Expected, Joined, Left, Sent, Status
from spark_rowtime.bounds.members import COUNTING, Members, ProducerClock, SortedMembers, place
from spark_rowtime.bounds.topic_cut import LoggedCut, TopicCut
from spark_rowtime.errors import ProducerFencedError, StreamCompleteError
from spark_rowtime.store.admission import (
    fenced,
    has_rejected,
    is_next,
    landing,
    never_attached,
    redeclared,
    require_admitted,
    require_all_accepted,
    require_open,
    set_back,
)
from spark_rowtime.store.base import Renewal
from spark_rowtime.store.commits import REJECTS_ONLY, Commit, Receipt, Rejected, Staged
from spark_rowtime.store.limits import Cuts, Limits, cut_off, fitting
from spark_rowtime.store.page import Page
from spark_rowtime.store.position import Head
from spark_rowtime.store.reach import Reach, ceiling
from spark_rowtime.store.record import WAITED_FOR, Held, ProducerRecord, overdue
from spark_rowtime.store.settings import StreamSettings
from spark_rowtime.types.timestamps import END


class Ledger:
    """The state machine of a stream, over one page: pure decisions, which read and write nothing but the page.

    A call that raises has to end the page without its writes. The methods are described in :class:`Store`. The suite in
    tests/store runs over each store, and compares it with an oracle.
    """

    def __init__(self, page: Page, path: str, settings: StreamSettings) -> None:
        """``path``: that of the stream, for messages."""
        self._page, self._path, self._settings = page, path, settings
        self._members = _PageMembers(page)
        self.clock = settings.clock(self._members)
        """The clock after the last event."""
        self.clock.floor, self.clock.largest = page.head.floor, page.head.largest

    def attach(self, producer: str, session: str, declaration: str, lease: int | None) -> ProducerRecord:
        """See ``Store.attach``."""
        require_admitted(self._settings.closed, producer, self._path)
        self.expire()
        record = self._page.find(producer) or self._newcomer(producer)
        if record.declaration not in ("", declaration):
            raise redeclared(producer, record.declaration, declaration)
        if record.clock is None and record.status is not Status.COMPLETE:
            require_open(self._path, producer, self.clock.floor)
        record.lease, record.seen, record.declaration = lease, self._page.now, declaration
        if record.session != session or record.status in (Status.LEFT, Status.DETACHED):
            self._take_over(record, session)
        else:
            self._page.save(record)
        return record

    def _take_over(self, record: ProducerRecord, session: str) -> None:
        record.session, record.epoch = session, record.epoch + 1
        if record.status is Status.COMPLETE:
            self._page.save(record)
        else:
            record.sent = record.seen
            self._tick(Joined(record.name), record)

    def expect(self, names: Sequence[str]) -> None:
        """See ``Store.expect``."""
        for name in names:
            if self._page.find(name) is None:
                require_open(self._path, name, self.clock.floor)
                self._tick(Expected(name), self._newcomer(name))

    def _newcomer(self, name: str) -> ProducerRecord:
        """Returns a producer that has never attached, or was forgotten; then whoever held it before stays fenced."""
        return ProducerRecord(name, epoch=self._page.forgotten_epoch())

    def renew(self, held: Held, *, sends: bool = False) -> bool:
        """See ``Store.renew``."""
        record, producer = self._current(held), held.producer
        again = record.status is Status.DETACHED and (sends or not record.detached_by_hand)
        if again:
            require_open(self._path, producer, self.clock.floor)
        record.seen = self._page.now
        if not again:
            self._page.save(record)
            return False
        promised, record.sent = record.floor, record.seen
        self._tick(Joined(producer), record)
        if stronger(promised, record.floor) != record.floor:
            self._tick(Sent(producer, promised), record)
        return True

    def renew_all(self, producers: Sequence[Held]) -> list[Renewal]:
        """See ``Store.renew_all``."""
        return [self._renew_if_possible(held) for held in producers]

    def _renew_if_possible(self, held: Held) -> Renewal:
        try:
            return self.renew(held)
        except (ProducerFencedError, StreamCompleteError) as error:
            return error

    def expire(self, but: str = "") -> bool:
        """Logs what is due, apart from what is about the producer ``but``. Returns whether there was anything."""
        due = [(event, record) for event, record in self._due() if record.name != but]
        for event, record in due:
            self._tick(event, record)
        return bool(due)

    def _due(self) -> list[tuple[Event, ProducerRecord]]:
        return overdue(self._page.overdue(), self._page.now, self._settings.idleTimeout)

    def commit(self, commit: Commit, cuts: Cuts) -> Receipt | Limits:
        """See ``Store.commit``. ``cuts``: the trains that were cut before.

        Returns the limits at which more trains have to be cut first, if some have rows beyond them: a page neither
        reads nor stages rows. Nothing but what was due has happened then.
        """
        record = self._current(Held(commit.producer, commit.epoch, commit.session))
        self.expire(but=commit.producer)
        if not is_next(commit, record.number, self._path):
            return Receipt(record.receipt_seq, record.receipt_floor, self._page.late_rows(record))
        reach = Reach(self._path, self._settings, self._page.wall)
        reach.require_of(commit, record.floor)
        trains, limits = fitting(commit.trains, cuts), Limits(self.clock.floor, ceiling(self._settings, reach.wall))
        self._page.require_staged(trains)
        if not all(map(limits.allow, trains)):
            return limits
        cut = cut_off(cuts, limits.floor, self._page.raised)
        require_all_accepted(commit, cut, reach)
        record.seen = self._page.now
        if self._land(commit, trains, record):
            record.sent = record.seen
        self._reject(record, commit.number, commit.rejected, cut)
        self._write(commit, trains, record)
        return Receipt(record.receipt_seq, record.receipt_floor, cut)

    def _write(self, commit: Commit, trains: tuple[Staged, ...], record: ProducerRecord) -> None:
        """Writes what the producer has, now that its rows and its bound have landed."""
        record.accepted += sum(train.rows for train in trains)
        record.number, record.disorder = commit.number, commit.disorder
        if commit.checkpoint is not None:
            record.checkpoint = commit.checkpoint
        if commit.keys is not None:
            self._page.add_keys(commit.producer, commit.number, commit.keys)
        if commit.query_status is not None:
            self._page.set_query_status(commit.producer, commit.query_status)
        record.receipt_seq, record.receipt_floor = self._page.head.seq, self._page.head.floor
        self._page.save(record)

    def _land(self, commit: Commit, trains: tuple[Staged, ...], record: ProducerRecord) -> bool:
        """Logs the rows and the bound of the commit. Returns whether it had rows or a new bound."""
        landed = landing(commit, trains, record.floor, record.status, self._in_force(record))
        for event, train, bound in landed.events:
            before = None if bound is None else self._in_force(record)
            self._append(event, record, train)
            if bound is not None:
                self._page.add_cut(bound.logged(self._page.head.seq, record.name, before))
        return landed.sends

    def reject(self, producer: str, number: int, rejected: tuple[Rejected, ...], digest: str) -> None:
        """See ``Store.reject``."""
        record = self._page.find(producer) or self._newcomer(producer)
        if has_rejected(record, number, digest, self._path):
            return
        self._reject(record, number, rejected, ())
        record.number, record.seen, record.checkpoint = number, self._page.now, f"{REJECTS_ONLY} {digest}"
        self._page.save(record)

    def _reject(
        self, record: ProducerRecord, number: int, known: tuple[Rejected, ...], late: tuple[Rejected, ...]
    ) -> None:
        if known or late:
            self._page.reject(record.name, number, known, late)
            record.rejected += sum(one.rows.num_rows for one in known + late)

    def leave(self, held: Held, cut: TopicCut | None = None) -> None:
        """See ``Store.leave``."""
        record, producer = self._current(held), held.producer
        if record.status in (Status.LEFT, Status.COMPLETE):
            return
        record.seen, before = self._page.now, self._in_force(record)
        self._tick(Left(producer), record)
        if cut is not None:
            self._page.add_cut(LoggedCut(self._page.head.seq, producer, before, cut))

    def detach(self, producer: str) -> None:
        """See ``Store.detach``."""
        record = self._known(producer)
        if record.status in WAITED_FOR:
            record.detached_by_hand = True
            self._tick(Detached(producer), record)

    def close(self, producer: str, *, complete: bool) -> None:
        """See ``Store.close_producer``."""
        record = self._known(producer)
        if record.status is Status.COMPLETE or (record.status is Status.LEFT and not complete):
            return
        record.session, record.epoch, record.seen = "", record.epoch + 1, self._page.now
        self._tick(Sent(producer, END) if complete else Left(producer), record)

    def _current(self, held: Held) -> ProducerRecord:
        record = self._known(held.producer)
        if record.epoch != held.epoch:
            raise fenced(held.producer, held.epoch, record.epoch, record.status)
        if held.session not in (None, record.session):
            raise set_back(held.producer, self._path)
        return record

    def _known(self, producer: str) -> ProducerRecord:
        record = self._page.find(producer)
        if record is None:
            raise never_attached(producer, self._page.names(), self._path)
        return record

    def _in_force(self, record: ProducerRecord) -> int | None:
        self._members.turn_to(record)
        return self.clock.in_force(record.name)

    def _tick(self, event: Event, record: ProducerRecord) -> None:
        self._append(event, record)
        self._page.save(record)

    def _append(self, event: Event, record: ProducerRecord, train: Staged | None = None) -> None:
        """Logs an event of the producer. Its record is to be saved before one of another producer is logged."""
        self._members.turn_to(record)
        floor, last = self.clock.apply(event), self._page.head
        rows = last.rows + (train.rows if train else 0)
        self._page.append(event, Head(last.seq + 1, floor, self.clock.largest, rows), train)
        record.tick(self._members.get(record.name), GONE.get(type(event), Status.ATTACHED))


class _PageMembers(Members):
    """The producers of a page that count. One at a time may differ from what is saved: the one turned to last.

    Law (*in step*; tests/store/test_pages.py): they are what a scan of all records gives.
    """

    def __init__(self, page: Page) -> None:
        self._page = page
        self._name, self._record = "", ProducerRecord("")
        self._own: ProducerClock | None = None
        self._others: list[tuple[str, ProducerClock]] | None = None
        """The weakest of the others, if it was asked for already."""

    def turn_to(self, record: ProducerRecord) -> None:
        """Takes the producer as it is in ``record``, which changes from here on as the producer does."""
        if record is self._record:
            return
        if record.name != self._name:
            self._name, self._others = record.name, None
        self._record, self._own = record, record.clock

    def __bool__(self) -> bool:
        return self._own is not None or bool(self._weakest_other()) or self._page.has_idle_but(self._name)

    def get(self, producer: str) -> ProducerClock | None:
        """See :class:`Members`."""
        assert producer == self._name, "only the producer turned to is known"
        return self._own

    def __setitem__(self, producer: str, clock: ProducerClock) -> None:
        assert producer == self._name, "only the producer turned to may change"
        self._own = clock

    def remove(self, producer: str) -> None:
        """See :class:`Members`."""
        assert producer == self._name, "only the producer turned to may change"
        self._own = None

    def weakest(self) -> tuple[str, int | None] | None:
        """See :class:`Members`."""
        found = [*self._weakest_other(), *self._counting()]
        if len(found) > 1 and place(*found[1]) < place(*found[0]):
            found.reverse()
        return (found[0][0], found[0][1].floor) if found else None

    def strongest(self) -> int | None:
        """See :class:`Members`."""
        own = [clock.floor for _, clock in self._counting()]
        return stronger(own[0] if own else None, self._page.strongest_floor_but(self._name))

    def copy(self) -> SortedMembers:
        """Is not for a page, which ends with its transaction."""
        raise NotImplementedError

    def _counting(self) -> list[tuple[str, ProducerClock]]:
        return [(self._name, self._own)] if self._own is not None and self._own.status in COUNTING else []

    def _weakest_other(self) -> list[tuple[str, ProducerClock]]:
        if self._others is None:
            found = self._page.weakest_but(self._name)
            self._others = [] if found is None else [found]
        return self._others
