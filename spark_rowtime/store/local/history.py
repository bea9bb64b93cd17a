"""The history of a stream in a directory: read for another kind of store, or written from it."""

import json
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from spark_rowtime.bounds.clock import KINDS
from spark_rowtime.bounds.topic_cut import LoggedCut
from spark_rowtime.store.commits import Staged
from spark_rowtime.store.forks import no_fork
from spark_rowtime.store.history import (
    History,
    KeptRejection,
    LoggedEvent,
    copied_readers,
    forgotten,
    key_parts,
    writers,
)
from spark_rowtime.store.local import cuts, key_floors, meta, producers, readers, rejections, snapshot, statuses
from spark_rowtime.store.local.catalog import BUSY_TIMEOUT, CATALOG, Catalog, create_catalog
from spark_rowtime.store.local.collector import full_segment
from spark_rowtime.store.local.copy import copy_local
from spark_rowtime.store.local.directory import building
from spark_rowtime.store.local.folders import absolute
from spark_rowtime.store.local.log import Log
from spark_rowtime.store.local.seal import Damaged, intact, sealed
from spark_rowtime.store.local.segment import Location, SegmentWriter
from spark_rowtime.store.local.segment_reader import SegmentReader
from spark_rowtime.store.local.storage_errors import storage_errors
from spark_rowtime.store.local.uptime import Uptime
from spark_rowtime.store.steady_clock import COPIED, machine_reading


@contextmanager
def exported(path: str) -> Iterator[History]:
    """Yields the history of the stream at ``path`` as of now, which others may write to meanwhile.

    It is read from a copy in the directory for temporary files.
    """
    with tempfile.TemporaryDirectory(prefix="rowtime-copy-") as folder:
        copy = Path(folder) / "stream"
        copy_local(path, str(copy))
        with storage_errors(path), no_fork(), closing(Catalog(copy / CATALOG, "process", BUSY_TIMEOUT)) as catalog:
            yield _Exported(path, copy, catalog)


class _Exported(History):
    def __init__(self, path: str, copy: Path, catalog: Catalog) -> None:
        self._catalog, log = catalog, Log(catalog)
        log.catch_up()
        clock = Uptime(catalog, machine_reading, lambda: 0)
        found = snapshot.read(path, catalog, log, clock, 0, full=True)  # no copy takes over the wall clock
        (stream, _), former = list(found.ancestors.items())[-1], dict(found.ancestors)
        del former[stream]
        self.snapshot = replace(found, stream=stream, ancestors=former)
        self._reader = SegmentReader(copy, found.schema)

    def events(self) -> Iterator[LoggedEvent]:
        with closing(self._reader):
            for row in self._catalog.execute("SELECT * FROM events ORDER BY seq"):
                yield self._event(intact(row, "events"))

    def _event(self, event: tuple[Any, ...]) -> LoggedEvent:
        if event[1] not in KINDS:
            raise Damaged(f"event {event[0]} is of no kind that there is")
        *values, rows, least, largest, width = event[:12]
        if width is None:
            return LoggedEvent._make((*values, rows, None))
        place = Location(*event[12:])
        train = self._reader.read(place, rows, f"train {event[0]} of {event[2]!r}")
        return LoggedEvent._make((*values, rows, (Staged(rows, least, largest, place), train)))

    def rejections(self) -> Iterator[KeptRejection]:
        return rejections.everyone(self._catalog, self.snapshot.schema)

    def cuts(self) -> Iterator[LoggedCut]:
        return cuts.everyone(self._catalog)


def import_local(history: History, to: str) -> None:
    """Writes the history as a new stream at ``to``. Raises StreamExistsError if anything exists there."""
    with building(absolute(to), "copying") as folder:
        about = history.snapshot
        create_catalog(folder / CATALOG, about.schema, about.settings)
        writer = SegmentWriter(folder, about.schema, full_segment(about.settings), durable=True)
        try:
            with closing(Catalog(folder / CATALOG, "power", BUSY_TIMEOUT)) as catalog, catalog.transaction("IMMEDIATE"):
                _write(catalog, history, writer)
                writer.sync()
        finally:
            writer.close()


def _write(catalog: Catalog, history: History, writer: SegmentWriter) -> None:
    log = Log(catalog)
    for event in history.events():
        log.restore(event, event.train and replace(event.train[0], location=writer.append(event.train[1])))
    now = history.snapshot
    for record in now.records.values():
        producers.save(catalog, record, producers.NEW)
    attached = producers.totals(catalog).attached
    producers.set_totals(catalog, producers.Totals(attached, now.rejected, *forgotten(now)))
    for kept in history.rejections():
        rejections.restore(catalog, kept)
    rejections.set_totals(catalog, rejections.totals(catalog)._replace(removed=now.rejected_removed))
    for reader in copied_readers(now):
        readers.keep(catalog, reader.name, reader.position, now.uptime - reader.unseen, reader.reads)
    for part in key_parts(now):
        key_floors.restore(catalog, *part)
    for cut in history.cuts():
        cuts.add(catalog, cut)
    for one in writers(now):
        statuses.save(catalog, one.role, one.name, one.content, now.uptime - one.unseen)
    catalog.execute("INSERT INTO uptime VALUES (?, ?, ?, ?)", sealed((COPIED, now.uptime, 0)))
    former = json.dumps({**now.ancestors, now.stream: now.head.seq})
    meta.put(catalog.execute, stream=str(uuid.uuid4()), ancestors=former)
