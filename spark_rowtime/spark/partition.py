"""Partitions: each Spark task reads some trains, and the rows of these that lie between two positions."""

import base64
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from spark_rowtime.reader.release import Release
from spark_rowtime.spark.directory_mark import DirectoryMark
from spark_rowtime.store import in_database, open_carried, open_store
from spark_rowtime.store.base import Store, TrainReader
from spark_rowtime.store.commits import Slice
from spark_rowtime.store.local.folders import SEGMENTS, is_segment
from spark_rowtime.store.local.segment import Location
from spark_rowtime.store.position import Position
from spark_rowtime.store.postgres.inline import Inline
from spark_rowtime.store.postgres.objects import OBJECT_BYTES
from spark_rowtime.store.retention import lost_error, require_there
from spark_rowtime.types.added_columns import without_added

PARTITION_ROWS = 262_144
"""About how many rows one task reads: enough to be worth a task, and few enough to use all cores."""
LEAST_PARTITION_ROWS = 65_536
"""Fewer rows are not worth another task, even if cores are idle."""
ROW_BYTES = 256
"""A train counts as at least one row per this many bytes."""
LONGEST_BATCH_BYTES = 2**31 - 1
"""The largest message, in bytes, that Java can read."""
CARRIED_BYTES = 32 << 20
"""The most bytes of a batch that travel to tasks in Java. They pass through the plan as text, which takes several times
as much of the driver's memory. Larger batches travel as pickles to Python workers."""

CARRIED_TRAIN_BYTES = 12 << 20
"""The most bytes of a train that travel so. A longer one would be a text of more characters than the parser of JSON in
Java takes (20,000,000)."""


class SlicePartition(InputPartition):
    """A partition: pickled on the driver, and read in a Python worker, which needs nothing else.

    ``columns`` is the number of columns that the query reads: the stream may have been given more meanwhile. ``schema``
    is given if the rows travel with ``pieces``, because no task talks to a database. Large trains are in ``objects``.
    """

    def __init__(
        self,
        path: str,
        pieces: list[Slice],
        release: Release,
        after: Position,
        upto: Position,
        columns: int,
        schema: pa.Schema | None = None,
        objects: Any = None,
    ) -> None:
        self.path, self.pieces, self.release, self.after, self.upto = path, pieces, release, after, upto
        self.columns, self.schema, self.objects = columns, schema, objects
        self._directory = DirectoryMark.of(path)

    def opened(self) -> AbstractContextManager[TrainReader]:
        """Returns what reads the pieces."""
        if self._directory is not None:
            self._directory.require_same()
        if self.schema is None:
            return open_store(self.path)
        return open_carried(self.path, self.schema, self.objects)


def plan(store: Store, release: Release, after: Position, upto: Position, columns: int) -> list[SlicePartition]:
    """Returns the rows between two positions as partitions. There are none if only the bound has moved."""
    parts = partitioned(_slices(store, release, after, upto))
    if not in_database(store.path):
        return [SlicePartition(store.path, pieces, release, after, upto, columns) for pieces in parts]
    carried = [_carried(store, pieces) for pieces in parts]
    schema, objects = store.schema, store.objects
    return [SlicePartition(store.path, pieces, release, after, upto, columns, schema, objects) for pieces in carried]


def _carried(store: Store, pieces: list[Slice]) -> list[Slice]:
    """Returns the trains with their rows. Raises DataLostError if ``gc`` has removed one meanwhile."""
    found = store.carry(pieces)
    if len(found) < len(pieces):
        require_there(Position(max(piece.seq for piece in pieces), None, None), store.head(), store.path)
        raise lost_error("the rows of this batch", store.horizon(), store.path)
    return found


def _slices(store: Store, release: Release, after: Position, upto: Position) -> list[Slice]:
    """Returns the trains of a batch. Raises DataLostError if the log, as of an older copy, ends before ``upto``."""
    require_there(upto, store.head(), store.path)
    return release.slices(store, after, upto)


