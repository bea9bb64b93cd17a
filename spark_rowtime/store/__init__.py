"""Creates and opens streams. The form of a path selects the store: ``memory://``, ``postgresql://`` or a directory."""

import os
import re
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import unquote
from weakref import WeakValueDictionary

import pyarrow as pa

from spark_rowtime.errors import (
    InvalidOptionError,
    StreamBusyError,
    StreamNotFoundError,
)
from spark_rowtime.store.admission import Use, exists, require_unused, use_of
from spark_rowtime.store.base import Store
from spark_rowtime.store.forks import ForkLock
from spark_rowtime.store.memory import STREAMS, MemoryStore
from spark_rowtime.store.memory_until import shorten
from spark_rowtime.store.record import ATTACHED
from spark_rowtime.store.settings import StreamSettings
from spark_rowtime.store.until import Limit, Until
from spark_rowtime.types.arguments import to_choice, to_line, to_text
from spark_rowtime.types.extras import import_extra
from spark_rowtime.types.short_repr import short_repr

if TYPE_CHECKING:
    from types import ModuleType

    from spark_rowtime.store.local import LocalStore
    from spark_rowtime.store.postgres.inline import CarriedTrains
    from spark_rowtime.store.postgres.store import PostgresStore
    from spark_rowtime.store.report import Report

_POSTGRES = "postgresql://"
_URL = re.compile(r"^\s*[A-Za-z][A-Za-z0-9+.:-]+:/|://")
"""What a URL has. What follows may have a password, so no error shows it."""


def create_store(path: str, schema: pa.Schema, settings: StreamSettings, producers: Sequence[str] = ()) -> None:
    """Creates an empty stream that expects ``producers``. Raises StreamExistsError if ``path`` exists already."""
    path = _new(path)
    _require_no_location(path, settings.location)
    if path.startswith("memory://"):
        store = MemoryStore(path, schema, settings)
        store.expect(producers)
        with _NAMING:
            _require_free(path)
            STREAMS[path] = store
    elif in_database(path):
        _postgres().create_postgres(path, schema, settings, producers)
    else:
        from spark_rowtime.store.local import create_local  # noqa: PLC0415  (sqlite3 only where it is used)

        create_local(_local(path), schema, settings, producers)


def open_store(path: str, durability: str = "process") -> Store:
    """Opens a stream. Raises StreamNotFoundError if there is none. ``durability`` is "process" or "power"."""
    to_choice(durability, "durability", "process", "power")
    path = _text(path)
    if path.startswith("memory://"):
        if path not in STREAMS:
            raise _no_memory_stream(path)
        return STREAMS[path]
    if in_database(path):
        store: Store = _postgres().open_postgres(path)
        return store
    from spark_rowtime.store.local import open_local  # noqa: PLC0415

    return open_local(_local(path), durability)


_Key = tuple[str, str]
_SHARED: "WeakValueDictionary[_Key, LocalStore | PostgresStore]" = WeakValueDictionary()
"""The stores that sinks of this process share, by path and durability."""
_OPENING: "WeakValueDictionary[_Key, threading.Lock]" = WeakValueDictionary()
"""The locks under which they are opened, one for each: a store that does not answer keeps no other one waiting."""
os.register_at_fork(after_in_child=_OPENING.clear)
_SHARING = ForkLock()
"""It protects what is above, and is held for no longer than a look there takes."""


def open_shared_store(path: str, durability: str = "process") -> Store:
    """Does what :func:`open_store` does, but sinks of one process share the open store of a stream.

    Each of them closes it; the last one closes it in fact.
    """
    path = _text(path)
    if path.startswith("memory://") or not isinstance(durability, str):
        return open_store(path, durability)
    key = (path if in_database(path) else os.path.realpath(_local(path)), durability)
    with _SHARING:
        opening = _OPENING.setdefault(key, threading.Lock())
    with opening:
        with _SHARING:
            shared = _SHARED.get(key)
        if shared is None or not shared.sharers.add():
            shared = cast("LocalStore | PostgresStore", open_store(path, durability))
            with _SHARING:
                _SHARED[key] = shared
        return shared


_NAMING = ForkLock()
"""It protects the names of streams in memory."""
_KEPT: "list[Store]" = []
"""The store that :func:`open_kept_store` keeps open."""


def open_kept_store(path: str) -> Store:
    """Does what :func:`open_store` does, but keeps the last stream in a database open for the next call.

    So a process that opens a stream for each batch connects once. A stream that was deleted and created again, and a
    connection that was lost, are opened again.
    """
    if not in_database(path):
        return open_store(path)
    store = cast("PostgresStore", open_shared_store(path))
    if store not in _KEPT and store.sharers.add():
        with _SHARING:
            before, _KEPT[:] = list(_KEPT), [store]
        for one in before:
            one.close()
    return store


