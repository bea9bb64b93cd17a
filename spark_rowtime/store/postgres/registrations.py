"""The functions of the database by which readers register, and queries that read report: each its own."""

from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from spark_rowtime.store.position import Position
from spark_rowtime.store.snapshot import FORGET_STATUS_MICROS, READS_COPIED, ReaderInfo
from spark_rowtime.types.timestamps import END

MOST_ENTRIES, MOST_BYTES = 1000, 16 << 20
"""How many readers of a stream one user registers at most, and how many queries report; the bytes of these reports."""
MOST_NAME_BYTES = 2600
"""The most bytes of a name, with the role that a status has before it. An index takes longer ones only compressed."""
FUNCTIONS = (
    files(__package__)
    .joinpath("registrations.sql")
    .read_text("utf-8")
    .replace("- FORGET_ACCOUNT", f"- {FORGET_STATUS_MICROS}")
    .replace(">= MOST_ENTRIES", f">= {MOST_ENTRIES}")
    .replace("MOST_NAME", str(MOST_NAME_BYTES))
    .replace("> MOST_BYTES", f"> {MOST_BYTES}")
    .replace("LEAST(at_cut, END_OF_TIME)", f"LEAST(at_cut, {END + 1})")
)
KEEP = "SELECT rowtime.keep_reader(%s, %s, %s, %s, %s, %s, %s)"
"""Parameters: the stream, its name, the reader, its seq, its cut, the uptime, and what it reads. Returns false if the
stream is gone."""
ALL = (
    f"SELECT name, seq, cut, seen, reads, reads <> '{READS_COPIED}' AND (owner = '' OR EXISTS (SELECT "  # noqa: S608
    "FROM pg_roles known WHERE known.rolname = owner AND has_table_privilege(known.oid, 'rowtime.heads', 'UPDATE'))) "
    "FROM rowtime.readers WHERE stream = %s ORDER BY name"
)
"""The readers of a stream: see :func:`opened`."""
FORGET = "SELECT rowtime.forget_reader(%s, %s)"
"""Parameters: the stream and the reader. Returns whether the reader was registered."""
REPORT = "SELECT rowtime.report_account(%s, %s, %s, %s, %s, %s)"
"""Parameters: the stream, its name, the role and the name of the status, the uptime, and its content. Returns false if
the stream is gone. Locks nothing."""


def opened(rows: Sequence[tuple[Any, ...]], now: int) -> list[ReaderInfo]:
    """Returns the readers of ALL at the uptime ``now``. Those are trusted whom a user has made who may write."""
    return [
        ReaderInfo(name, Position(seq, cut, None), max(now - seen, 0), *more) for name, seq, cut, seen, *more in rows
    ]