def partitioned(pieces: list[Slice], parallelism: int = 1) -> list[list[Slice]]:
    """Groups the trains, in their order, into partitions of about equal size.

    With enough rows, there are about ``parallelism`` partitions or more.
    """
    starts, total = [], 0
    for piece in pieces:
        starts.append(total)
        total += max(piece.rows, piece.size // ROW_BYTES)
    size = min(PARTITION_ROWS, max(LEAST_PARTITION_ROWS, total // parallelism))
    numbered = zip(starts, pieces, strict=True)
    return [[piece for _, piece in group] for _, group in groupby(numbered, key=lambda pair: pair[0] // size)]


def read_slices(partition: SlicePartition) -> Iterator[pa.RecordBatch]:
    """Yields the rows of a partition, one batch per train, in the order of the store."""
    with partition.opened() as trains:
        for piece in partition.pieces:
            rows = partition.release.rows(trains, piece, partition.after, partition.upto)
            if rows.num_rows:
                yield rows.select(range(partition.columns))


def native_plan(
    store: Store, release: Release, after: Position, upto: Position, columns: int, parallelism: int
) -> dict[str, Any]:
    """Returns the plan as JSON, from which the extension reads the rows without a Python worker.

    ``schema`` has the ``columns`` that the query reads. A train may have fewer or more of them.

    A train is [file, offset, length, checksum, rows, seq, producer, low, high], and its bytes in base64 if they are in
    no file. A file is a path, or the URL of an object in the stream's location. ``file`` and ``producer`` are
    indexes into the lists ``files`` and ``producers``; for a train with bytes, ``files`` has the path of the stream.
    The rows to read are those with low <= rowtime < high; a limit that excludes no row of the train is null. The plan
    is empty if only Python can read the rows.
    """
    pieces = _readable_in_java(store, _slices(store, release, after, upto))
    if pieces is None:
        return {}

    def train(piece: Slice) -> list[int | str | None]:
        file, *place = _place(piece)
        content = _content(piece)
        low, high = low_high(piece, release, after, upto)
        return [files[file], *place, piece.rows, piece.seq, producers[piece.producer], low, high, *content]

    files, producers = _numbers(_place(p)[0] for p in pieces), _numbers(p.producer for p in pieces)
    return {
        "schema": base64.b64encode(without_added(store.schema, columns).serialize()).decode(),
        "files": [_url(store, name) for name in files],
        "producers": [repr(name) for name in producers],
        "partitions": [[train(piece) for piece in part] for part in partitioned(pieces, parallelism)],
    }


def _readable_in_java(store: Store, pieces: list[Slice]) -> list[Slice] | None:
    """Returns the trains, with their bytes if these are in no file; None if only Python can read them."""
    if in_database(store.path):
        inline = [p.size for p in pieces if store.objects is None or p.size <= OBJECT_BYTES]
        fits = sum(inline) <= CARRIED_BYTES and max(inline, default=0) <= CARRIED_TRAIN_BYTES
        readable = fits and all(p.size <= LONGEST_BATCH_BYTES for p in pieces)
        return _carried(store, pieces) if readable else None
    return pieces if all(_in_file(piece) for piece in pieces) else None


def _in_file(piece: Slice) -> bool:
    """Whether a train is in a file of the stream, and short enough. A catalog may name files elsewhere."""
    place = piece.location
    return isinstance(place, Location) and is_segment(place.segment) and place.length <= LONGEST_BATCH_BYTES


def _place(piece: Slice) -> tuple[str, int, int, int]:
    """Returns where the bytes of a train are: name of the file or object, or empty; offset, length and checksum."""
    if isinstance(piece.location, Inline):
        return "", 0, piece.location.length, piece.location.checksum
    file, *place = piece.location
    return file, *place


def _url(store: Store, name: str) -> str:
    """Returns the path or the URL of a file or object; without a name, the path of the stream."""
    if not name:
        return store.path
    if in_database(store.path):
        return str(store.objects.for_hadoop(name))
    return str(Path(store.path).absolute() / SEGMENTS / name)


def _content(piece: Slice) -> list[str]:
    """Returns the bytes of a train in base64, or nothing if they are in a file."""
    if not isinstance(piece.location, Inline):
        return []
    assert piece.location.content is not None, "the train was carried"
    return [base64.b64encode(piece.location.content).decode()]


def low_high(piece: Slice, release: Release, after: Position, upto: Position) -> tuple[int | None, int | None]:
    """Returns the limits ``low`` and ``high`` on the rowtimes of a train; None if the limit excludes no row of it."""
    low = max(after.cut or 0 if piece.seq <= after.seq else 0, release.since or 0)
    cuts = upto.cut is not None and upto.cut <= piece.largest
    return low if low > piece.least else None, upto.cut if cuts else None


def _numbers(names: Iterable[str]) -> dict[str, int]:
    return {name: number for number, name in enumerate(dict.fromkeys(names))}
