"""Creates and opens streams. The form of a path selects the store: ``memory://`` or a local directory."""

from collections.abc import Sequence
from os import PathLike, fspath
from typing import TYPE_CHECKING

import pyarrow as pa

from spark_rowtime.errors import InvalidOptionError, StreamExistsError, StreamNotFoundError
from spark_rowtime.store.base import Store, StreamSettings
from spark_rowtime.store.memory import STREAMS, MemoryStore
from spark_rowtime.types.arguments import to_choice, to_text

if TYPE_CHECKING:
    from spark_rowtime.store.local.check import Report


def create_store(path: str, schema: pa.Schema, settings: StreamSettings, producers: Sequence[str] = ()) -> None:
    """Creates an empty stream that expects ``producers``. Raises StreamExistsError if ``path`` exists already."""
    path = _text(path)
    if path.startswith("memory://"):
        if path in STREAMS:
            raise StreamExistsError(f"There is a stream at {path} already.", path=path)
        store = MemoryStore(path, schema, settings)
        store.expect(producers)
        STREAMS[path] = store
    else:
        from spark_rowtime.store.local import create_local  # noqa: PLC0415  (sqlite3 only where it is used)

        create_local(_local(path), schema, settings, producers)


def open_store(path: str, durability: str = "process") -> Store:
    """Opens a stream. Raises StreamNotFoundError if there is none. ``durability`` is "process" or "power"."""
    to_choice(durability, "durability", "process", "power")
    path = _text(path)
    if path.startswith("memory://"):
        if path not in STREAMS:
            raise StreamNotFoundError(f"There is no stream at {path}; createStream makes one.", path=path)
        return STREAMS[path]
    from spark_rowtime.store.local import open_local  # noqa: PLC0415

    return open_local(_local(path), durability)


def check_store(path: str) -> "Report":
    """Verifies a whole stream in a directory and reports any damage.

    Raises StreamNotFoundError if there is no stream, and StoreUnavailableError if it cannot be accessed.
    """
    path = _text(path)
    if path.startswith("memory://"):
        raise InvalidOptionError(f"{path} is in memory, and has no files to check.", path=path)
    from spark_rowtime.store.local import check_local  # noqa: PLC0415

    return check_local(_local(path))


def _text(path: str | PathLike[str]) -> str:
    text = fspath(path) if isinstance(path, PathLike) else path
    return to_text(None if isinstance(text, str) and not text else text, "path")


def without_file(path: str) -> str:
    """Returns the path that a ``file://`` or ``file:/`` URL names. Any other path is returned unchanged."""
    if path.startswith("file://"):
        return path.removeprefix("file://")
    return path.removeprefix("file:") if path.startswith("file:/") else path


def _local(path: str) -> str:
    local = without_file(path)
    if local != path or "://" not in path:
        return local
    raise InvalidOptionError(
        f"There is no store for paths like {path!r}. Give a directory, such as 'orders.rowtime', or a file:// "
        "URL of one.",
        path=path,
    )
