"""The table ``meta`` of a catalog: values by name. ``execute`` is that of an SQLite connection."""

from collections.abc import Callable
from typing import Any

from spark_rowtime.store.local.seal import crc, intact, seal

Execute = Callable[..., Any]


def get(execute: Execute, name: str) -> Any:
    """Returns a value; None if there is none."""
    row = execute("SELECT name, value, seal FROM meta WHERE name = ?", (name,)).fetchone()
    return None if row is None else intact(row, "meta")[1]


def put(execute: Execute, **values: Any) -> None:
    """Replaces values. Call it in a transaction."""
    for name, value in values.items():
        execute("INSERT OR REPLACE INTO meta VALUES (?, ?, ?)", (name, value, seal((name, crc(value)))))
