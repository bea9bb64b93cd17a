"""Announced: what an announcer follows: a stream, a table or a topic."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from spark_rowtime.announce.progress import Progress, warn_of_other_readers
from spark_rowtime.announce.table_progress import TableProgress
from spark_rowtime.calendar import Calendar
from spark_rowtime.drain.kafka.bound_reader import BoundReader
from spark_rowtime.drain.sink import PLUGINS
from spark_rowtime.drain.tables.open import read_table
from spark_rowtime.errors import DataLostError, InvalidOptionError, StreamNotFoundError
from spark_rowtime.kafka.address import KAFKA, topic_address
from spark_rowtime.kafka.client import client_options
from spark_rowtime.store import open_store
from spark_rowtime.store.base import Store
from spark_rowtime.stream import createStream
from spark_rowtime.types.arguments import to_text
from spark_rowtime.types.plugins import plugin_names

_REFUSED = dict.fromkeys(("bootstrap.servers", "group.id", "isolation.level"), "the announcer sets it.")


class Announced:
    """What ``path`` names: a stream, which keeps its announcers' positions itself, a table, or a topic of Kafka."""

    def __init__(
        self, path: str, positions: str | None, options: Mapping[str, Any] | None, wait: Callable[[float], object]
    ) -> None:
        self._path, self._wait, self._options = path, wait, options or {}
        self._is_topic = isinstance(path, str) and path.startswith(KAFKA)
        self._is_stream = not self._is_topic and not _is_table(path)
        self._require_positions(positions)
        self.keeper: str = path if positions is None else to_text(positions, "positions")
        """The stream that keeps the position."""

    def label(self, label: str, *, named: bool) -> str:
        """The name of the position: in a stream for several tables the table is a part of it, unless it is given."""
        return label if self._is_stream or named else f"{label}@{_whole(self._path)}"

    @contextmanager
    def progress(
        self, calendar: Calendar, reader: str, start: Any, *, ends: bool
    ) -> Iterator[Progress | TableProgress]:
        """The position of the announcer ``reader``."""
        if self._is_stream:
            with closing(open_store(self._path)) as store:
                warn_of_other_readers(store)
                yield Progress(store, calendar, reader, start, ends=ends)
            return
        with closing(open_store(self.keeper)) as kept, self._reading(kept, reader) as (read, name):
            yield TableProgress(self._path, read, kept, calendar, name, start, ends=ends, wait=self._wait)

    @contextmanager
    def _reading(self, kept: Store, reader: str) -> Iterator[tuple[Callable[[], Mapping[str, str]], str]]:
        """What reads the bound, and the extent of the rows, as properties; and the name of the position.

        That has the id of the table or topic, so that one which was created again does not go on where the old one was.
        """
        if not self._is_topic:
            table = _SameTable(self._path, partial(_keep_with_id, kept, reader))
            yield table.properties, _name_with_id(kept, reader, table)
            return
        with closing(BoundReader(topic_address(self._path), client_options(self._options, _REFUSED))) as topic:
            of_topics = f"{reader} of topic "
            known = [one.name for one in kept.snapshot().readers if one.name.startswith(of_topics)]
            if known and of_topics + topic.id not in known:
                raise topic.replaced(known[0].removeprefix(of_topics), topic.id)
            yield topic.properties, of_topics + topic.id

    def _require_positions(self, positions: str | None) -> None:
        """Makes the stream of positions if there is none; InvalidOptionError where it is missing, or not used."""
        if self._options and not self._is_topic:
            raise InvalidOptionError(
                "clientOptions are those of Kafka's client, for a topic. Leave them out.", option="clientOptions"
            )
        if self._is_stream:
            if positions is not None:
                raise InvalidOptionError(
                    f"{self._path} is a stream, and keeps the position of its announcers itself. Leave positions out.",
                    option="positions",
                )
            return
        if positions is None:
            raise InvalidOptionError(
                f"{self._path} is not written to by an announcer, so the position has to be kept elsewhere. Give "
                "positions (--positions), the path of a stream that is made if there is none, such as "
                "announced.rowtime; one stream may keep those of many tables.",
                option="positions",
            )
        try:
            open_store(positions).close()
        except StreamNotFoundError:
            createStream(positions, "rowtime TIMESTAMP NOT NULL", existOk=True)


_OF_TABLE = " of table "


class _SameTable:
    """A table, each time that it is read the one that it was at first."""

    def __init__(self, path: str, gets_id: Callable[[str], object]) -> None:
        """``gets_id`` is called with the id of a table that had none, since an earlier version has written it."""
        self._path, self._gets_id = path, gets_id
        self.id = read_table(path)[0]

    def properties(self) -> Mapping[str, str]:
        """What its last commit tells. Raises DataLostError if the table was created again."""
        found, properties = read_table(self._path)
        if self.id is None and found is not None:
            self.id = found
            self._gets_id(found)
        elif found != self.id:
            raise self.replaced(self.id, found)
        return properties

    def replaced(self, before: str | None, now: str | None) -> DataLostError:
        """The error for a table that was created again, with these ids."""
        return DataLostError(
            f"{self._path} was deleted and created again, or is another table (its id was {before} and is {now}), so "
            "its bound is that of other rows. Announce it under another name (--name), or with another stream of "
            "positions (--positions): its periods are announced again then, or from --start on.",
            path=self._path,
        )


def _name_with_id(kept: Store, reader: str, table: _SameTable) -> str:
    """The name of the position, with the table's id. One without, of an earlier version, is taken for the table's."""
    if table.id is None:
        return reader
    of_tables = f"{reader}{_OF_TABLE}"
    known = {one.name for one in kept.snapshot().readers}
    others = [name.removeprefix(of_tables) for name in known if name.startswith(of_tables)]
    if others and table.id not in others:
        raise table.replaced(others[0], table.id)
    if reader in known:
        _keep_with_id(kept, reader, table.id)
        kept.forget(reader)
    return of_tables + table.id


def _keep_with_id(kept: Store, reader: str, table: str) -> None:
    """Keeps the position of an announcer under the id of its table, too, so that it is not taken for another one's."""
    if position := kept.snapshot().position_of(reader):
        kept.keep(f"{reader}{_OF_TABLE}{table}", position)


def _is_table(path: Any) -> bool:
    """Whether a text begins with the name of a format of tables. ``postgresql:`` and ``memory:`` are none."""
    kind, colon, _ = path.partition(":") if isinstance(path, str) else ("", "", "")
    return bool(colon) and kind in plugin_names(PLUGINS)


def _whole(path: str) -> str:
    """The name of a table or a topic, a folder as an absolute path: tables of one name in two folders are two."""
    kind, _, place = path.partition(":")
    return f"{kind}:{Path(place).absolute()}" if kind in ("delta", "parquet") and "://" not in place else path
