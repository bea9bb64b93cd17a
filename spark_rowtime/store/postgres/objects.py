"""Objects: trains that are too large for the database, each a whole Arrow IPC stream in the stream's location.

Needs no database, so that Spark's tasks write and read objects themselves.
"""

import logging
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
from isal.isal_zlib import crc32
from pyarrow import fs

from spark_rowtime.errors import DataLostError, StoreCorruptError, StoreUnavailableError
from spark_rowtime.store.disk import sync
from spark_rowtime.store.location import for_hadoop, usable_location, without_options
from spark_rowtime.store.postgres.file_system import STORAGE_ERRORS, endpoint, file_system, shown_error
from spark_rowtime.types.short_repr import short_repr

OBJECT_BYTES = 64 << 10
"""A train of more bytes is an object, if the stream has a location."""
SCHEMA_OBJECT = "schema.arrow"
"""An object without rows, which is written when the stream is created. It shows that the location can be written."""
OWNER_OBJECT = "owner.json"
"""The object that says which database owns the folder; see :mod:`spark_rowtime.store.postgres.owner`."""
REMOVALS_AT_ONCE = 8
"""How many objects are removed at the same time. Each takes an object store some tens of milliseconds."""
STREAM_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_OBJECT = re.compile(r"[0-9a-f]{32}\.arrow")
_REMOVABLE = re.compile(rf"{_OBJECT.pattern}|[0-9a-f]{{16}}\.owner\.json")
"""Objects with rows, and what a process has left that was killed as it wrote the owner's mark."""
LOG = logging.getLogger(__name__)
_AGAIN = "Call again once the location can be used."
_COMMITTED_NOTHING = "Nothing of this call was committed; call again once the location can be used."
_LEFT = "The next `rowtime gc` of a stream in the database removes them."
_SEEN: set[tuple[int, str, str]] = set()
"""The processes, servers and locations of which an object was seen after it was written."""
_END = b"\xff\xff\xff\xff\x00\x00\x00\x00"
"""The end of an Arrow IPC stream."""


class InObject(NamedTuple):
    """A train in an object. With the stream's :class:`Objects` and its schema, this is enough to read the train."""

    object: str
    offset: int
    length: int
    checksum: int
    """CRC-32 of the ``length`` bytes from ``offset`` on: the message with the rows."""


