"""Checksums of the catalog's rows. SQLite has none of its own, and would return rows that the disk has changed."""

import sqlite3
from typing import Any

from isal.isal_zlib import crc32

from spark_rowtime.types.short_repr import short_repr

_FORMATS = ["|".join(["%s"] * count) for count in range(20)]


class Damaged(sqlite3.DatabaseError):
    """A row of the catalog is not the one that was written."""


def seal(values: tuple[Any, ...]) -> int:
    """Returns the CRC-32 of ``values`` as UTF-8 text joined by ``|``, with numbers in decimal and NULL as ``None``.

    The CRC-32 of a BLOB takes the place of the BLOB.
    """
    return crc32((_FORMATS[len(values)] % values).encode("utf-8", "surrogatepass"))


def crc(blob: Any) -> Any:
    """Returns the value that stands for ``blob`` in a seal."""
    return crc32(blob) if isinstance(blob, bytes) else blob


def intact(row: tuple[Any, ...], table: str) -> tuple[Any, ...]:
    """Returns ``row`` without its last column, the seal. Raises Damaged if the seal does not match.

    The error names ``table`` and the first column.
    """
    if seal(row[:-1]) != row[-1]:
        raise Damaged(f"row {short_repr(row[0])} of the table {table} does not match its checksum")
    return row[:-1]
