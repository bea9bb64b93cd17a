"""Verifies a stream on disk: every row of its catalog, every train, and that they are consistent with each other."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from spark_rowtime.bounds.clock import KINDS, logged_event
from spark_rowtime.bounds.train import span
from spark_rowtime.errors import StoreCorruptError
from spark_rowtime.store import rejection_rules
from spark_rowtime.store.forks import no_fork
from spark_rowtime.store.local import cuts, key_floors, producers, readers, rejections, statuses
from spark_rowtime.store.local.catalog import BUSY_TIMEOUT, CATALOG, Catalog
from spark_rowtime.store.local.folders import FREE, SEGMENTS, folder, names, others
from spark_rowtime.store.local.redo import settle
from spark_rowtime.store.local.seal import Damaged, intact
from spark_rowtime.store.local.segment import Location
from spark_rowtime.store.local.segment_reader import SegmentReader
from spark_rowtime.store.local.storage_errors import STORAGE_ERRORS, storage_error
from spark_rowtime.store.record import ATTACHED
from spark_rowtime.store.report import Report
from spark_rowtime.store.settings import StreamSettings
from spark_rowtime.store.widths import width_class

RANGE_EVENTS = 10_000
"""How many events are read, and kept in memory, at a time."""
ADVANCE_EVENTS = 100
"""After how many events it is said how many are verified."""
_OWN = {CATALOG, f"{CATALOG}-wal", f"{CATALOG}-shm", SEGMENTS, FREE}
_STRANGE_CUTS = (
    "SELECT c.seq, c.producer FROM topic_cuts c LEFT JOIN events e ON e.seq = c.seq WHERE c.seq <= ? AND "
    "c.seq >= (SELECT MIN(seq) FROM events) AND "
    "(e.producer IS NOT c.producer OR e.kind NOT IN ('sent', 'left', 'idled'))"
)
_LAST = "SELECT seq, stream_rows FROM events ORDER BY seq DESC LIMIT 1"


class _Totals(NamedTuple):
    """The end of the log and the totals of the producers at one moment. None marks a total that cannot be read."""

    last: int
    rows: int
    accepted: int | None
    rejected: int | None
    removed: int
    newest: int


def check_stream(place: Path, advance: Callable[[int, int | None], object] | None = None) -> Report:
    """Reads the whole stream, while other processes may use it. Raises errors of access."""
    report = Report()
    try:
        with no_fork(), closing(Catalog(place / CATALOG, "process", BUSY_TIMEOUT)) as catalog:
            _check(catalog, place, report, advance or _nobody)
    except (StoreCorruptError, *STORAGE_ERRORS) as error:
        report.damage.append(_damage_in(error, place))
    return report


def _damage_in(error: Exception, place: Path) -> str:
    """Returns the damage that ``error`` describes. Raises an error that is not about damage."""
    translated = error if isinstance(error, StoreCorruptError) else storage_error(error, str(place))
    if not isinstance(translated, StoreCorruptError):
        raise translated from error
    return str(translated)


def _nobody(done: int, total: int | None) -> None:
    del done, total


def _check(catalog: Catalog, place: Path, report: Report, advance: Callable[[int, int | None], object]) -> None:
    """Checks what exists when the check begins, in ranges of events.

    No transaction spans two ranges, so that SQLite can checkpoint the WAL in between.
    """
    _, schema, settings = catalog.meta()
    for (problem,) in catalog.execute("PRAGMA integrity_check(10)"):
        if problem != "ok":
            report.damage.append(f"{CATALOG}: {problem}")
    _settle(place, catalog, report)
    totals, log, reader = _totals(catalog, report), CheckedLog(settings), SegmentReader(place, schema)
    missing: list[tuple[int, str]] = []
    for event in _events(catalog, totals.last, report):
        report.damage += log.faults(event, _first(catalog) if event[0] != log.last + 1 else 0)
        if event[11] is not None:
            _train(reader, event, report, missing)
        if event[0] % ADVANCE_EVENTS == 0 or event[0] == totals.last:
            advance(event[0], totals.last)
    reader.close()
    catalog.require()
    first = _first(catalog)
    report.damage += [problem for seq, problem in missing if seq > first]  # gc has removed the others meanwhile
    _rejected(catalog, schema, totals, report)
    _cuts(catalog, totals.last, report)
    _files(catalog, place, log.segments, totals.last, report)


def _settle(place: Path, catalog: Catalog, report: Report) -> None:
    """Writes what a loss of power may have taken from segments, and the catalog still has."""
    try:
        settle(place, catalog)
    except sqlite3.DatabaseError as error:
        report.damage.append(f"{CATALOG}: {error}")


def _totals(catalog: Catalog, report: Report) -> _Totals:
    last = rows = removed = newest = 0
    try:
        with catalog.transaction("DEFERRED"):
            last, rows = catalog.execute(_LAST).fetchone() or (0, 0)
            newest, removed = rejections.newest(catalog), rejections.totals(catalog).removed
            readers.known(catalog)
            statuses.known(catalog)
            for row in catalog.execute("SELECT boot, ahead, counted, seal FROM uptime"):
                intact(row, "uptime")
            producers.verify(catalog)
            counted = producers.totals(catalog)
            key_floors.verify(catalog)
            every_producer = [producers.info(catalog, producer) for producer in producers.everyone(catalog)]
    except sqlite3.DatabaseError as error:
        report.damage.append(f"{CATALOG}: {error}")
        return _Totals(last, rows, None, None, removed, newest)
    accepted = sum(producer.accepted for producer in every_producer) + counted.forgotten_accepted
    rejected = sum(producer.rejected for producer in every_producer) + counted.forgotten_rejected
    attached = sum(producer.status in ATTACHED for producer in every_producer)
    if (attached, rejected) != (counted.attached, counted.rejected):
        report.damage.append(
            f"{CATALOG}: {attached} producers are attached, and {rejected} rows were rejected, but "
            f"{counted.attached} and {counted.rejected} are counted"
        )
    if accepted != rows:
        report.damage.append(f"{CATALOG}: the producers sent {accepted} rows, but the log has {rows}")
    return _Totals(last, rows, accepted, rejected, removed, newest)


def _events(catalog: Catalog, last: int, report: Report) -> Iterator[tuple[Any, ...]]:
    """Yields the events up to ``last``. Reports and skips those that cannot be read."""
    seq = _first(catalog) - 1
    while seq < last:
        try:
            upto = min(max(seq, _first(catalog) - 1) + RANGE_EVENTS, last)
            rows = catalog.execute("SELECT * FROM events WHERE seq > ? AND seq <= ? ORDER BY seq", (seq, upto))
            found = rows.fetchall()
        except sqlite3.DatabaseError as error:
            report.damage.append(f"{CATALOG}: the log cannot be read any further ({error})")
            return
        for row in found:
            try:
                yield intact(row, "events")
            except Damaged as error:
                report.damage.append(f"{CATALOG}: {error}, so this event or train cannot be identified")
        seq = upto


def _first(catalog: Catalog) -> int:
    (first,) = catalog.execute("SELECT COALESCE(MIN(seq), 1) FROM events").fetchone()
    return int(first)


def _rejected(catalog: Catalog, schema: pa.Schema, totals: _Totals, report: Report) -> None:
    """Reads the rejections that are kept, and compares the number of their rows with the producers' counts."""
    kept, last = 0, 0
    try:
        while last < totals.newest:
            found = rejections.portion(catalog, schema, last, totals.newest)
            kept += sum(rejection.rejected.rows.num_rows for rejection in found)
            last = found[-1].number if len(found) == rejection_rules.PORTION_REJECTIONS else totals.newest
        meanwhile = rejections.totals(catalog).removed != totals.removed
    except sqlite3.DatabaseError as error:
        report.damage.append(f"{CATALOG}: {error}")
        return
    if totals.rejected is not None and not meanwhile and kept + totals.removed != totals.rejected:
        report.damage.append(
            f"{CATALOG}: {kept} rejected rows are kept and {totals.removed} were removed, but {totals.rejected} "
            "were counted"
        )