class Objects:
    """The objects of one stream: the folder ``stream`` (the stream's id) in its ``location``. Can be pickled.

    ``path`` is the path of the stream, for errors. Law: an object never changes, and no name is used twice. Law (*names
    are no paths*): the location, the stream and the names of objects come from the database, where a stranger may have
    written them. Nothing is opened, and nothing removed, but an object of such a name in the stream's own folder.
    """

    def __init__(self, path: str, location: str, stream: str) -> None:
        self.path, self.location, self.stream = path, usable_location(location, path, endpoint()), stream
        if not STREAM_ID.fullmatch(stream):
            raise strange(path, f"the id {short_repr(stream)}, which no stream has")

    def create(self, schema: pa.Schema) -> None:
        """Makes the folder, and writes the object without rows."""
        self._write(SCHEMA_OBJECT, [schema.serialize(), _END])

    def write(self, schema: pa.Schema, message: pa.Buffer) -> InObject:
        """Writes rows of ``schema``, as a ``message`` of Arrow IPC. No reader sees them until a commit names them.

        Raises StoreUnavailableError if the folder is not there: an object of a shared folder that is not mounted would
        be on this machine alone.
        """
        name, header = f"{os.urandom(16).hex()}.arrow", schema.serialize()
        self._write(name, [header, message, _END])
        return InObject(name, header.size, message.size, crc32(message))

    def read(self, place: InObject, train: str) -> pa.Buffer:
        """Returns the message of a train. Raises DataLostError if the object is gone. ``train`` is for errors."""
        with self._reached(place.object) as (system, folder):
            try:
                with system.open_input_file(self._named(folder, place.object)) as file:
                    size: int = file.size()
                    message = self._whole(file, place) if size >= place.offset + place.length else None
            except FileNotFoundError:
                raise self._gone(place.object, train) from None
        if message is None:
            raise self.corrupt(place, train, f"the object ends after {size} bytes")
        if crc32(message) != place.checksum:
            raise self.corrupt(place, train, "the checksum does not match")
        return message

    def sizes(self) -> dict[str, int]:
        """Returns the bytes of all objects with rows, by name: also of those that no commit names."""
        with self._reached() as (system, folder):
            found = system.get_file_info(fs.FileSelector(f"{folder}/{self.stream}", allow_not_found=True))
        files = {info.base_name: info.size for info in found if info.type == fs.FileType.File}
        return {name: size for name, size in sorted(files.items()) if _REMOVABLE.fullmatch(name)}

    def remove(self, names: Iterable[str]) -> int:
        """Removes objects, if they are there. Returns how many were. What is no name of an object is logged."""
        given = list(names)
        names = [name for name in given if _REMOVABLE.fullmatch(name)]
        if strangers := set(given).difference(names):
            LOG.warning("%s has names that no object has; nothing was removed: %r", self.path, sorted(strangers)[:5])
        with self._reached() as (system, folder):
            return _all_removed(system, f"{folder}/{self.stream}", names)

    def remove_all(self) -> None:
        """Removes the folder with all its objects, if it is there. The mark goes last, or nobody could go on."""
        with self._reached(advice=_LEFT) as (system, folder), suppress(FileNotFoundError):
            place = f"{folder}/{self.stream}"
            found = system.get_file_info(fs.FileSelector(place))
            _all_removed(system, place, [info.base_name for info in found if info.base_name != OWNER_OBJECT])
            system.delete_dir(place)

    def read_mark(self) -> bytes | None:
        """Returns the content of the object that names the owner; None if there is none."""
        with (
            self._reached(OWNER_OBJECT) as (system, folder),
            suppress(FileNotFoundError),
            system.open_input_stream(f"{folder}/{self.stream}/{OWNER_OBJECT}") as file,
        ):
            return bytes(file.read())
        return None

    def write_mark(self, content: bytes) -> None:
        """Replaces the object that names the owner."""
        with self._reached(OWNER_OBJECT) as (system, folder):
            if isinstance(system, fs.LocalFileSystem):
                place = Path(folder) / self.stream
                try:
                    new = place / f"{os.urandom(8).hex()}.{OWNER_OBJECT}"
                    _write_file(new, [content], makes_folder=False)
                    new.replace(place / OWNER_OBJECT)
                except FileNotFoundError:
                    raise self._no_folder(OWNER_OBJECT) from None
                return
        self._write(OWNER_OBJECT, [content])

    def url(self, name: str | None = None) -> str:
        """Returns the URL of an object; without ``name``, of the folder."""
        location = without_options(self.location)
        return f"{location}/{self.stream}" if name is None else self._named(location, name)

    def for_hadoop(self, name: str) -> str:
        """Returns the URL of the object in Hadoop's file systems."""
        return self._named(for_hadoop(self.location), name)

    def _named(self, location: str, name: str) -> str:
        """Returns the path, or the URL, of an object."""
        if not _OBJECT.fullmatch(name) and name not in (SCHEMA_OBJECT, OWNER_OBJECT):
            raise strange(self.path, f"an object {short_repr(name)}, which is no name of one")
        return f"{location}/{self.stream}/{name}"

    def corrupt(self, place: InObject, train: str, what: str) -> StoreCorruptError:
        """Returns the error for an object that is not what was written."""
        url = self.url(place.object)
        return StoreCorruptError(
            f"{url}, offset {place.offset}: {what}; so {train} cannot be read. Restore the object from a copy.",
            path=self.path,
            object=url,
            train=train,
        )

    def _write(self, name: str, parts: Sequence[pa.Buffer | bytes]) -> None:
        advice = _AGAIN if name == OWNER_OBJECT else _COMMITTED_NOTHING
        with self._reached(name, advice) as (system, folder):
            try:
                if isinstance(system, fs.LocalFileSystem):
                    _write_file(Path(folder) / self.stream / name, parts, makes_folder=name == SCHEMA_OBJECT)
                    return
                with system.open_output_stream(f"{folder}/{self.stream}/{name}") as file:
                    for part in parts:
                        file.write(part)
                self._require_there(system, folder, name, sum(memoryview(part).nbytes for part in parts), advice)
            except FileNotFoundError:
                if name == SCHEMA_OBJECT:
                    raise
                raise self._no_folder(name) from None

    def _require_there(self, system: fs.FileSystem, folder: str, name: str, size: int, advice: str) -> None:
        """Raises StoreUnavailableError if the first object that this process writes in the location is not there.

        What stands between a client and an object store, such as a portal, may answer each request with a page.
        """
        place = (os.getpid(), endpoint(), self.location)
        if place not in _SEEN and (found := system.get_file_info(f"{folder}/{self.stream}/{name}").size) != size:
            raise StoreUnavailableError(
                f"{self.url(name)} was written, but has {found or 0} bytes there instead of {size}: something else "
                f"than the object store answers. Check AWS_ENDPOINT_URL, and the network of this machine. {advice}",
                path=self.path,
                object=self.url(name),
            )
        _SEEN.add(place)

    @staticmethod
    def _whole(file: pa.NativeFile, place: InObject) -> pa.Buffer:
        file.seek(place.offset)
        return file.read_buffer(place.length)

    def _gone(self, name: str, train: str) -> DataLostError | StoreUnavailableError:
        if not self._has_folder():
            return self._no_folder(name)
        url = self.url(name)
        return DataLostError(
            f"The object {url} is gone, although a commit names it; so {train} of {self.path} cannot be read. If "
            "`rowtime gc` has not removed it, restore the object from a copy. `rowtime check` says what is still "
            "readable.",
            path=self.path,
            object=url,
            train=train,
        )

    def _no_folder(self, name: str) -> StoreUnavailableError:
        return StoreUnavailableError(
            f"The folder {self.url()} of the stream at {self.path} is not there. If it is a shared folder, mount it on "
            "this machine; if it was removed, restore it from a copy.",
            path=self.path,
            object=self.url(name),
        )

    def _has_folder(self) -> bool:
        with self._reached() as (system, folder):
            return bool(system.get_file_info(f"{folder}/{self.stream}").type != fs.FileType.NotFound)

    @contextmanager
    def _reached(self, name: str | None = None, advice: str = _AGAIN) -> Iterator[tuple[fs.FileSystem, str]]:
        """Yields the file system, and the path of the location in it. Its errors become StoreUnavailableError."""
        try:
            yield file_system(self.location)
        except STORAGE_ERRORS as error:
            raise StoreUnavailableError(
                f"{self.url(name)}, where the stream at {self.path} keeps rows, cannot be used just now "
                f"({shown_error(error)}). {advice} The guide on PostgreSQL says what rights and which environment "
                "variables it needs.",
                path=self.path,
                object=self.url(name),
            ) from None


