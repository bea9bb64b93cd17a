"""Checksums of the catalog's rows. SQLite has none of its own, and would return rows that the disk has changed."""

import re
import sqlite3
from functools import lru_cache
from typing import Any

from isal.isal_zlib import crc32

from spark_rowtime.store.cells import COUNT, COUNT_OR_NONE, SHIFT, STATUS, TIME, TIME_OR_NONE, Cells
from spark_rowtime.store.history import LoggedEvent
from spark_rowtime.types.short_repr import short_repr

_FORMATS = ["|".join(["%s"] * count) for count in range(20)]
_LETTERS: dict[type, str] = {int: "i", str: "s", type(None): "n"}
_COLUMNS = {"events": re.compile("issi[in]{3}i(n{8}|in{7}|iiiisiii)")}
"""The types of a row's columns, a letter each; the train of the last event that ``gc`` has removed has its number of
rows alone. SQLite keeps any value in any column, and whoever may write into the
directory can compute a seal."""

_CELLS = {
    "events": Cells(
        [*LoggedEvent._fields[:9], "least", "largest"],
        **dict.fromkeys(("floor", "stream_floor", "stream_largest", "least", "largest"), TIME_OR_NONE),
        time=TIME,
        stream_rows=COUNT,
        rows=COUNT_OR_NONE,
    ),
    "producers": Cells(
        ["name", "status", "floor", "lease", "seen", "sent"], status=STATUS, floor=TIME_OR_NONE, seen=TIME, sent=TIME
    ),
    "rejected": Cells(["producer", "number", "time", "reason", "bound"], time=TIME, bound=TIME_OR_NONE),
    "topic_cuts": Cells(["seq", "producer", "hold"], seq=COUNT, hold=TIME_OR_NONE),
    "uptime": Cells(["boot", "ahead", "counted"], ahead=SHIFT, counted=TIME),
}
"""The first columns of these tables, and which values they may have."""


class Damaged(sqlite3.DatabaseError):
    """A row of the catalog is not the one that was written."""


def seal(values: tuple[Any, ...]) -> int:
    """Returns the CRC-32 of ``values`` as UTF-8 text joined by ``|``, with numbers in decimal and NULL as ``None``.

    The CRC-32 of a BLOB takes the place of the BLOB.
    """
    return crc32((_FORMATS[len(values)] % values).encode("utf-8", "surrogatepass"))


def sealed(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Returns ``values`` with their seal behind them, as a row of a table has them."""
    return (*values, seal(values))


def crc(blob: Any) -> Any:
    """Returns the value that stands for ``blob`` in a seal."""
    return crc32(blob) if isinstance(blob, bytes) else blob


def intact(row: tuple[Any, ...], table: str) -> tuple[Any, ...]:
    """Returns ``row`` without its last column, the seal.

    Raises Damaged if the seal does not match, if an event has values of other types than events have, or if a number or
    a status is one that no store writes. The error names ``table`` and the first column.
    """
    values = row[:-1]
    if seal(values) != row[-1]:
        raise Damaged(f"row {short_repr(row[0])} of the table {table} does not match its checksum")
    if table in _COLUMNS and not _fits(table, tuple(map(type, values))):
        raise Damaged(f"row {short_repr(row[0])} of the table {table} has values of other types than its columns")
    if table in _CELLS and (what := _CELLS[table].strange(values)) is not None:
        raise Damaged(f"row {short_repr(row[0])} of the table {table} cannot be read: {what}, as in no such row")
    return values


@lru_cache(256)
def _fits(table: str, types: tuple[type, ...]) -> bool:
    return _COLUMNS[table].fullmatch("".join(_LETTERS.get(one, "?") for one in types)) is not None
