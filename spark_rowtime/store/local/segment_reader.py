"""Reads segments, and verifies what it reads."""

import os
from collections import OrderedDict
from pathlib import Path

import pyarrow as pa
from isal.isal_zlib import crc32

from spark_rowtime.errors import StoreCorruptError
from spark_rowtime.store.forks import close_in_children
from spark_rowtime.store.local.folders import (
    SEGMENTS,
    folder,
    open_file,
    there,
)
from spark_rowtime.store.local.segment import Location
from spark_rowtime.store.local.sparse import is_there
from spark_rowtime.store.messages import read_batch

OPEN_FILES = 64


class SegmentReader:
    """Reads and verifies record batches. It keeps the last files open."""

    def __init__(self, stream: Path, schema: pa.Schema) -> None:
        self._stream, self._schema = stream, schema
        self._fds: OrderedDict[str, int] = OrderedDict()
        close_in_children(self)

    def read(self, location: Location, rows: int, train: str) -> pa.RecordBatch:
        """Returns the ``rows`` rows at ``location``.

        Raises StoreCorruptError, which names ``train``, if they are not there.
        """
        message = self._bytes(location, train)
        if crc32(message) != location.checksum:
            raise self._corrupt(location, train, "the checksum does not match")
        try:
            batch = read_batch(message, self._schema)
        except pa.ArrowException as error:
            raise self._corrupt(location, train, str(error)) from error
        if batch.num_rows != rows:
            raise self._corrupt(location, train, f"it has {batch.num_rows} rows instead of {rows}")
        return batch

    def has(self, segment: str) -> bool:
        """Returns whether the file exists, or is open."""
        return segment in self._fds or segment_exists(self._stream, segment)

    def close_removed(self) -> None:
        """Closes the files that gc has removed. The system frees their disk space only then."""
        for segment, fd in list(self._fds.items()):
            if os.fstat(fd).st_nlink == 0:
                os.close(self._fds.pop(segment))

    def close(self) -> None:
        """Closes all files."""
        while self._fds:
            os.close(self._fds.popitem()[1])

    close_inherited = close

    def _bytes(self, location: Location, train: str) -> pa.Buffer:
        try:
            fd = self._open(location.segment)
        except FileNotFoundError:
            raise self._corrupt(location, train, "the file is gone") from None
        there = max(os.fstat(fd).st_size - location.offset, 0)
        if not 0 <= location.length <= there or location.offset < 0:  # no memory is taken for what is not there
            raise self._corrupt(location, train, f"the file ends after {there} of {location.length} bytes")
        if not is_there(fd, location.offset, location.offset + location.length):
            raise self._corrupt(location, train, f"its {location.length} bytes are nearly all holes")
        message = pa.allocate_buffer(location.length)
        rest, length = memoryview(message), 0
        while rest and (got := os.preadv(fd, [rest], location.offset + length)):  # a call reads at most 2 GiB
            rest, length = rest[got:], length + got
        return message

    def _open(self, segment: str) -> int:
        fd = self._fds.get(segment)
        if fd is None:
            with folder(self._stream, SEGMENTS) as segments:
                fd = self._fds[segment] = open_file(segment, segments, os.O_RDONLY)
            if len(self._fds) > OPEN_FILES:
                os.close(self._fds.popitem(last=False)[1])
        return fd

    def _corrupt(self, location: Location, train: str, what: str) -> StoreCorruptError:
        file = str(self._stream / SEGMENTS / location.segment)
        return StoreCorruptError(
            f"{file}, offset {location.offset}: {what}; so {train} cannot be read. Restore the file from a copy.",
            file=file,
            offset=location.offset,
            train=train,
        )


def segment_exists(stream: Path, name: str) -> bool:
    """Returns whether the stream has a file of this name among its segments."""
    with folder(stream, SEGMENTS) as segments:
        return there(name, segments)
