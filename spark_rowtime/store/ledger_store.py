"""LedgerStore: a store that changes its streams by the ledger alone."""

import threading
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import TypeVar

import pyarrow as pa

from spark_rowtime.bounds.topic_cut import TopicCut
from spark_rowtime.store.base import Renewal, Store
from spark_rowtime.store.commits import Commit, Receipt, Rejected
from spark_rowtime.store.ledger import Ledger
from spark_rowtime.store.limits import Cuts, Limits, cut
from spark_rowtime.store.page import Page
from spark_rowtime.store.record import Held, ProducerInfo, ProducerRecord
from spark_rowtime.store.views import rejected_table

Result = TypeVar("Result")


class LedgerStore(Store):
    """See :class:`Store`. A store of this kind has pages, bytes and retention, and decides nothing else."""

    @abstractmethod
    def _decide(self, decision: Callable[[Ledger], Result], *about: str) -> Result:
        """Runs a decision over a page of its own, and keeps what it has written if it does not raise.

        It may run again if it is not known whether it was kept. ``about``: the producers that it asks for.
        """

    def _ledger(self, page: Page) -> Ledger:
        return Ledger(page, self.path, self.settings)

    def _info(self, record: ProducerRecord) -> ProducerInfo:
        return record.info

    def attach(self, producer: str, session: str, declaration: str, lease: int | None = None) -> ProducerInfo:
        return self._decide(lambda ledger: self._info(ledger.attach(producer, session, declaration, lease)), producer)

    def expect(self, names: Sequence[str]) -> None:
        self._decide(lambda ledger: ledger.expect(names), *names)

    def renew(self, producer: str, epoch: int, *, sends: bool = False, session: str | None = None) -> bool:
        held = Held(producer, epoch, session)
        return self._decide(lambda ledger: ledger.renew(held, sends=sends), producer)

    def renew_all(self, producers: Sequence[Held]) -> list[Renewal]:
        return self._decide(lambda ledger: ledger.renew_all(producers), *(held.producer for held in producers))

    def expire(self) -> bool:
        return self._decide(lambda ledger: ledger.expire())

    def commit(self, commit: Commit) -> Receipt:
        """Rows that are late, or too far ahead, are found out on the page, and cut off without it."""
        cuts: Cuts = {}
        while not isinstance(made := self._commit(commit, cuts), Receipt):
            cuts = cut(self, commit.trains, made)
        return made

    def _commit(self, commit: Commit, cuts: Cuts) -> Receipt | Limits:
        return self._decide(lambda ledger: ledger.commit(commit, cuts), commit.producer)

    def reject(self, producer: str, number: int, rejected: tuple[Rejected, ...], digest: str) -> None:
        self._decide(lambda ledger: ledger.reject(producer, number, rejected, digest), producer)

    def leave(self, producer: str, epoch: int, cut: TopicCut | None = None, *, session: str | None = None) -> None:
        self._decide(lambda ledger: ledger.leave(Held(producer, epoch, session), cut), producer)

    def detach(self, producer: str) -> None:
        self._decide(lambda ledger: ledger.detach(producer), producer)

    def close_producer(self, producer: str, *, complete: bool = False) -> None:
        self._decide(lambda ledger: ledger.close(producer, complete=complete), producer)

    def rejected(self) -> pa.Table:
        return rejected_table(self.rejections(), self.schema)


class Sharers:
    """Counts those who share an open store, from one on. Each of them closes it; the last one closes it in fact."""

    def __init__(self, open_here: Callable[[], bool], is_current: Callable[[], bool]) -> None:
        """``open_here``: whether the store is open in this process. Where it is not, nobody takes the lock."""
        self._lock, self._count = threading.Lock(), 1
        self._open_here, self._is_current = open_here, is_current

    def add(self) -> bool:
        """Lets one more share the store, so that one more ``close`` is needed to close it.

        Returns False if the store is closed, was opened in another process, or its stream was deleted, renamed,
        altered or restored from a copy: whoever opens the stream now needs a store of its own.
        """
        if not self._open_here():
            return False
        with self._lock:
            added = self._count > 0 and self._open_here() and self._is_current()
            self._count += added
            return added

    def remove(self) -> bool:
        """Removes one. Returns whether it was the last one, and the store is open here."""
        if not self._open_here():
            return False
        with self._lock:
            self._count -= 1
            return self._count == 0