def open_carried(path: str, schema: pa.Schema, objects: Any) -> "AbstractContextManager[CarriedTrains]":
    """Returns what stages and reads rows of a stream ``in_database`` without the database, as a Spark task does.

    The bytes travel with what ``stage`` returns, and with what ``Store.carry`` returns. ``objects`` is that of the
    store: large trains are there.
    """
    from spark_rowtime.store.postgres.inline import CarriedTrains  # noqa: PLC0415

    return nullcontext(CarriedTrains(path, schema, objects))


def check_store(path: str, advance: Callable[[int, int | None], object] | None = None) -> "Report":
    """Verifies a whole stream in a directory and reports any damage.

    ``advance`` is called with how many events are verified, and how many there are.

    Raises StreamNotFoundError if there is no stream, and StoreUnavailableError if it cannot be accessed.
    """
    path = _text(path)
    if path.startswith("memory://"):
        raise InvalidOptionError(f"{path} is in memory, and has no files to check.", path=path)
    if in_database(path):
        with open_store(path) as store:
            report: Report = _postgres("check").check(store)
            return report
    from spark_rowtime.store.local import check_local  # noqa: PLC0415

    return check_local(_local(path), advance)


def copy_store(
    path: str,
    to: str,
    advance: Callable[[int, int | None], object] | None = None,
    location: str | None = None,
    until: Limit | None = None,
) -> list[str]:
    """Copies a stream, which others may write to meanwhile, to a new path. One in memory stays in memory.

    ``advance`` is called with how many bytes are copied, and how many there are. ``location`` is that of a copy in a
    database; None: that of the stream. ``until``: what comes after it is left out; None: nothing is. Returns the
    producers that are therefore without their checkpoint.
    """
    path, to = _text(path), _new(to)
    _require_no_location(to, location)
    if "memory" in (_kind(path), _kind(to)):
        _same_kind(path, to)
        with _NAMING:
            _require_free(to)
            copy = _memory(path).copied(to)
            unknown = [] if until is None else shorten(copy, until)
            STREAMS[to] = copy
        return unknown
    from spark_rowtime.store import local  # noqa: PLC0415

    if until is None and not in_database(path) and not in_database(to):
        local.copy_local(_local(path), _local(to), advance)
        return []
    with _postgres("history").exported(path) if in_database(path) else local.exported(_local(path)) as history:
        part = None if until is None else Until(history, until)
        if in_database(to):
            _postgres("history").import_postgres(part or history, to, location)
        else:
            local.import_local(part or history, _local(to))
        return [] if part is None else part.unknown


def adopt_location(path: str) -> None:
    """Makes the database of a stream the owner of the objects in the stream's location."""
    path = _text(path)
    if not in_database(path):
        raise InvalidOptionError(
            f"The stream {path} has no location: only streams in PostgreSQL (postgresql://host:port/database/stream) "
            "have one. There is nothing to adopt.",
            path=path,
        )
    with cast("PostgresStore", open_store(path)) as store:
        store.adopt()


def rename_store(path: str, to: str) -> None:
    """Renames a stream to a new path of the same kind. Raises StreamBusyError if somebody is known to use it."""
    path, to = _text(path), _new(to)
    if _same_kind(path, to) == "memory":
        with _NAMING:
            _require_free(to)
            _require_unattached(_memory(path))
            STREAMS[to] = _memory(path).move(to)
            del STREAMS[path]
        return
    if in_database(path):
        _postgres().rename_postgres(path, to)
        return
    from spark_rowtime.store.local import rename_local  # noqa: PLC0415

    rename_local(_local(path), _local(to))


def delete_store(path: str, before: Use | None) -> None:
    """Deletes a stream. Raises StreamBusyError if it was used since ``before``; None: it is deleted in any case."""
    path = _text(path)
    if path.startswith("memory://"):
        with _NAMING:
            store = _memory(path)
            with store.state.changed:
                require_unused(path, before, use_of(store))
                store.move(None)
            del STREAMS[path]
        return
    if in_database(path):
        _postgres().delete_postgres(path, before)
        return
    from spark_rowtime.store.local import delete_local  # noqa: PLC0415

    delete_local(_local(path), before)


