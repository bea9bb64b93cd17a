"""The directory of a stream: creates it atomically, and distinguishes it from anything else at its path."""

import os
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path

import pyarrow as pa

from spark_rowtime.errors import StreamExistsError, StreamNotFoundError
from spark_rowtime.store.disk import sync
from spark_rowtime.store.forks import no_fork
from spark_rowtime.store.local.catalog import BUSY_TIMEOUT, CATALOG, create_catalog
from spark_rowtime.store.local.check import check_stream
from spark_rowtime.store.local.filesystem import require_local_disk
from spark_rowtime.store.local.folders import FREE, SEGMENTS, absolute
from spark_rowtime.store.local.storage_errors import storage_error, storage_errors
from spark_rowtime.store.local.store import LocalStore
from spark_rowtime.store.report import Report
from spark_rowtime.store.settings import StreamSettings
from spark_rowtime.store.steady_clock import Reading, machine_reading
from spark_rowtime.types.arguments import to_choice
from spark_rowtime.types.timestamps import wall_clock

_STRAYS = (".creating", ".copying", ".deleting")
"""The endings of the names of folders that a process leaves if it dies."""
_OF_FILE_SYSTEM = "lost+found"
"""The folder that is at the top of a file system, and never a stream."""


def create_local(path: str, schema: pa.Schema, settings: StreamSettings, producers: Sequence[str] = ()) -> None:
    """Creates an empty stream at ``path`` that expects ``producers``, and the directories above it.

    No process sees an incomplete stream. If two processes create the same stream, one succeeds. Raises
    StreamExistsError if anything exists at ``path``.
    """
    with building(absolute(path), "creating") as folder:
        create_catalog(folder / CATALOG, schema, settings)
        if producers:
            with open_local(str(folder), "power") as store:
                store.expect(producers)


@contextmanager
def building(place: Path, why: str) -> Iterator[Path]:
    """Yields a new folder for the files of a stream, and renames it to ``place`` if the block succeeds.

    So no process sees an incomplete stream. Raises StreamExistsError if ``place`` is not free.
    """
    require_local_disk(place)
    require_free(place)
    folder = stray(place, why)
    try:
        with no_fork():
            (folder / SEGMENTS).mkdir(parents=True)
            (folder / FREE).mkdir()
            yield folder
            sync(folder)
            rename(folder, place)
            sync(place.parent)
    except (OSError, sqlite3.Error) as error:
        raise storage_error(error, str(place)) from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def stray(place: Path, why: str) -> Path:
    """Returns a new hidden name beside ``place``. A process that dies leaves its folder there; it may be deleted."""
    return place.with_name(f".{place.name}.{os.urandom(4).hex()}.{why}")


def rename(folder: Path, place: Path) -> None:
    """Renames a folder. Raises StreamExistsError if anything exists at ``place``."""
    try:
        folder.rename(place)
    except OSError:
        require_nothing(place)
        raise


def require_free(place: Path) -> None:
    """Raises StreamExistsError if anything exists at ``place``, or if a stream above would be deleted with it."""
    require_nothing(place)
    folder = Path(os.path.realpath(place.parent))
    for above in (folder, *folder.parents):
        if os.path.exists(above / CATALOG) and os.path.exists(above / SEGMENTS):  # noqa: PTH110  (no error for a long name)
            raise StreamExistsError(
                f"{place} is in the folder of the stream at {above}. Choose another path.", path=str(place)
            )


def require_nothing(place: Path) -> None:
    """Raises StreamExistsError if anything exists at ``place``."""
    if os.path.lexists(place):
        existing = "; createStream(..., existOk=True), `rowtime create --exist-ok`, uses the stream that is there"
        raise StreamExistsError(
            f"There is {_what(place)} at {place} already. Choose another path{existing if is_stream(place) else ''}.",
            path=str(place),
        )


def open_local(
    path: str,
    durability: str = "process",
    *,
    busy_timeout: float = BUSY_TIMEOUT,
    now: Callable[[], int] = wall_clock,
    steady: Callable[[], Reading] = machine_reading,
    pause: Callable[[float], object] = time.sleep,
) -> LocalStore:
    """Opens the stream at ``path``. Raises StreamNotFoundError, which says what is there, if it is not a stream.

    With ``durability`` "process", committed data survives the end of all processes. With "power", it also
    survives a power failure, at the cost of a disk sync per commit, two for many bytes.
    """
    to_choice(durability, "durability", "process", "power")
    place = absolute(path)
    require_local_disk(place)
    with storage_errors(place):
        require_stream(place)
        return LocalStore.opened(str(place), durability, busy_timeout, now, steady, pause)


def check_local(path: str, advance: Callable[[int, int | None], object] | None = None) -> Report:
    """Verifies the stream at ``path`` and reports any damage.

    Raises StreamNotFoundError if there is no stream, and StoreUnavailableError if it cannot be accessed.
    """
    place = absolute(path)
    require_stream(place)
    return check_stream(place, advance)


def require_stream(place: Path) -> None:
    """Raises StreamNotFoundError, which says what is there, if there is no stream at ``place``."""
    try:
        (place / CATALOG).stat()
    except (FileNotFoundError, NotADirectoryError):
        raise _not_found(place) from None
    except OSError as error:
        raise storage_error(error, str(place)) from error


def _not_found(place: Path) -> StreamNotFoundError:
    what = f"There is {_what(place)} at {place}."
    if os.path.lexists(place):
        return StreamNotFoundError(f"{what} Give the path of a stream: the directory that is one.", path=str(place))
    near = _nearest_stream(place)
    hint = f" Did you mean {near!r}, a stream in the same folder?" if near else ""
    return StreamNotFoundError(
        f"{what}{hint} Check the path; createStream, or `rowtime create`, creates a stream.", path=str(place)
    )


def _nearest_stream(place: Path) -> str | None:
    """The name most similar to that of ``place`` that a stream in the same folder has; suffixes do not count."""
    try:
        entries = list(place.parent.iterdir())
    except OSError:
        return None
    near = get_close_matches(place.stem, {entry.stem for entry in entries}, n=5)
    found = (entry for stem in near for entry in entries if entry.stem == stem and is_stream(entry))
    return next((entry.name for entry in found), None)


def is_stream(place: Path) -> bool:
    """Whether there is a stream at ``place``; False where this user may not look."""
    return os.path.lexists(place / CATALOG)


def _what(place: Path) -> str:
    if is_stream(place):
        return "a stream"
    if not os.path.lexists(place):
        return "nothing"
    if _is_closed(place):
        return "a directory that this user may not look into"
    return "a directory that is not a stream" if place.is_dir() else "a file"


def _is_closed(place: Path) -> bool:
    """Whether this user may not look into a directory, so that nobody can say whether it is a stream."""
    return place.is_dir() and not os.access(place, os.X_OK)


def list_local(folder: str, *, closed: bool) -> list[str]:
    """Returns the paths of the streams in ``folder``, by name. Raises StreamNotFoundError if it is no directory.

    ``closed``: also those of directories into which this user may not look. Each may be a stream.
    """
    place = absolute(folder)
    with storage_errors(place):
        if place.is_dir():
            entries = [entry for entry in sorted(place.iterdir()) if not _is_stray(entry)]
            return [str(entry) for entry in entries if is_stream(entry) or (closed and _is_closed(entry))]
    raise StreamNotFoundError(
        f"There is {_what(place)} at {place}, not a folder with streams. Check the path.", path=str(place)
    )


def _is_stray(entry: Path) -> bool:
    return (entry.name.startswith(".") and entry.suffix in _STRAYS) or entry.name == _OF_FILE_SYSTEM
