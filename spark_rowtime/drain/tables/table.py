"""Table: rows that are appended by commits with properties. The base of Delta and Iceberg tables."""

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import NamedTuple

import pyarrow as pa

from spark_rowtime.bounds.bound import RowtimeBound
from spark_rowtime.drain.properties import bound_in, extent_properties
from spark_rowtime.drain.sink import TableSink
from spark_rowtime.errors import ProducerFencedError, SchemaMismatchError, StoreUnavailableError
from spark_rowtime.types.schema import columns_of, names_in

ATTEMPTS = 20
"""How often a commit is tried beside other writers, whose commits came first."""


class LastCommit(NamedTuple):
    """The last commit by spark-rowtime: when it was made, in microseconds, if it says so, and what its query says."""

    moved: int | None
    account: object


class Table(ABC):
    """A table at ``target``, such as ``delta:/lake/orders``, opened for one writer.

    With a schema, it is made if there is none; with ``missing``, that is raised in place of making it.

    Law (*once*): ``append`` commits rows and properties together, and only if the table's last properties are still
    those that this writer knows. So of two writers that continue from one position, one is fenced.
    """

    def __init__(self, target: str, schema: pa.Schema | None, missing: Exception | None = None) -> None:  # noqa: ARG002
        self.target = target
        self._columns = schema
        """The columns of the rows that are written; None if none are."""
        self.properties: dict[str, str] = {}
        """The properties of the last commit by spark-rowtime, as this writer knows them."""
        self.place = ""
        """The version or snapshot that has the position, for an error."""

    def append(self, rows: pa.Table, properties: Mapping[str, str]) -> None:
        """Commits rows, which may be none, with properties.

        Raises:
            ProducerFencedError: Another drain or query has committed; nothing of this call is in the table.
            StoreUnavailableError: Other writers committed each time, or the table cannot be written.
        """
        whole = {**properties, **extent_properties(rows, self.properties)}
        for _ in range(ATTEMPTS):
            if self._commit(rows, dict(whole)):
                self.properties = whole
                return
            if (found := self._reload()) != self.properties:
                raise _fenced(self.target, self.properties, found)
        raise StoreUnavailableError(
            f"Other writers of {self.target} committed {ATTEMPTS} times in a row before this one. Nothing of this call "
            "is in the table. Run the drain again once there are fewer.",
            path=self.target,
        )

    @classmethod
    def open_sink(cls, target: str, schema: pa.Schema, every: int, max_rows: int, bounds_every: int) -> TableSink:
        """A sink that gathers rows for a drain; intervals are in microseconds."""
        return TableSink(cls(target, schema), schema, every, max_rows, bounds_every=bounds_every)

    @classmethod
    def read_bound(cls, target: str) -> RowtimeBound | None:
        """The bound of the table's last commit by spark-rowtime; None if there is none."""
        return bound_in(cls(target, None).properties)

    @property
    @abstractmethod
    def id(self) -> str | None:
        """The table's id, which one that is made again does not have; None if it has none."""

    @abstractmethod
    def lastBatch(self, query: str) -> int | None:
        """The last batch that a query has committed, also where the table was set back; None if there is none."""

    @property
    def hasForgotten(self) -> bool:
        """Whether the table no longer knows the bound and the batch of a query's last commit."""
        return False

    @abstractmethod
    def _commit(self, rows: pa.Table, properties: dict[str, str]) -> bool:
        """Commits on top of the state that was loaded; False if another commit came first."""

    @abstractmethod
    def _reload(self) -> dict[str, str]:
        """Loads the table's newest state; returns the properties of the last commit by spark-rowtime."""


def require_same(target: str, stream: pa.Schema, table: pa.Schema, *, wanted: pa.Schema | None = None) -> None:
    """Raises SchemaMismatchError, which names the column, unless rows of ``stream`` fit into the table exactly.

    ``wanted``: the types that a table of this format has for those of ``stream``; None: the same. A column that is
    NOT NULL in the stream may be nullable in the table. The order of the columns does not matter.
    """
    there = {field.name: field for field in table}
    here = {field.name: field for field in columns_of(wanted or stream)}
    for name in [*here, *there]:
        if name not in there or name not in here:
            which = "the table does not have" if name in here else "only the table has"
            raise SchemaMismatchError(
                f"{target} exists, and its columns are not the stream's: column {name!r} {which}. Change the table, or "
                "drain into another one, which is then made with the stream's schema.",
                path=target,
                column=name,
            )
        _require_field(target, here[name], columns_of(pa.schema([there[name]])).field(0))


def _require_field(target: str, field: pa.Field, there: pa.Field) -> None:
    nulls = field.nullable and not there.nullable
    if field.type == there.type and not nulls:
        return
    raise SchemaMismatchError(
        f"{target} exists, and its column {field.name!r} is {there.type}{'' if there.nullable else ' NOT NULL'}, but "
        f"the stream's needs {field.type}{'' if field.nullable else ' NOT NULL'}. Change the table, or drain into "
        "another one, which is then made with the stream's schema.",
        path=target,
        column=field.name,
        type=str(there.type),
    )


def require_names(target: str, schema: pa.Schema, refused: str, what: str) -> None:
    """Raises SchemaMismatchError if the name of a column, or of a field in one, has a character of ``refused``."""
    for field in schema:
        for name in names_in(field):
            if re.search(f"[{re.escape(refused)}]", name):
                raise SchemaMismatchError(
                    f"Column {field.name!r} cannot be kept in {target}: {what} does not allow {name!r} as a name, "
                    f"because of one of the characters {refused!r}. Rename it in the stream's query or feed.",
                    path=target,
                    column=field.name,
                )


def _fenced(target: str, known: Mapping[str, str], found: Mapping[str, str]) -> ProducerFencedError:
    return ProducerFencedError(
        f"Another drain or query has committed to {target} since this one opened it, or the table was set back: the "
        f"last commit in it has {dict(found)}, not {dict(known)}. Nothing of this call is in the table. Let only one "
        "of them run; a new drain continues from the table's position.",
        path=target,
    )
