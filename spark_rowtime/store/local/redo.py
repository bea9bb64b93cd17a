"""Redo: the bytes of small trains are in the catalog, too, until their segment is synced.

Law (*power*): with durability "power" the bytes of each committed train are on the disk, in a segment or in the
catalog. So a commit of small trains takes one sync, that of the catalog. What a loss of power has taken from a segment
is written again when the stream is opened next: the redo log of databases, for the bytes that are not in their pages.
"""

import os
import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from isal.isal_zlib import crc32

from spark_rowtime.store.base import Staged
from spark_rowtime.store.local.catalog import Catalog
from spark_rowtime.store.local.folders import SEGMENTS, folder
from spark_rowtime.store.local.seal import Damaged, intact
from spark_rowtime.store.local.segment import SegmentWriter, Tail, open_locked, write_all

_SEGMENTS = "SELECT DISTINCT segment FROM redo JOIN events USING (seq) WHERE segment IS NOT NULL"
_TRAINS = "SELECT redo.bytes, events.* FROM redo JOIN events USING (seq) WHERE segment = ?"


class Redo:
    """What commits of one process keep in the catalog: the trains at the end of the segment that it writes."""

    def __init__(self, catalog: Catalog, writer: SegmentWriter) -> None:
        self._catalog, self._writer = catalog, writer
        self._kept: dict[Tail, list[int]] = {}
        self._next = self._kept

    def keep(self, trains: Mapping[int, Staged]) -> None:
        """Adds the trains that are not synced, by their seq, and deletes those that are by now.

        Call it in the transaction that commits them, and :meth:`kept` behind it.
        """
        tail, synced = self._writer.tail, [seqs for tail, seqs in self._kept.items() if tail.synced]
        forget(self._catalog, (seq for seqs in synced for seq in seqs))
        here = {seq: tail.trains[train.location] for seq, train in trains.items() if train.location in tail.trains}
        for seq, message in here.items():
            self._catalog.execute("INSERT INTO redo VALUES (?, ?)", (seq, message))
        self._next = {one: seqs for one, seqs in self._kept.items() if not one.synced}
        if here:
            self._next[tail] = [*self._next.get(tail, ()), *here]

    def kept(self) -> None:
        """The transaction has been committed."""
        self._kept = self._next


def forget(catalog: Catalog, seqs: Iterable[int]) -> None:
    """Deletes these trains from the catalog, which are synced. Call it in a transaction."""
    for seq in seqs:
        catalog.execute("DELETE FROM redo WHERE seq = ?", (seq,))


def restore(catalog: Catalog, stream: Path) -> None:
    """Writes the trains in the catalog into their segments again, and syncs these.

    A segment that somebody has open is left as it is: there was no loss of power since. So are those that this user may
    not write. To write what is there, too, costs little, and what an earlier sync could not write is written.
    """
    for (segment,) in catalog.execute(_SEGMENTS).fetchall() if catalog.writable else ():
        with suppress(PermissionError), folder(stream, SEGMENTS) as segments:
            fd = open_locked(segment, segments)
            if fd is not None:
                try:
                    _restore(catalog, fd, catalog.execute(_TRAINS, (segment,)).fetchall())
                finally:
                    os.close(fd)


def _restore(catalog: Catalog, fd: int, trains: list[tuple[Any, ...]]) -> None:
    for message, *event in trains:
        with suppress(Damaged):  # who reads the train says so
            *_, offset, length, checksum = intact(tuple(event), "events")
            if type(message) is bytes and (len(message), crc32(message)) == (length, checksum):
                write_all(fd, message, offset)
    os.fdatasync(fd)
    with suppress(sqlite3.OperationalError), catalog.transaction("IMMEDIATE", patience=0):
        forget(catalog, (seq for _, seq, *_ in trains))  # or who opens the stream next does
