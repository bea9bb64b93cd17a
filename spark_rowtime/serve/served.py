"""The streams and tables that are served: those named, and the streams in the folders and databases named."""

import logging
import os
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from spark_rowtime.diagnosis.explanation import Explanation
from spark_rowtime.diagnosis.reach import Reach
from spark_rowtime.diagnosis.why import explain
from spark_rowtime.drain.tables.reach import DELTA, local
from spark_rowtime.drain.tables.why import explain_table, is_table
from spark_rowtime.errors import (
    InvalidOptionError,
    RowtimeError,
    StoreUnavailableError,
    StreamNotFoundError,
    without_passwords,
)
from spark_rowtime.serve.call import PATIENCE_SECONDS, Call, SharedCalls
from spark_rowtime.store import in_database, list_stores, open_store
from spark_rowtime.store.place import Place, around, place_of

LOG = logging.getLogger("spark_rowtime")
START_SECONDS = 10.0
"""How long the start waits for a stream. Whatever has not answered then is shown as one that does not."""
LIST_SECONDS = 10.0
"""How often folders are listed and places found again, for streams that came, went or moved meanwhile."""


class Served:
    """The paths given to ``rowtime serve``. A path that is neither a table nor a stream must be a folder or a database.

    ``tables`` are the tables, in the order in which they were named. Raises StreamNotFoundError if a path is nothing of
    all that, InvalidOptionError if it is a database without streams, or no path of a stream, or has a password in it.
    """

    def __init__(self, paths: Sequence[str]) -> None:
        for path in paths:
            _refuse_password(path)
        self.tables = [path for path in dict.fromkeys(paths) if is_table(path)]
        others = [path for path in dict.fromkeys(paths) if path not in self.tables]
        opened = {path: Call(partial(_is_stream, path)) for path in others}
        self._folders = [
            path
            for path, call in opened.items()
            if (call.done_within(START_SECONDS) and not call.result()) or _is_database(path)
        ]
        self._streams = [path for path in others if path not in self._folders]
        self._table_at = {name: table for table in self.tables for name in _names_of(table)}
        self._listed: dict[str, list[str]] = {}
        self._list = SharedCalls(list_stores)
        self._looking = threading.Lock()
        self._due = 0.0
        self._places: dict[Place, str] = {}
        self._look()

    def paths(self) -> list[str]:
        """Returns the paths of the streams, in the order in which they were named: of each stream the first one."""
        self._look()
        return list(self._places.values())

    def _look(self) -> None:
        """Lists the folders again, and finds the places of all streams, if that is due."""
        if time.monotonic() >= self._due and self._looking.acquire(blocking=False):
            try:
                self._look_again()
            finally:
                self._looking.release()

    def _look_again(self) -> None:
        self._listed = {folder: self._streams_of(folder) for folder in self._folders}
        self._due = time.monotonic() + LIST_SECONDS
        places: dict[Place, str] = {}
        for path in (*self._streams, *(path for paths in self._listed.values() for path in paths)):
            places.setdefault(_place(path), path)
        self._places = places

    def _streams_of(self, folder: str) -> list[str]:
        """The streams of a folder; those that were there before, if it cannot be listed just now."""
        listing = self._list.begin(folder)
        if not listing.done_within(PATIENCE_SECONDS):
            return self._listed.get(folder, [])
        try:
            return listing.result()
        except (RowtimeError, OSError) as error:
            LOG.warning("The folder %s cannot be listed: %s", folder, error)
            return self._listed.get(folder, [])

    def why(self, path: str, at: str | None = None) -> Explanation:
        """Does what ``rt.why`` or ``rt.whyTable`` does, and leads only to streams and tables that are served."""
        explained = explain_table if path in self.tables else explain
        return explained(path, at, _OnlyServed(self))

    def table_at(self, stored: str) -> str | None:
        """Returns the table that a status names so. It does not look at the place, which a stranger may have named."""
        return self._table_at.get(os.path.normpath(stored))

    def path_at(self, place: Place) -> str | None:
        """Returns the path of the stream there. To look for the places of all paths for each answer would be slow."""
        self._look()
        return self._places.get(place)


class _OnlyServed(Reach):
    """The streams and tables that are served, as their paths were given."""

    shows_values = False

    def __init__(self, served: Served) -> None:
        super().__init__()
        self._served = served

    def _path_of(self, stored: str) -> str | None:
        try:
            return self._served.table_at(stored) or self._served.path_at(place_of(stored))
        except RowtimeError:
            return None

    def shown(self, stored: str) -> str:
        """See Reach. A visitor of the page is not told the paths of what it does not show."""
        del stored
        return "a stream or table that is not served here"


def _place(path: str) -> Place:
    """The place of a stream; of a path that names none, which the page shows with its error, the path."""
    try:
        return place_of(path)
    except RowtimeError:
        return ("path", path)


def _names_of(table: str) -> set[str]:
    """How statuses of queries may name it: a Delta table by its path."""
    if not table.startswith(DELTA):
        return {os.path.normpath(table)}
    path = local(table.removeprefix(DELTA))
    return set() if "://" in path else {os.path.normpath(Path(path).absolute()), str(Path(path).resolve())}


def _refuse_password(path: str) -> None:
    if (shown := without_passwords(path)) != path:
        raise InvalidOptionError(
            f"{shown} has a password in it, which the page would show to everybody. Name the path without it, and put "
            "the password into the environment.",
            path=shown,
        )


def _is_stream(path: str) -> bool:
    try:
        open_store(path).close()
    except StreamNotFoundError:
        if not list_stores(path):
            raise
        return False
    except RowtimeError as error:
        if not _is_database(path):
            if isinstance(error, InvalidOptionError):
                raise  # it stays so, and the page would show the path, with a password that may be in it
            return True  # the page says what is wrong with it
        with suppress(StoreUnavailableError):  # it is listed again later
            if not list_stores(path):
                raise
        return False
    return True


def _is_database(path: str) -> bool:
    """Whether the path names a database, and no stream in it. The database is not asked."""
    return in_database(path) and around(place := _place(path)) == place