def strange(path: str, what: str) -> StoreCorruptError:
    """Returns the error for what no version has written of the stream at ``path``."""
    return StoreCorruptError(
        f"The database has {what}, of the stream at {path}. Somebody has changed it there; nothing was opened.",
        path=path,
    )


def _all_removed(system: fs.FileSystem, folder: str, names: Iterable[str]) -> int:
    """Removes objects, and returns how many of them were there."""
    with ThreadPoolExecutor(REMOVALS_AT_ONCE) as several:
        return sum(several.map(partial(_removed, system, folder), names))


def _removed(system: fs.FileSystem, folder: str, name: str) -> bool:
    """Removes an object, if it is there. Returns whether it was.

    pyarrow then writes an empty object with the name of the folder. Object stores refuse many writes of one object at
    once: then the object is removed nevertheless, and nobody needs the empty one.
    """
    path = f"{folder}/{name}"
    try:
        system.delete_file(path)
    except FileNotFoundError:
        return False
    except STORAGE_ERRORS:
        if system.get_file_info(path).type != fs.FileType.NotFound:
            raise
    return True


def _write_file(file: Path, parts: Iterable[pa.Buffer | bytes], *, makes_folder: bool) -> None:
    """Writes a new file that survives a power failure, as the commit that will name it does; all of it or none."""
    if makes_folder:
        file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("wb" if makes_folder else "xb", buffering=0) as target:
        try:
            for part in parts:
                rest = memoryview(part)
                while rest:
                    rest = rest[target.write(rest) :]
            os.fsync(target.fileno())
        except OSError:
            with suppress(OSError):
                file.unlink()
            raise
    for folder in (file.parent, *([file.parent.parent] if makes_folder else [])):
        sync(folder)
