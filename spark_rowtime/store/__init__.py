"""Where streams live: a path's form says which store it is."""

import pyarrow as pa

from spark_rowtime.errors import InvalidOptionError, StreamExistsError, StreamNotFoundError
from spark_rowtime.store.base import Store, StreamSettings
from spark_rowtime.store.memory import STREAMS, MemoryStore


def create_store(path: str, schema: pa.Schema, settings: StreamSettings) -> None:
    """Creates an empty stream. StreamExistsError where there is something already."""
    if path.startswith("memory://"):
        if path in STREAMS:
            raise StreamExistsError(f"There is a stream at {path} already.", path=path)
        STREAMS[path] = MemoryStore(path, schema, settings)
    else:
        from spark_rowtime.store.local import create_local  # noqa: PLC0415  (sqlite3 only where it is used)

        create_local(_local(path), schema, settings)


def open_store(path: str, durability: str = "process") -> Store:
    """Opens a stream. StreamNotFoundError where there is none; ``durability``: process | power."""
    if durability not in ("process", "power"):
        raise InvalidOptionError(f"durability={durability!r} is neither 'process' nor 'power'.")
    if path.startswith("memory://"):
        if path not in STREAMS:
            raise StreamNotFoundError(f"There is no stream at {path}; createStream makes one.", path=path)
        return STREAMS[path]
    from spark_rowtime.store.local import open_local  # noqa: PLC0415

    return open_local(_local(path), durability)


def _local(path: str) -> str:
    scheme, colon, rest = path.partition("://")
    if not colon:
        return path
    if scheme == "file":
        return rest
    raise InvalidOptionError(
        f"No store is known for {path!r}. Give a directory such as 'orders.rowtime', or file:// and one.",
        path=path,
    )