def _cuts(catalog: Catalog, last: int, report: Report) -> None:
    """Reads the cuts, and compares them with their events."""
    try:
        with catalog.transaction("DEFERRED"):
            strange = list(catalog.execute(_STRANGE_CUTS, (last,)))
            for producer in {logged.producer for logged in cuts.everyone(catalog)}:
                cuts.last(catalog, producer)
    except sqlite3.DatabaseError as error:
        report.damage.append(f"{CATALOG}: {error}")
        return
    report.damage += [f"{CATALOG}: the cut of event {seq} is not one of {who!r}" for seq, who in strange]


def _train(reader: SegmentReader, event: tuple[Any, ...], report: Report, missing: list[tuple[int, str]]) -> None:
    seq, _, producer, _, _, _, _, _, rows, least, largest, _, *place = event
    report.trains += 1
    report.rows += rows
    name = f"train {seq} of {producer!r} ({rows} rows)"
    try:
        if span(reader.read(Location(*place), rows, name)) != (least, largest):
            report.damage.append(f"{SEGMENTS}/{place[0]}: the rowtimes of {name} differ from those in the catalog")
            return
    except StoreCorruptError as error:
        if reader.has(place[0]):
            report.damage.append(str(error))
        else:
            missing.append((seq, str(error)))
        return
    report.readable_trains += 1
    report.readable_rows += rows


