"""Parses and validates the options of ``format("rowtime")``."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from spark_rowtime.errors import InvalidOptionError
from spark_rowtime.reader.release import Release, release, start_bound
from spark_rowtime.store import without_file
from spark_rowtime.types.arguments import to_count, to_name, to_text, unknown_option
from spark_rowtime.types.schema import ROWTIME

LATENESS_COLUMN, ADAPTER_ARGUMENT = "lateness.<column>", "adapter.<argument>"
"""Options of which there is one for each column, or for each argument of the adapter."""
TOPIC_TIME = "topicBounds"
"""The option with which ``punctuate`` reads the stream of a topic's bounds: the time column of the topic's rows."""
WATCH = "watch"
"""The option with which ``punctuate`` has the bounds derived from the topic: a JSON object, arguments of KafkaWatch."""
READ = (
    "path",
    "order",
    "hold",
    "startingPosition",
    "maxRowsPerTrigger",
    "maxBytesPerTrigger",
    "adapter",
    ADAPTER_ARGUMENT,
    "producer",
    "watermark",
    "punctuate",
    "bounds",
    "view",
    TOPIC_TIME,
    WATCH,
)
WRITE = ("path", "rowtime", "lateness", LATENESS_COLUMN, "onDisorder")
WRITE_BATCH = (*WRITE, "producer", "complete")
_ALL = tuple(dict.fromkeys((*READ, *WRITE_BATCH)))
SPARKS_OWN = ("checkpointlocation", "queryname", "paths", "__paths__", "timezone")
"""Options, in lower case, that Spark or its users pass to every source."""
TABLES_OWN = ("owner", "provider", "location", "external", "is_managed_location", "comment", "collation", "table_type")
_OF_TABLE = "option."
"""Spark passes the options TABLES_OWN for CREATE TABLE ... USING rowtime, and repeats each option with this prefix. So
does the extension with the options of a table that is read or written. A table may have options for both."""
VIEWS = ("rows", "bounds", "rejected", "producers")


class Options:
    """The options of one reader or writer. Names are case-insensitive, as in Spark; values are strings."""

    def __init__(self, given: Mapping[str, str], known: tuple[str, ...]) -> None:
        ours = {name: text for name, text in given.items() if not _is_sparks(name)}
        of_table = {_plain(name): text for name, text in ours.items() if _is_of_table(name)}
        for name in ours:
            allowed = _ALL if _plain(name) in of_table else known
            if not _is_of(_plain(name), allowed):
                shown = _plain(name) if _is_of_table(name) else name
                raise unknown_option(shown, allowed, f"There is no option {shown!r}.")
        self._given = of_table | {_plain(name): text for name, text in ours.items() if not _is_of_table(name)}

    def get(self, name: str, default: str | None = None) -> str | None:
        """Returns the value as it was given."""
        return self._given.get(name.lower(), default)

    def choice(self, name: str, *allowed: str) -> str:
        """Returns one of ``allowed``, of which the first is the default."""
        value = self.get(name, allowed[0]) or ""
        if value.lower() not in allowed:
            raise InvalidOptionError(f"{name}={value!r} is not one of {', '.join(allowed)}.", option=name)
        return value.lower()

    def count(self, name: str) -> int | None:
        """Returns a whole number of at least 1, or None if the option is not given."""
        value = self.get(name)
        if value is None:
            return None
        return to_count(int(value) if value.strip().isdecimal() else value, name, 1)

    def lateness(self, columns: list[str]) -> dict[str, str] | None:
        """Returns the lateness of each column that has one.

        ``lateness`` applies to rowtime, ``lateness.updated`` to the column updated. Spark may have changed the case
        of an option's name, so the column name is matched in any case.
        """
        found = {} if self.get("lateness") is None else {ROWTIME: self._given["lateness"]}
        for name, value in self._given.items():
            if name.startswith("lateness."):
                found[_column(name.removeprefix("lateness."), columns, found)] = value
        return found or None

    @property
    def adapter_arguments(self) -> dict[str, str]:
        """The adapter's arguments. Their names may be in another case than the user wrote."""
        prefix = "adapter."
        return {name.removeprefix(prefix): text for name, text in self._given.items() if name.startswith(prefix)}

    def check_read(self) -> "Options":
        """Validates every option of a read, so that an error is raised at load() and not in the query."""
        self._check_adapter()
        self.release()
        self.choice("watermark", "auto", "none")
        self.choice("punctuate", "false", "true")
        if self.choice("view", *VIEWS) != "rows" and self.bounds == "markers":
            raise InvalidOptionError("bounds=markers is for the rows of a stream: leave out view.", option="bounds")
        return self

    def _check_adapter(self) -> None:
        for_adapter = [name for name in self._given if name == "producer" or name.startswith("adapter.")]
        if for_adapter and self.get("adapter") is None:
            raise InvalidOptionError(
                f"The option {for_adapter[0]} is for an adapter, but no adapter is given. Name it: "
                "option('adapter', 'my_feed:MyFeed').",
                option="adapter",
            )
        if self.adapter_producer is not None:
            to_name(self.adapter_producer, "producer")

    @property
    def adapter_producer(self) -> str | None:
        """The name under which the adapter sends; None: that of its class."""
        return self.get("producer")

    @property
    def path(self) -> str:
        """The path of the stream."""
        path = self.get("path")
        if not path:
            raise InvalidOptionError(
                "No stream was named. Write .load('orders.rowtime') or .save('orders.rowtime'), for a sink "
                ".start('orders.rowtime') (toTable gives no path), or option('path', ...); in SQL, USING rowtime "
                "OPTIONS (path '/data/orders.rowtime')."
            )
        if path.startswith("memory://"):
            raise InvalidOptionError(
                f"Spark cannot use {path}: a stream in memory is in one process, and the source runs in others. Give a "
                "directory, such as 'orders.rowtime', which processes share.",
                option="path",
                value=path,
            )
        return to_text(path, "path")

    @property
    def ends_with_session(self) -> bool:
        """Whether the path lies in the folder that a server of Spark Connect has for a session, and removes after it.

        Only there the current folder of a Python process is below one that Spark calls userFiles-....
        """
        path = without_file(self.path)
        relative = "://" not in path and not Path(path).is_absolute()
        return relative and any(folder.startswith("userFiles-") for folder in Path.cwd().parts)

    @property
    def written_path(self) -> str:
        """The path of a stream that is written or created."""
        if self.ends_with_session:
            raise InvalidOptionError(
                f"The relative path {self.path!r} is in a folder of the server of Spark Connect ({Path.cwd()}), which "
                "ends with the session, and so would the stream. Give an absolute path of the server's machine, such "
                f"as '/data/{self.path}', or one in a database.",
                option="path",
                value=self.path,
            )
        return self.path

    @property
    def bounds(self) -> str:
        """Who brings the bounds into a query: the extension, nobody (ignore), or rows among the others (markers)."""
        return self.choice("bounds", "require", "ignore", "markers")

    def _order(self) -> str:
        if self.bounds != "markers":
            return self.choice("order", "arrival", "rowtime")
        if self.get("order", "rowtime") != "rowtime":
            raise InvalidOptionError(
                "bounds=markers gives out the rows below the bound alone, which is order=rowtime. Leave order out.",
                option="order",
                value=self.get("order"),
            )
        return "rowtime"

    def release(self) -> Release:
        """Returns how rows are released. Its ``since`` is ``startingPosition``, if that is a time."""
        how = release(
            self._order(),
            self.get("hold"),
            max_rows=self.count("maxRowsPerTrigger"),
            max_bytes=self.count("maxBytesPerTrigger"),
        )
        start = self.get("startingPosition", "earliest") or ""
        if start.lower() in ("earliest", "latest"):
            return how
        return replace(how, since=start_bound(start, "startingPosition", "earliest, latest"))

    @property
    def from_latest(self) -> bool:
        """Whether a new query starts at the end of the stream."""
        return (self.get("startingPosition") or "").lower() == "latest"


def _column(name: str, columns: list[str], others: Mapping[str, str]) -> str:
    """Returns the one of ``columns`` whose name in lower case is ``name``, if it has no lateness yet."""
    found = [column for column in columns if column.lower() == name]
    option = f"lateness.{name}"
    if len(found) != 1:
        raise InvalidOptionError(f"{option} must name exactly one of the columns {columns}.", option=option)
    if found[0] in others:
        raise InvalidOptionError(f"{option} and lateness mean the same. Give one of them.", option=option)
    return found[0]


def _plain(name: str) -> str:
    return name.lower().removeprefix(_OF_TABLE)


def _is_of_table(name: str) -> bool:
    return name.lower().startswith(_OF_TABLE)


def _is_sparks(name: str) -> bool:
    return name.startswith("spark.") or _plain(name) in (*SPARKS_OWN, *TABLES_OWN)


def _is_of(name: str, known: tuple[str, ...]) -> bool:
    """Whether the option, in lower case, is one of ``known``, or for one column or one argument of the adapter."""
    families = [option.partition("<")[0] for option in (LATENESS_COLUMN, ADAPTER_ARGUMENT) if option in known]
    return name in map(str.lower, known) or any(name.startswith(family) and name != family for family in families)
