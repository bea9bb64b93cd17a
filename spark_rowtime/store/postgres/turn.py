"""Turn: what one transaction does with a producer."""

from collections.abc import Sequence

from spark_rowtime.bounds.bound import stronger
from spark_rowtime.bounds.clock import GONE, Expected, Joined, Left, Sent, Status
from spark_rowtime.bounds.key_parts import KeyChanges
from spark_rowtime.bounds.topic_cut import LoggedCut, TopicCut
from spark_rowtime.store.admission import Cuts, admit_cut, is_next, landing, require_open, require_whole
from spark_rowtime.store.base import REJECTS_ONLY, Commit, Receipt, Rejected, Staged, Store
from spark_rowtime.store.postgres import accounts, cuts, named_objects, records, rejections
from spark_rowtime.store.postgres.ahead import COPIED
from spark_rowtime.store.postgres.log import Log
from spark_rowtime.store.postgres.records import Record
from spark_rowtime.store.postgres.transaction import Transaction

_ADD_KEYS = "INSERT INTO rowtime.key_floors VALUES (%s, %s, %s, %s)"
_COPY_KEYS = f"INSERT INTO rowtime.key_floors VALUES (%s, %s, %s, {COPIED})"  # noqa: S608  (a constant)


class Turn:
    """What one transaction does with a producer, whose row the log's members were turned to."""

    def __init__(self, store: Store, transaction: Transaction, log: Log) -> None:
        self._store, self._settings = store, store.settings
        self.transaction, self.log = transaction, log

    def save(self, record: Record) -> None:
        records.save(self.transaction, record, self._settings)

    def expire(self, but: str = "") -> bool:
        """Logs what is due, apart from what is about the producer ``but``. Returns whether there was anything."""
        head, now, idle = self.transaction.head, self.transaction.at.uptime, self._settings.idleTimeout
        if head.due is None or now <= head.due:
            return False
        rows = self.transaction.ask(records.overdue_query(self.transaction.stream, now, idle))
        due = [event for event in records.overdue(rows, now, idle) if event.producer != but]
        known = records.find_all(self.transaction, [event.producer for event in due])
        for event in due:
            self.log.members.turn_to(known[event.producer])
            self.log.tick(event, known[event.producer])
        records.renew_due(self.transaction, idle)
        return bool(due)

    def take_over(self, record: Record, holder: str) -> None:
        record.holder, record.epoch = holder, record.epoch + 1
        if record.status == Status.COMPLETE:
            self.save(record)
        else:
            record.sent = record.seen
            self.log.tick(Joined(record.name), record)

    def renew(self, record: Record, *, sends: bool) -> bool:
        record.seen = self.transaction.at.uptime
        again = record.status == Status.DETACHED and (sends or not record.let_go)
        if again:
            require_open(self._store.path, record.name, self.transaction.head.floor)
            promised, record.sent = record.floor, record.seen
            self.log.tick(Joined(record.name), record)
            if stronger(promised, record.floor) != record.floor:
                self.log.tick(Sent(record.name, promised), record)
        else:
            self.save(record)
        return again

    def leave(self, record: Record, cut: TopicCut | None) -> None:
        if record.status in (Status.LEFT, Status.COMPLETE):
            return
        record.seen, hold = self.transaction.at.uptime, self.log.clock.in_force(record.name)
        self.log.tick(Left(record.name), record)
        if cut is not None:
            cuts.add(self.transaction, LoggedCut(self.transaction.head.seq, record.name, hold, cut))

    def commit(self, commit: Commit, record: Record, cuts: Cuts) -> Receipt | None:
        """Makes the commit, with the trains that were cut before; None: some must be cut at the head's floor first."""
        if not is_next(commit, record.number, self._store.path):
            return self._receipt(record)
        head = self.transaction.head
        admitted = admit_cut(commit.trains, cuts, head.floor, self.log.raised)
        if admitted is None:
            return None
        staged, late = admitted
        require_whole(commit, late)
        named_objects.require_kept(self.transaction, staged, self._store.path)
        record.seen = self.transaction.at.uptime
        if self._land(commit, staged, record):
            record.sent = record.seen
        rejected = [(r, False) for r in commit.rejected] + [(r, True) for r in late]
        if rejected:
            limit = self._settings.retainRejected
            rejections.add(self.transaction, commit.producer, commit.number, rejected, limit)
        record.accepted += sum(train.rows for train in staged)
        record.rejected += sum(r.rows.num_rows for r, _ in rejected)
        record.number, record.disorder = commit.number, commit.disorder
        if commit.checkpoint is not None:
            record.checkpoint = commit.checkpoint
        if commit.keys is not None:
            self._add_keys(commit.producer, commit.number, commit.keys)
        if commit.account is not None:
            accounts.save(self.transaction, record.name, commit.account)
        record.receipt_seq, record.receipt_floor = head.seq, head.floor
        self.save(record)
        return Receipt(head.seq, head.floor, late)

    def reject(self, record: Record, number: int, rejected: tuple[Rejected, ...]) -> None:
        limit = self._settings.retainRejected
        rejections.add(self.transaction, record.name, number, [(r, False) for r in rejected], limit)
        record.rejected += sum(r.rows.num_rows for r in rejected)
        record.number, record.seen, record.checkpoint = number, self.transaction.at.uptime, REJECTS_ONLY
        self.save(record)

    def _receipt(self, record: Record) -> Receipt:
        rows = self.transaction.ask(rejections.of_receipt(self.transaction.stream, record.name, record.number))
        late = tuple(rejections.opened(row, self._store.schema).rejected for row in rows)
        return Receipt(record.receipt_seq, record.receipt_floor, late)

    def _land(self, commit: Commit, staged: tuple[Staged, ...], record: Record) -> bool:
        """Logs the rows and the bound of the commit. Returns whether it had rows or a new bound."""
        in_force = self.log.clock.in_force(commit.producer)
        landed = landing(commit, staged, record.floor, record.status, in_force)
        for event, train, bound in landed.events:
            hold = self.log.clock.in_force(commit.producer)
            seq = self.log.append(event, train).seq
            if bound is not None:
                cuts.add(self.transaction, bound.logged(seq, commit.producer, hold))
        if landed.events:
            record.tick(self.log.clock.producers.get(commit.producer), GONE[Sent])
        return landed.sends

    def _add_keys(self, producer: str, number: int, keys: KeyChanges) -> None:
        stream = self.transaction.stream
        if keys.whole:
            self.transaction.write(
                "DELETE FROM rowtime.key_floors WHERE stream = %s AND producer = %s", stream, producer
            )
        place = self.transaction.ahead.copied(keys, stream)
        sql, given = (_ADD_KEYS, (keys.content,)) if place is None else (_COPY_KEYS, place)
        self.transaction.write(sql, stream, producer, number, *given)


def expect(transaction: Transaction, log: Log, names: Sequence[str]) -> None:
    """Makes a new stream wait for each of the producers."""
    for name in names:
        log.members.turn_to(name)
        record = records.newcomer(name, Status.EXPECTED, transaction.head.forgotten_epoch)
        log.tick(Expected(name), record)
