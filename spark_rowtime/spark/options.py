"""Parses and validates the options of ``format("rowtime")``."""

from collections.abc import Mapping
from difflib import get_close_matches

from spark_rowtime.bounds.bound import RowtimeBound
from spark_rowtime.errors import InvalidOptionError, UnknownOptionError
from spark_rowtime.reader.release import Release, release
from spark_rowtime.types.arguments import to_text
from spark_rowtime.types.schema import ROWTIME

READ = (
    "path",
    "order",
    "hold",
    "startingPosition",
    "maxRowsPerTrigger",
    "maxBytesPerTrigger",
    "adapter",
    "watermark",
    "punctuate",
    "bounds",
    "view",
)
LATENESS_COLUMN = "lateness.<column>"
WRITE = ("path", "rowtime", "lateness", LATENESS_COLUMN, "onDisorder")
WRITE_BATCH = (*WRITE, "producer")
SPARKS_OWN = ("checkpointlocation", "queryname", "paths", "__paths__", "timezone")
"""Options, in lower case, that Spark or its users pass to every source."""
TABLES_OWN = ("owner", "provider", "location", "external", "is_managed_location", "comment", "collation", "table_type")
_AGAIN = "option."
"""Spark passes the options TABLES_OWN for CREATE TABLE ... USING rowtime, and repeats each option with this prefix."""
VIEWS = ("rows", "bounds", "rejected", "producers")


class Options:
    """The options of one reader or writer. Names are case-insensitive, as in Spark; values are strings."""

    def __init__(self, given: Mapping[str, str], known: tuple[str, ...]) -> None:
        self._given = {name.lower(): value for name, value in given.items()}
        lower = {name.lower(): name for name in known}
        passed_over = {*lower, *SPARKS_OWN, *TABLES_OWN}
        for name in given:
            plain = name.lower().removeprefix(_AGAIN)
            of_column = plain.startswith("lateness.") and LATENESS_COLUMN in known
            if plain not in passed_over and not of_column and not name.startswith("spark."):
                raise _unknown(name, lower)

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
        if not value.strip().isdecimal() or int(value) < 1:
            raise InvalidOptionError(f"{name}={value!r} must be a whole number from 1 on.", option=name)
        return int(value)

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

    def check_read(self) -> "Options":
        """Validates every option of a read, so that an error is raised at load() and not in the query."""
        self.release()
        self.choice("bounds", "require", "ignore")
        self.choice("watermark", "auto", "none")
        self.choice("punctuate", "false", "true")
        self.choice("view", *VIEWS)
        return self

    @property
    def path(self) -> str:
        """The path of the stream."""
        path = self.get("path")
        if not path:
            raise InvalidOptionError(
                "No stream was named. Write .load('orders.rowtime') or .save('orders.rowtime'), of a sink "
                ".start('orders.rowtime') (toTable knows no path), or option('path', ...); in SQL, USING rowtime "
                "OPTIONS (path '/data/orders.rowtime')."
            )
        return to_text(path, "path")

    def release(self) -> Release:
        """Returns how rows are released. Its ``since`` is ``startingPosition``, if that is a time."""
        how = release(
            self.choice("order", "arrival", "rowtime"),
            self.get("hold"),
            max_rows=self.count("maxRowsPerTrigger"),
            max_bytes=self.count("maxBytesPerTrigger"),
        )
        start = self.get("startingPosition", "earliest") or ""
        if start.lower() in ("earliest", "latest"):
            return how
        return Release(how.order, how.hold, self._since(start), how.max_rows, how.max_bytes)

    @staticmethod
    def _since(start: str) -> int:
        try:
            return RowtimeBound(start).floor
        except InvalidOptionError as error:
            message = f"startingPosition is neither earliest nor latest nor a time: {error}"
            raise InvalidOptionError(message, option="startingPosition") from None

    @property
    def from_latest(self) -> bool:
        """Whether a new query starts at the end of the stream."""
        return (self.get("startingPosition") or "").lower() == "latest"


def _column(name: str, columns: list[str], others: Mapping[str, str]) -> str:
    """Returns the one of ``columns`` whose name in lower case is ``name``, if it has no lateness yet."""
    found = [column for column in columns if column.lower() == name]
    option = f"lateness.{name}"
    if len(found) != 1:
        raise InvalidOptionError(f"{option} names no column of {columns}, or more than one.", option=option)
    if found[0] in others:
        raise InvalidOptionError(f"{option} and lateness are the same: give one of them.", option=option)
    return found[0]


def _unknown(name: str, lower: Mapping[str, str]) -> UnknownOptionError:
    near = get_close_matches(name.lower(), lower, n=1, cutoff=0.5)
    hint = f" Did you mean {lower[near[0]]!r}?" if near else ""
    return UnknownOptionError(
        f"There is no option {name!r}.{hint} The options are {', '.join(lower.values())}.",
        option=name,
        nearest=lower[near[0]] if near else None,
    )