def list_stores(folder: str, *, closed: bool = False) -> list[str]:
    """Returns the paths of the streams in ``folder``: a directory, a database, or ``memory://`` for this process.

    ``closed``: also the directories in it into which this user may not look, since each may be a stream.
    """
    folder = _text(folder)
    if folder.startswith("memory://"):
        return sorted(path for path in STREAMS if path.startswith(folder))
    if in_database(folder):
        paths: list[str] = _postgres().list_postgres(folder)
        return paths
    from spark_rowtime.store.local import list_local  # noqa: PLC0415

    return [path for path in list_local(_local(folder), closed=closed) if _is_text(path)]


def _is_text(path: str) -> bool:
    """Whether UTF-8 can encode it; another name of a folder is not the path of a stream."""
    return not any("\ud800" <= character <= "\udfff" for character in path)


def in_database(path: str) -> bool:
    """Returns whether the path is of a stream in a PostgreSQL database, which a Spark task must not talk to."""
    return path.startswith(_POSTGRES)


def _require_no_location(path: str, location: str | None) -> None:
    if location is not None and not in_database(path):
        raise InvalidOptionError(
            f"The stream {path} cannot have a location: only streams in PostgreSQL (postgresql://host:port/database/"
            "stream) keep large trains elsewhere. Leave location out.",
            option="location",
            path=path,
        )


def _postgres(module: str = "database") -> "ModuleType":
    """Returns a module that needs psycopg, which is imported only where it is used."""
    import_extra("psycopg", "postgres", "A stream in PostgreSQL")
    return import_module(f"spark_rowtime.store.postgres.{module}")


def _memory(path: str) -> MemoryStore:
    store = open_store(path)
    assert isinstance(store, MemoryStore)
    return store


def _require_unattached(store: MemoryStore) -> None:
    store.expire()
    attached = [p.name for p in store.snapshot().records.values() if p.status in ATTACHED]
    if attached:
        raise StreamBusyError(
            f"{store.path} cannot be renamed: producer {attached[0]!r} is attached. Close its sink first.",
            path=store.path,
            users=attached,
        )


def _require_free(path: str) -> None:
    if path in STREAMS:
        raise exists(path)


def _no_memory_stream(path: str) -> StreamNotFoundError:
    return StreamNotFoundError(
        f"There is no stream at {path} in this process, and no other process can see it. Create it here with "
        "createStream, or use a directory, such as 'orders.rowtime', which processes share.",
        path=path,
    )


def _same_kind(path: str, to: str) -> str:
    kinds = [_kind(name) for name in (path, to)]
    if kinds[0] != kinds[1]:
        raise InvalidOptionError(
            f"{path} and {to} are in different kinds of store. Read the one with rt.openReader(...).drainTo(...) into "
            "the other.",
            path=path,
        )
    return kinds[0]


def _kind(path: str) -> str:
    if in_database(path):
        return "postgres"
    return "memory" if path.startswith("memory://") else "local"


def _text(path: str | PathLike[str]) -> str:
    """The path as a text, of which errors may repeat all: one in a database has no part that may be a secret."""
    text = fspath(path) if isinstance(path, PathLike) else path
    if text == "":
        raise InvalidOptionError(
            "path='' is empty. Give a directory, such as 'orders.rowtime'.", option="path", value="''"
        )
    if isinstance(text, str) and in_database(text):
        return str(_postgres("address").database_address(text).path)
    return to_text(text, "path")


def _new(path: str | PathLike[str]) -> str:
    """The path of a stream that is to be there; streams whose names have control characters stay readable."""
    return to_line(_text(path), "path")


def without_file(path: str) -> str:
    """Returns the path that a ``file://`` or ``file:/`` URL of this machine names. Others are returned unchanged.

    Raises InvalidOptionError if the URL has the name of another machine.
    """
    if not path.startswith("file:/"):
        return path
    place = path.removeprefix("file:")
    if place.startswith("//"):
        host, slash, rest = place[2:].partition("/")
        place = slash + rest if host in ("", "localhost") else ""
    if not place:
        raise InvalidOptionError(
            f"{short_repr(path)} names no folder of this machine: a file:// URL has three slashes before its path.",
            option="path",
        )
    return to_text(unquote(place), "path")


def _local(path: str) -> str:
    local = without_file(path)
    if local != path or not _URL.search(path):
        return local
    raise InvalidOptionError(
        f"There is no store for paths that begin with {path.partition(':/')[0] + ':/'!r}. Give a directory, such as "
        "'orders.rowtime', a file:// URL of one, or postgresql://host:port/database/stream, as a text: a pathlib.Path "
        "leaves out a slash.",
        option="path",
    )