def _files(catalog: Catalog, place: Path, named: set[str], last: int, report: Report) -> None:
    """Remarks on files that neither the checked log names nor any commit since the check began."""
    for file in sorted(place.iterdir()):
        if file.name not in _OWN and not file.name.startswith("host-"):
            report.remarks.append(f"{file.name} does not belong to the stream")
    with folder(place, SEGMENTS) as opened:
        report.remarks += [f"{SEGMENTS}/{name} does not belong to the stream" for name in others(opened)]
        segments = set(names(opened)) - named
    since = {name for (name,) in catalog.execute("SELECT DISTINCT segment FROM events WHERE seq > ?", (last,))}
    for name in sorted(segments - since):
        report.remarks.append(f"{SEGMENTS}/{name} has no committed rows; gc removes it once no process owns it")


class CheckedLog:
    """Takes the events one by one. Of each it keeps only the clock, the totals and the segments' names."""

    def __init__(self, settings: StreamSettings) -> None:
        self._settings = settings
        self._clock = settings.clock()
        self._rows = 0
        self.last = 0
        """The seq of the last event."""
        self._whole = True
        self._broken = False
        self.segments: set[str] = set()
        """The names of the segments that hold rows."""

    def faults(self, event: tuple[Any, ...], first: int) -> Iterator[str]:
        """Yields what is wrong with the next event. ``first`` is the seq at which the log begins now."""
        if event[12] is not None:
            self.segments.add(event[12])
        if self._broken:
            return
        if event[0] != self.last + 1 and first > self.last + 1:
            self._begin(event)
        elif event[0] != self.last + 1:
            self._broken = True
            yield f"{CATALOG}: seq {self.last + 1} to {event[0] - 1} are missing from the log"
        else:
            yield from self._follows(event)

    def _begin(self, event: tuple[Any, ...]) -> None:
        """Starts again at ``event``, which cannot be checked because the events before it were removed."""
        self._whole, self._clock = False, self._settings.clock()
        self.last, self._clock.floor, self._clock.largest, self._rows = event[0], *event[5:8]

    def _follows(self, event: tuple[Any, ...]) -> Iterator[str]:
        seq, kind, producer, _, floor, stream_floor, largest, total, count, *place = event
        clock, self.last = self._clock, seq
        self._rows += count or 0
        if total != self._rows or (stream_floor or 0) < (clock.floor or 0) or (largest or 0) < (clock.largest or 0):
            yield f"{CATALOG}: event {seq} does not follow from the one before it (rows, bound or largest rowtime)"
        if place[2] is not None and place[2] != width_class(place[0], place[1]):
            yield f"{CATALOG}: train {seq} is at the wrong place in the index"
        if kind not in KINDS:
            self._whole = False
            yield f"{CATALOG}: event {seq} is of no kind that there is"
        if self._whole:
            clock.apply(logged_event(kind, producer, floor, place[1]))
            if clock.floor != stream_floor:
                yield f"{CATALOG}: the bound at seq {seq} does not follow from the events up to it"
        clock.floor, clock.largest = stream_floor, largest
