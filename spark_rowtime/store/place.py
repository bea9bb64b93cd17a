"""The place of a stream: what two paths have in common that name the same directory, or the same database."""

import os
from pathlib import Path

from spark_rowtime.store import in_database, without_file
from spark_rowtime.types.arguments import to_text
from spark_rowtime.types.extras import import_extra

Place = tuple[str, ...]
"""The kind of the store and the parts of the path in it. The place of a folder, or of a database, begins that of each
of its streams."""
_OF_DATABASE = 4
"""The parts of the place of a database: its kind, host, port and name."""


def place_of(path: str) -> Place:
    """Returns the place that a path names; nothing is opened, and links are followed.

    Raises InvalidOptionError, or what else says that it is no path.
    """
    path = to_text(os.fspath(path) if isinstance(path, os.PathLike) else path, "path")
    if path.startswith("memory://"):
        return ("memory", path)
    if in_database(path):
        import_extra("psycopg", "postgres", "A stream in PostgreSQL")
        from spark_rowtime.store.postgres.address import database_address  # noqa: PLC0415  (needs the extra)

        found = database_address(path)
        return ("postgresql", *found.server, *filter(None, found.stream.split("/")))
    return ("directory", *Path(os.path.realpath(without_file(path))).parts)


def around(place: Place) -> Place | None:
    """Returns the place of the folder, or of the database, that has a stream; None for the root of all files."""
    if place[0] == "postgresql":
        return place[:_OF_DATABASE]
    return None if place[:-1] == ("directory", os.sep) else place[:-1]


def path_within(given: str, stored: str) -> str:
    """Returns the path of the stream that ``stored`` names, in the store of ``given``, which is the caller's.

    In a database it has the user and the options of ``given``; those of ``stored`` are never used.
    """
    if in_database(given):
        from spark_rowtime.store.postgres.address import database_address  # noqa: PLC0415

        return database_address(given).other(database_address(stored).stream)
    kind, *parts = place_of(stored)
    return stored if kind == "memory" else str(Path(*parts))
