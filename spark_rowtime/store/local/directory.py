"""The directory of a stream: creates it atomically, and distinguishes it from anything else at its path."""

import os
import shutil
import sqlite3
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa

from spark_rowtime.errors import StreamExistsError, StreamNotFoundError
from spark_rowtime.store.base import StreamSettings
from spark_rowtime.store.local.catalog import (
    BUSY_TIMEOUT,
    CATALOG,
    STORAGE_ERRORS,
    Catalog,
    create_catalog,
    storage_error,
)
from spark_rowtime.store.local.check import Report, check_stream
from spark_rowtime.store.local.segment import FREE, SEGMENTS, sync_folder
from spark_rowtime.store.local.store import LocalStore
from spark_rowtime.store.steady_clock import Reading, machine_reading
from spark_rowtime.types.arguments import to_choice
from spark_rowtime.types.timestamps import wall_clock


def create_local(path: str, schema: pa.Schema, settings: StreamSettings, producers: Sequence[str] = ()) -> None:
    """Creates an empty stream at ``path`` that expects ``producers``, and the directories above it.

    It builds the stream in a temporary directory beside ``path`` and renames it, so that no process sees
    an incomplete stream. If two processes create the same stream, one succeeds. Raises StreamExistsError
    if anything exists at ``path``.
    """
    place = Path(path).absolute()
    if os.path.lexists(place):
        raise _exists(place)
    building = place.with_name(f".{place.name}.{os.urandom(4).hex()}.creating")
    try:
        (building / SEGMENTS).mkdir(parents=True)
        (building / FREE).mkdir()
        create_catalog(building / CATALOG, schema, settings)
        _expect(building, producers)
        sync_folder(building)
        _rename(building, place)
        sync_folder(place.parent)
    except (OSError, sqlite3.Error) as error:
        raise storage_error(error, str(place)) from error
    finally:
        shutil.rmtree(building, ignore_errors=True)


def _expect(building: Path, producers: Sequence[str]) -> None:
    if producers:
        store = open_local(str(building), "power")
        try:
            store.expect(producers)
        finally:
            store.close()


def _rename(building: Path, place: Path) -> None:
    try:
        building.rename(place)
    except OSError:
        if os.path.lexists(place):
            raise _exists(place) from None
        raise


def _exists(place: Path) -> StreamExistsError:
    return StreamExistsError(
        f"There is {_what(place)} at {place} already. Open it, or choose another path.",
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
    survives a power failure, at the cost of two disk syncs per commit.
    """
    to_choice(durability, "durability", "process", "power")
    place = Path(path).absolute()
    try:
        _require(place)
        catalog = Catalog(place / CATALOG, durability, busy_timeout)
        try:
            return LocalStore(str(place), catalog, durability, now, steady, pause)
        except BaseException:
            catalog.close()
            raise
    except STORAGE_ERRORS as error:
        raise storage_error(error, str(place)) from error


def check_local(path: str) -> Report:
    """Verifies the stream at ``path`` and reports any damage.

    Raises StreamNotFoundError if there is no stream, and StoreUnavailableError if it cannot be accessed.
    """
    place = Path(path).absolute()
    _require(place)
    return check_stream(place)


def _require(place: Path) -> None:
    try:
        (place / CATALOG).stat()
    except (FileNotFoundError, NotADirectoryError):
        raise StreamNotFoundError(
            f"There is {_what(place)} at {place}; createStream makes a stream.", path=str(place)
        ) from None


def _what(place: Path) -> str:
    if (place / CATALOG).exists():
        return "a stream"
    if not os.path.lexists(place):
        return "nothing"
    return "a directory that is not a stream" if place.is_dir() else "a file"
