"""Creates and opens streams. The form of a path selects the store: ``memory://`` or a local directory."""

import os
import threading
from os import PathLike, fspath
from typing import TYPE_CHECKING, cast
from weakref import WeakValueDictionary

import pyarrow as pa

from spark_rowtime.errors import InvalidOptionError, StreamExistsError, StreamNotFoundError
from spark_rowtime.store.base import Store, StreamSettings
from spark_rowtime.store.memory import STREAMS, MemoryStore
from spark_rowtime.types.arguments import to_text
from spark_rowtime.types.short_repr import short_repr

if TYPE_CHECKING:
    from spark_rowtime.store.local import LocalStore
    from spark_rowtime.store.local.check import Report


def create_store(path: str, schema: pa.Schema, settings: StreamSettings) -> None:
    """Creates an empty stream. Raises StreamExistsError if anything already exists at ``path``."""
    path = _text(path)
    if path.startswith("memory://"):
        if path in STREAMS:
            raise StreamExistsError(f"There is a stream at {path} already.", path=path)
        STREAMS[path] = MemoryStore(path, schema, settings)
    else:
        from spark_rowtime.store.local import create_local  # noqa: PLC0415  (sqlite3 only where it is used)

        create_local(_local(path), schema, settings)


def open_store(path: str, durability: str = "process") -> Store:
    """Opens a stream. Raises StreamNotFoundError if there is none. ``durability`` is "process" or "power"."""
    if not isinstance(durability, str) or durability not in ("process", "power"):
        raise InvalidOptionError(f"durability={short_repr(durability)} is neither 'process' nor 'power'.")
    path = _text(path)
    if path.startswith("memory://"):
        if path not in STREAMS:
            raise StreamNotFoundError(f"There is no stream at {path}; createStream makes one.", path=path)
        return STREAMS[path]
    from spark_rowtime.store.local import open_local  # noqa: PLC0415

    return open_local(_local(path), durability)


_SHARED: "WeakValueDictionary[tuple[str, str], LocalStore]" = WeakValueDictionary()
"""The stores that sinks of this process share, by path and durability."""
_SHARING = threading.Lock()


def _after_fork() -> None:
    global _SHARING  # noqa: PLW0603  (another thread of the parent may hold it)
    _SHARING = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)


def open_shared_store(path: str, durability: str = "process") -> Store:
    """Does what :func:`open_store` does, but sinks of one process share the open store of a stream.

    Each of them closes it; the last one closes it in fact.
    """
    path = _text(path)
    if path.startswith("memory://") or not isinstance(durability, str):
        return open_store(path, durability)
    key = (os.path.realpath(_local(path)), durability)
    with _SHARING:
        shared = _SHARED.get(key)
        if shared is None or not shared.hold():
            shared = _SHARED[key] = cast("LocalStore", open_store(path, durability))
        return shared


def check_store(path: str) -> "Report":
    """Verifies a whole stream in a directory and reports any damage.

    Raises StreamNotFoundError if there is no stream, and StoreUnavailableError if it cannot be accessed.
    """
    path = _text(path)
    if path.startswith("memory://"):
        raise InvalidOptionError(f"{path} has no files that could be checked.", path=path)
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
        f"No store is known for {path!r}. Give a directory such as 'orders.rowtime', or file:// and one.",
        path=path,
    )
