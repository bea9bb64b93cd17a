"""Verifies a stream on disk: every row of its catalog, every train, and how they fit together."""

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from spark_rowtime.clock import Detached, Event, Idled, Joined, Left, Sent, StreamClock
from spark_rowtime.errors import StoreCorruptError
from spark_rowtime.store.base import StreamSettings
from spark_rowtime.store.local import producers, readers, rejections
from spark_rowtime.store.local.catalog import BUSY_TIMEOUT, CATALOG, STORAGE_ERRORS, Catalog, storage_error
from spark_rowtime.store.local.seal import Damaged, intact
from spark_rowtime.store.local.segment import FREE, SEGMENTS, Location, SegmentReader
from spark_rowtime.store.local.spans import width_class
from spark_rowtime.train import span

_KINDS: dict[str, type[Joined | Left | Idled | Detached]] = {
    "joined": Joined, "left": Left, "idled": Idled, "detached": Detached,
}  # fmt: skip
_OWN = {CATALOG, f"{CATALOG}-wal", f"{CATALOG}-shm", SEGMENTS, FREE}


@dataclass(slots=True)
class Report:
    """What a check has found: ``damage`` and harmless ``remarks``, one line each; what is there, and is readable."""

    trains: int = 0
    rows: int = 0
    readable_trains: int = 0
    readable_rows: int = 0
    damage: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)


def check_stream(place: Path) -> Report:
    """Reads the whole stream, as it is at one moment; others may use it meanwhile. Errors of access are raised."""
    report = Report()
    try:
        catalog = Catalog(place / CATALOG, "process", BUSY_TIMEOUT)
        try:
            _check(catalog, place, report)
        finally:
            catalog.close()
    except (StoreCorruptError, *STORAGE_ERRORS) as error:
        report.damage.append(_said(error, place))
    return report


def _said(error: Exception, place: Path) -> str:
    """The damage that ``error`` speaks of; it is raised where it is none."""
    known = error if isinstance(error, StoreCorruptError) else storage_error(error, str(place))
    if not isinstance(known, StoreCorruptError):
        raise known from error
    return str(known)


def _check(catalog: Catalog, place: Path, report: Report) -> None:
    missing: list[tuple[int, str]] = []
    with catalog.transaction("DEFERRED"):
        _, schema, settings = catalog.meta()
        for (said,) in catalog.execute("PRAGMA integrity_check(10)"):
            if said != "ok":
                report.damage.append(f"{CATALOG}: {said}")
        events = list(_events(catalog, report))
        report.damage += _log_faults(events, settings)
        _other_tables(catalog, schema, report, events)
        reader = SegmentReader(place, schema)
        for event in events:
            if event[11] is not None:
                _train(reader, event, report, missing)
        reader.close()
        _files(place, {event[12] for event in events}, report)
    first = catalog.execute("SELECT MIN(seq) FROM events").fetchone()[0] or 0
    report.damage += [said for seq, said in missing if seq > first]  # others were removed meanwhile


def _events(catalog: Catalog, report: Report) -> Iterator[tuple[Any, ...]]:
    rows = catalog.execute("SELECT * FROM events ORDER BY seq")
    while True:
        try:
            row = rows.fetchone()
            if row is None:
                return
            yield intact(row, "events")
        except Damaged as error:
            report.damage.append(f"{CATALOG}: {error}, so that event, or train, cannot be told")
        except sqlite3.DatabaseError as error:
            report.damage.append(f"{CATALOG}: the log cannot be read any further ({error})")
            return


def _log_faults(events: list[tuple[Any, ...]], settings: StreamSettings) -> Iterator[str]:
    """Where an event does not follow from those before it."""
    clock, rows, last = settings.clock(), 0, 0
    whole = bool(events) and events[0][0] == 1
    if events and not whole:
        clock.floor, clock.largest, rows, last = events[0][5], events[0][6], events[0][7], events[0][0]
        events = events[1:]
    for seq, kind, producer, _, floor, stream_floor, largest, total, count, *place in events:
        if seq != last + 1:
            yield f"{CATALOG}: seq {last + 1} to {seq - 1} are missing from the log"
            return
        rows, last = rows + (count or 0), seq
        if total != rows or (stream_floor or 0) < (clock.floor or 0) or (largest or 0) < (clock.largest or 0):
            yield f"{CATALOG}: event {seq} does not follow from the one before it (rows, bound or largest rowtime)"
        if place[2] is not None and place[2] != width_class(place[0], place[1]):
            yield f"{CATALOG}: train {seq} is in the wrong place of the index"
        _follow(clock, kind, producer, floor, place[1], whole)
        if whole and clock.floor != stream_floor:
            yield f"{CATALOG}: the bound at seq {seq} is not what the events up to it give"
        clock.floor, clock.largest = stream_floor, largest


def _follow(clock: StreamClock, kind: str, producer: str, floor: int | None, largest: int | None, whole: bool) -> None:
    if whole:
        event: Event = Sent(producer, floor, largest) if kind == "sent" else _KINDS[kind](producer)
        clock.apply(event)


def _other_tables(catalog: Catalog, schema: pa.Schema, report: Report, events: list[tuple[Any, ...]]) -> None:
    accepted = 0
    try:
        accepted = sum(known.accepted for known in producers.everyone(catalog))
        rejected = sum(r.rows.num_rows for _, r in rejections.everything(catalog, schema))
        counted = sum(known.rejected for known in producers.everyone(catalog))
        readers.everyone(catalog)
        if rejected != counted:
            report.damage.append(f"{CATALOG}: {rejected} rejected rows are kept, but {counted} were counted")
        if events and accepted != events[-1][7]:
            report.damage.append(f"{CATALOG}: the producers sent {accepted} rows, but the log has {events[-1][7]}")
    except (sqlite3.DatabaseError, pa.ArrowException) as error:
        report.damage.append(f"{CATALOG}: {error}")


def _train(reader: SegmentReader, event: tuple[Any, ...], report: Report, missing: list[tuple[int, str]]) -> None:
    seq, _, producer, _, _, _, _, _, rows, least, largest, _, *place = event
    report.trains += 1
    report.rows += rows
    name = f"train {seq} of {producer!r} ({rows} rows)"
    try:
        if span(reader.read(Location(*place), rows, name)) != (least, largest):
            report.damage.append(f"{SEGMENTS}/{place[0]}: the rowtimes of {name} are not those of the catalog")
            return
    except StoreCorruptError as error:
        if reader.has(place[0]):
            report.damage.append(str(error))
        else:
            missing.append((seq, str(error)))
        return
    report.readable_trains += 1
    report.readable_rows += rows


def _files(place: Path, named: set[str | None], report: Report) -> None:
    for file in sorted(place.iterdir()):
        if file.name not in _OWN and not file.name.startswith("host-"):
            report.remarks.append(f"{file.name} is none of the stream's files")
    segments = {file.name for file in (place / SEGMENTS).iterdir()}
    for name in sorted(segments - named):
        report.remarks.append(f"{SEGMENTS}/{name} has no rows that count; gc removes it when it is nobody's")
