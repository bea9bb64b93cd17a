"""The history of a stream in a directory: read for another kind of store, or written from it."""

import json
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from spark_rowtime.bounds.origin import BoundOrigin
from spark_rowtime.bounds.topic_cut import LoggedCut
from spark_rowtime.store.base import WRITER, Staged
from spark_rowtime.store.forks import no_fork
from spark_rowtime.store.history import (
    About,
    History,
    KeptRejection,
    KnownAccount,
    KnownReader,
    LoggedEvent,
)
from spark_rowtime.store.local import accounts, cuts, producers, readers, rejections
from spark_rowtime.store.local.ancestors import ancestors
from spark_rowtime.store.local.catalog import (
    BUSY_TIMEOUT,
    CATALOG,
    STORAGE_ERRORS,
    Catalog,
    create_catalog,
    storage_error,
)
from spark_rowtime.store.local.collector import full_segment
from spark_rowtime.store.local.copy import copy_local
from spark_rowtime.store.local.directory import building
from spark_rowtime.store.local.seal import crc, intact, seal
from spark_rowtime.store.local.segment import Location, SegmentReader, SegmentWriter
from spark_rowtime.store.local.uptime import COPIED
from spark_rowtime.store.record import ProducerRecord
from spark_rowtime.store.widths import width_class

_EVENT = f"INSERT INTO events VALUES ({', '.join('?' * 17)})"  # noqa: S608  (constants)
_REJECTED = f"INSERT INTO rejected VALUES ({', '.join('?' * 9)})"  # noqa: S608
_SELECT_REJECTED = (
    "SELECT r.id, r.producer, r.number, r.time, r.reason, r.bound, r.at_commit, r.rows, r.seal, "
    "o.owner, o.producer, o.event FROM rejected r LEFT JOIN rejected_origins o ON o.id = r.id ORDER BY r.id"
)


@contextmanager
def exported(path: str) -> Iterator[History]:
    """Yields the history of the stream at ``path`` as of now, which others may write to meanwhile.

    It is read from a copy in the directory for temporary files.
    """
    with tempfile.TemporaryDirectory(prefix="rowtime-copy-") as folder:
        copy = Path(folder) / "stream"
        copy_local(path, str(copy))
        try:
            with no_fork(), closing(Catalog(copy / CATALOG, "process", BUSY_TIMEOUT)) as catalog:
                yield _Exported(copy, catalog)
        except STORAGE_ERRORS as error:
            raise storage_error(error, path) from error


class _Exported(History):
    def __init__(self, folder: Path, catalog: Catalog) -> None:
        self._catalog = catalog
        _, schema, settings = catalog.meta()
        self._reader = SegmentReader(folder, schema)
        former = ancestors(catalog.execute)
        (stream, _), counted = list(former.items())[-1], producers.totals(catalog)
        before = {name: seq for name, seq in former.items() if name != stream}
        removed = rejections.totals(catalog).removed
        forgotten = (counted.forgotten, counted.forgotten_accepted, counted.forgotten_rejected, counted.forgotten_epoch)
        self.about = About(stream, before, schema, settings, self._uptime(), removed, *forgotten)

    def _uptime(self) -> int:
        row = self._catalog.execute("SELECT boot, ahead, counted, seal FROM uptime").fetchone()
        stamps = "SELECT COALESCE(MAX(MAX(seen, sent)), 0) FROM producers"
        (last,) = self._catalog.execute(stamps).fetchone()
        return int(last) if row is None else max(int(last), sum(intact(row, "uptime")[1:3]))

    def events(self) -> Iterator[LoggedEvent]:
        with closing(self._reader):
            for row in self._catalog.execute("SELECT * FROM events ORDER BY seq"):
                yield self._event(intact(row, "events"))

    def _event(self, event: tuple[Any, ...]) -> LoggedEvent:
        *values, rows, least, largest, width = event[:12]
        if width is None:
            return LoggedEvent._make((*values, rows, None))
        place = Location(*event[12:])
        train = self._reader.read(place, rows, f"train {event[0]} of {event[2]!r}")
        return LoggedEvent._make((*values, rows, (Staged(rows, least, largest, place), train)))

    def producers(self) -> Iterator[ProducerRecord]:
        for one in producers.everyone(self._catalog):
            yield producers.with_checkpoint(self._catalog, one)

    def rejections(self) -> Iterator[KeptRejection]:
        for row in self._catalog.execute(_SELECT_REJECTED):
            number, producer, commit, time, reason, bound, at_commit, _, _, *whose = row
            found = rejections.portion(self._catalog, self.about.schema, number - 1, number)[0]
            origin = None if whose[0] is None else BoundOrigin(*whose)
            rows = found.rejected.rows
            yield KeptRejection(number, producer, commit, time, reason, bound, bool(at_commit), origin, rows)

    def readers(self) -> Iterator[KnownReader]:
        yield from readers.known(self._catalog)

    def key_floors(self) -> Iterator[tuple[str, int, bytes]]:
        rows = self._catalog.execute("SELECT producer, number, content, seal FROM key_floors ORDER BY producer, number")
        for producer, number, content, check in rows:
            intact((producer, number, crc(content), check), "key_floors")
            yield producer, number, content

    def cuts(self) -> Iterator[LoggedCut]:
        return cuts.everyone(self._catalog)

    def accounts(self) -> Iterator[KnownAccount]:
        yield from (one for one in accounts.known(self._catalog) if one.role == WRITER)


