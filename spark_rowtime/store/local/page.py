"""LocalPage: a transaction of the catalog, as the ledger sees it."""

from collections.abc import Callable, Sequence

import pyarrow as pa

from spark_rowtime.bounds.clock import Event, ProducerClock
from spark_rowtime.bounds.key_parts import KeyChanges
from spark_rowtime.bounds.origin import BoundOrigin
from spark_rowtime.bounds.topic_cut import LoggedCut
from spark_rowtime.store.commits import Rejected, Staged
from spark_rowtime.store.local import cuts, key_floors, producers, rejections, statuses
from spark_rowtime.store.local.catalog import Catalog
from spark_rowtime.store.local.log import Log
from spark_rowtime.store.local.producers import Stored
from spark_rowtime.store.local.raised import raised
from spark_rowtime.store.page import Page
from spark_rowtime.store.position import Head
from spark_rowtime.store.record import ProducerRecord
from spark_rowtime.store.rejection_rules import marked
from spark_rowtime.store.settings import StreamSettings
from spark_rowtime.store.snapshot import WRITER


class LocalPage(Page):
    """See :class:`Page`. The transaction is that of the store, whose log has caught up."""

    def __init__(
        self,
        catalog: Catalog,
        log: Log,
        schema: pa.Schema,
        settings: StreamSettings,
        now: int,
        wall: int,
        require_staged: Callable[[Sequence[Staged]], None],
    ) -> None:
        """``require_staged``: see :class:`Page`."""
        self._catalog, self._log, self._schema, self._settings = catalog, log, schema, settings
        self.head, self.now, self.wall, self._require_staged = log.last, now, wall, require_staged
        self.trains: list[Staged] = []
        """Those that were appended."""
        self._stored: dict[str, Stored] = {}
        """The producers that were read or saved, as the catalog has them."""

    def forgotten_epoch(self) -> int:
        return producers.totals(self._catalog).forgotten_epoch

    def find(self, name: str) -> ProducerRecord | None:
        record = producers.find(self._catalog, name)
        self._stored[name] = producers.stored(record)
        return record

    def names(self) -> Sequence[str]:
        return producers.names(self._catalog)

    def weakest_but(self, name: str) -> tuple[str, ProducerClock] | None:
        return producers.extreme(self._catalog, name)

    def strongest_floor_but(self, name: str) -> int | None:
        found = producers.extreme(self._catalog, name, strongest=True)
        return found[1].floor if found else None

    def has_idle_but(self, name: str) -> bool:
        return producers.has_idle(self._catalog, name)

    def overdue(self) -> Sequence[ProducerRecord]:
        found = producers.overdue(self._catalog, self.now, self._settings.idleTimeout)
        self._stored.update({record.name: producers.stored(record) for record in found})
        return found

    def raised(self, bound: int) -> BoundOrigin | None:
        return raised(self._catalog, bound)

    def late_rows(self, record: ProducerRecord) -> tuple[Rejected, ...]:
        return rejections.of_receipt(self._catalog, self._schema, record.name, record.number)

    def require_staged(self, trains: Sequence[Staged]) -> None:
        self._require_staged(trains)

    def append(self, event: Event, head: Head, train: Staged | None) -> None:
        self._log.append(event, head, train, self.now)
        self.head = head
        self.trains += [] if train is None else [train]

    def save(self, record: ProducerRecord) -> None:
        if record.name not in self._stored:
            self.find(record.name)
        self._stored[record.name] = producers.save(self._catalog, record, self._stored[record.name])

    def add_cut(self, logged: LoggedCut) -> None:
        cuts.add(self._catalog, logged)

    def reject(self, producer: str, number: int, known: Sequence[Rejected], late: Sequence[Rejected]) -> None:
        before, first = rejections.totals(self._catalog), rejections.newest(self._catalog)
        for rejected, at_commit in marked(known, late):
            rejections.add(self._catalog, producer, number, self.wall, rejected, at_commit)
        rejections.limit(self._catalog, self._schema, before, first, self._settings.retainRejected)

    def add_keys(self, producer: str, number: int, keys: KeyChanges) -> None:
        key_floors.add(self._catalog, producer, number, keys)

    def set_query_status(self, producer: str, content: str) -> None:
        statuses.save(self._catalog, WRITER, producer, content, self.now)