def import_local(history: History, to: str) -> None:
    """Writes the history as a new stream at ``to``. Raises StreamExistsError if anything exists there."""
    with building(Path(to).absolute(), "copying") as folder:
        about = history.about
        create_catalog(folder / CATALOG, about.schema, about.settings)
        writer = SegmentWriter(folder, about.schema, full_segment(about.settings), durable=True)
        try:
            with closing(Catalog(folder / CATALOG, "power", BUSY_TIMEOUT)) as catalog, catalog.transaction("IMMEDIATE"):
                _write(catalog, history, writer)
        finally:
            writer.close()


def _write(catalog: Catalog, history: History, writer: SegmentWriter) -> None:
    last = 0
    for event in history.events():
        _write_event(catalog, event, writer)
        last = event.seq
    for one in history.producers():
        producers.save(catalog, one, producers.NEW)
    about = history.about
    counted = producers.totals(catalog)
    forgotten = (about.forgotten, about.forgotten_accepted, about.forgotten_rejected, about.forgotten_epoch)
    totals = producers.Totals(counted.attached, counted.rejected + about.forgotten_rejected, *forgotten)
    producers.set_totals(catalog, totals)
    size = sum(_write_rejection(catalog, one) for one in history.rejections())
    values = (size, about.rejected_removed)
    catalog.execute("INSERT INTO rejected_totals VALUES (?, ?, ?)", (*values, seal(values)))
    for reader in history.readers():
        readers.keep(catalog, reader.name, reader.position, reader.seen)
    for producer, number, content in history.key_floors():
        check = seal((producer, number, crc(content)))
        catalog.execute("INSERT INTO key_floors VALUES (?, ?, ?, ?)", (producer, number, content, check))
    for cut in history.cuts():
        cuts.add(catalog, cut)
    for account in history.accounts():
        accounts.save(catalog, account.role, account.name, account.content, account.seen)
    uptime = (COPIED, about.uptime, 0)
    catalog.execute("INSERT INTO uptime VALUES (?, ?, ?, ?)", (*uptime, seal(uptime)))
    meta = {"stream": str(uuid.uuid4()), "ancestors": json.dumps({**about.ancestors, about.stream: last})}
    for name in meta.items():
        catalog.execute("INSERT OR REPLACE INTO meta VALUES (?, ?, ?)", (*name, seal(name)))


def _write_event(catalog: Catalog, event: LoggedEvent, writer: SegmentWriter) -> None:
    place: tuple[Any, ...] = (event.rows, None, None, None, None, None, None, None)
    if event.train is not None:
        staged, rows = event.train
        limits = (staged.least, staged.largest, width_class(staged.least, staged.largest))
        place = (event.rows, *limits, *writer.append(rows))
    values = (*event[:8], *place)
    catalog.execute(_EVENT, (*values, seal(values)))


def _write_rejection(catalog: Catalog, one: KeptRejection) -> int:
    rows = one.rows.serialize().to_pybytes()
    values = (one.producer, one.commit, one.time, one.reason, one.bound, int(one.at_commit))
    catalog.execute(_REJECTED, (one.number, *values, rows, seal((*values, crc(rows)))))
    if one.origin is not None:
        row = (one.number, one.origin.owner, one.origin.producer, one.origin.event)
        catalog.execute("INSERT INTO rejected_origins VALUES (?, ?, ?, ?, ?)", (*row, seal(row)))
    return len(rows)
