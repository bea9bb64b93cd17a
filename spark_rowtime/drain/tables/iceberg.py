"""An Apache Iceberg table, through the library ``pyiceberg`` and a catalog that its configuration names."""

import time
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from spark_rowtime.drain.properties import QUERY, QUERY_STATUS, batch_in
from spark_rowtime.drain.tables.iceberg_expiry import MADE_WITH, outdated, remove_files
from spark_rowtime.drain.tables.iceberg_lineage import SNAPSHOT, in_sight, marks
from spark_rowtime.drain.tables.loading import loading, opened_catalog, told, unavailable
from spark_rowtime.drain.tables.outcome import settled
from spark_rowtime.drain.tables.partitions import require_writable
from spark_rowtime.drain.tables.table import LastCommit, Table, require_names, require_same
from spark_rowtime.errors import InvalidOptionError, ProcessForkedError, RowtimeError, SchemaMismatchError
from spark_rowtime.store.forks import no_fork, was_interrupted
from spark_rowtime.types.extras import import_extra

_RETRIES = "commit.retry.num-retries"
_REMOVAL = "remove-snapshots"


class IcebergTable(Table):
    """Rows and properties are one snapshot. The same properties are set on the table, in the same commit.

    The position is that of the newest snapshot that has one, back from the current one, so a rollback of the table
    takes the position back with the rows. Older snapshots of drains and queries expire with later commits.
    """

    now: Callable[[], float] = time.time  # noqa: TID251  (the wall clock, as in the snapshots)
    """The time in seconds, by which snapshots expire: a snapshot has the wall clock's."""

    def __init__(self, target: str, schema: pa.Schema | None, missing: Exception | None = None) -> None:
        super().__init__(target, schema)
        name, _, self._name = target.removeprefix("iceberg:").partition(".")
        if not name or "." not in self._name:
            raise InvalidOptionError(
                f"{target!r} does not name an Iceberg table. Give iceberg:CATALOG.NAMESPACE.TABLE; CATALOG is a name "
                "in PyIceberg's configuration (.pyiceberg.yaml, or PYICEBERG_CATALOG__NAME__URI).",
                option="target",
                value=target,
            )
        if schema is not None:
            _require_kept_nulls(target, schema)
        self._errors = import_extra("pyiceberg.exceptions", "iceberg", target)
        self._kept = f"iceberg:{name}"
        with no_fork(self._kept):
            self._catalog = self._opened(name)
            with loading(target):
                self._table = self._loaded(schema, missing)
        self.properties = self._reload()

    @property
    def id(self) -> str | None:
        """The table's UUID. One of version 1 may lack it; then PyIceberg makes up another one each time."""
        metadata = self._table.metadata
        return str(metadata.table_uuid) if "table_uuid" in metadata.model_fields_set else None

    @property
    def schema(self) -> pa.Schema:
        """The table's columns."""
        schema: pa.Schema = self._table.schema().as_arrow()
        return schema

    def _opened(self, name: str) -> Any:
        if was_interrupted(self._kept):
            raise ProcessForkedError(
                f"{self.target} cannot be opened in this process: it was forked while another thread used the catalog "
                f"{name!r}, and cannot take its locks if that is a file. Start such processes with "
                "multiprocessing.get_context('spawn') or 'forkserver', or fork while nothing drains into the catalog.",
                path=self.target,
            )
        catalogs = import_extra("pyiceberg.catalog", "iceberg", self.target)
        return opened_catalog(self.target, name, catalogs.load_catalog)

    def _loaded(self, schema: pa.Schema | None, missing: Exception | None) -> Any:
        if schema is not None and not self._catalog.table_exists(self._name):
            if missing is not None:
                raise missing
            self._make(schema)
        try:
            return self._catalog.load_table(self._name)
        except self._errors.NoSuchTableError as error:
            raise unavailable(self.target, error) from error

    def _make(self, schema: pa.Schema) -> None:
        """Makes the table; a writer that makes it at the same time is no error."""
        require_names(self.target, schema, ".", "Iceberg, where a dot leads to a nested field,")
        self._catalog.create_namespace_if_not_exists(self._name.rpartition(".")[0])
        try:
            self._catalog.create_table_if_not_exists(self._name, _widened(schema), properties=MADE_WITH)
        except (ValueError, TypeError) as error:
            raise SchemaMismatchError(
                f"{self.target} cannot be made with the stream's columns: {error}", path=self.target
            ) from error

    @property
    def last(self) -> LastCommit | None:
        """The last snapshot by spark-rowtime that led to the rows which a reader sees; None if it is not there."""
        if self._snapshot is None:
            return None
        said = self._snapshot.summary.additional_properties
        return LastCommit(self._snapshot.timestamp_ms * 1000, said.get(QUERY_STATUS))

    @property
    def commits(self) -> int:
        """How many snapshots the table has."""
        return len(self._table.metadata.snapshots)

    def lastBatch(self, query: str) -> int | None:
        """The last batch that a query has committed, also where the table was rolled back; None if there is none."""
        found = [self._table.properties, *map(marks, self._table.metadata.snapshots)]
        return max((batch_in(p) for p in found if p.get(QUERY) == query), default=None)

    def _commit(self, rows: pa.Table, properties: dict[str, str]) -> bool:
        """Loads the table once more where it cannot be written as it was loaded.

        Others may have let its snapshot expire, and the credentials that it was loaded with end some time.
        """
        for is_last in (False, True):
            try:
                return self._appended(rows, properties)
            except RowtimeError:
                raise
            except Exception as error:  # PyIceberg has errors of many classes for what it cannot write
                if is_last:
                    error = told(error)
                    raise unavailable(self.target, error) from error
            if self._reload() != self.properties:
                break
        return False

    def _appended(self, rows: pa.Table, properties: dict[str, str]) -> bool:
        from pyiceberg.table.update.snapshot import ExpireSnapshots  # noqa: PLC0415  (an extra)

        table, wide = self._table, _widened(rows.schema)
        table.metadata.properties[_RETRIES] = "0"  # here only: a retry within the library would pass another drain by
        table.catalog, before = AskingCatalog(self._catalog, self.target), table.metadata
        expired = outdated(before, int(self.now() * 1000))
        try:
            with no_fork(self._kept), table.transaction() as transaction:
                rows = rows if wide == rows.schema else rows.cast(wide)
                transaction.append(rows, snapshot_properties=properties)
                snapshot = str(transaction.table_metadata.current_snapshot_id)
                transaction.set_properties({**properties, SNAPSHOT: snapshot})
                if expired:
                    ExpireSnapshots(transaction).by_ids([old.snapshot_id for old in expired]).commit()
        except self._errors.CommitFailedException:
            return False
        remove_files([old for old in expired if table.snapshot_by_id(old.snapshot_id) is None], before, table)
        if str(table.metadata.current_snapshot_id) != snapshot:
            table.metadata = before  # another commit is on top already: the next one is refused, and looks whose it is
        return True

    def _reload(self) -> dict[str, str]:
        with loading(self.target):
            with no_fork(self._kept):
                self._table = self._catalog.load_table(self._name)
            writes = self._columns is not None
            found, self._snapshot, self.place = in_sight(self.target, self._table, writes=writes)
        if self._columns is not None:
            require_same(self.target, self._columns, self.schema, wanted=_widened(self._columns))
            require_writable(self.target, self._table)
        return found


def _require_kept_nulls(target: str, schema: pa.Schema) -> None:
    """Refuses types of which PyIceberg 0.12 writes null as an empty list or map."""
    for field in schema:
        if _loses_null(field):
            raise SchemaMismatchError(
                f"Column {field.name!r} cannot be kept in {target}: PyIceberg writes a null ARRAY of STRUCTs, or a "
                "null MAP with STRUCTs as values, as an empty one. Declare it NOT NULL in the stream, or use Delta.",
                path=target,
                column=field.name,
                type=str(field.type),
            )


def _loses_null(field: pa.Field) -> bool:
    kind, types = field.type, pa.types
    item = kind.value_field if types.is_list(kind) else kind.item_field if types.is_map(kind) else None
    if item is not None and types.is_struct(item.type) and field.nullable:
        return True
    inside = [item] if item is not None else list(kind) if types.is_struct(kind) else []
    return any(_loses_null(child) for child in inside)


def _widened(schema: pa.Schema) -> pa.Schema:
    """The schema with INT for TINYINT and SMALLINT, which Iceberg does not have; Spark makes tables the same way."""
    return pa.schema([_wide(field) for field in schema])


def _wide(field: pa.Field) -> pa.Field:
    kind, types = field.type, pa.types
    if kind in (pa.int8(), pa.int16()):
        return field.with_type(pa.int32())
    if types.is_list(kind):
        return field.with_type(pa.list_(_wide(kind.value_field)))
    if types.is_map(kind):
        return field.with_type(pa.map_(_wide(kind.key_field), _wide(kind.item_field)))
    if types.is_struct(kind):
        return field.with_type(pa.struct([_wide(child) for child in kind]))
    return field


class AskingCatalog:
    """A catalog that answers a commit by what the table has, where its own answer was lost or was an error.

    It is between PyIceberg's table and its catalog, since after a refusal PyIceberg removes the files of the commit,
    and with them those of a table that has it.
    """

    def __init__(self, catalog: Any, target: str) -> None:
        self._catalog, self._target = catalog, target
        self._errors = import_extra("pyiceberg.exceptions", "iceberg", target)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._catalog, name)

    def commit_table(self, table: Any, requirements: tuple[Any, ...], updates: tuple[Any, ...]) -> Any:
        """Commits, as a catalog does; requirements and updates stay the same, so it takes place once.

        Snapshots stay to which others have given a branch or a tag by now, while the rows were written.
        """
        requirements = (*requirements, *_same_columns(table.metadata))
        snapshot, updates = _added(updates), self._with_names_kept(table.name(), updates)
        return settled(
            self._target,
            lambda: self._catalog.commit_table(table, requirements, updates),
            lambda: self._found(table.name(), snapshot),
            refused=self._errors.CommitFailedException,
            lost=(Exception,),  # each catalog has errors of its own
        )

    def _with_names_kept(self, name: Any, updates: tuple[Any, ...]) -> tuple[Any, ...]:
        if not any(update.action == _REMOVAL for update in updates):
            return updates
        with loading(self._target):
            named = {ref.snapshot_id for ref in self._catalog.load_table(name).metadata.refs.values()}
        return tuple(without for update in updates if (without := _without(update, named)) is not None)

    def _found(self, name: Any, snapshot: int | None) -> Any:
        """The answer to a commit, if the table has its snapshot."""
        from pyiceberg.table import CommitTableResponse  # noqa: PLC0415  (an extra)

        now = self._catalog.load_table(name)
        if snapshot is None or now.metadata.snapshot_by_id(snapshot) is None:
            return None
        return CommitTableResponse(**{"metadata": now.metadata, "metadata-location": now.metadata_location})


def _same_columns(metadata: Any) -> tuple[Any, ...]:
    """Without these requirements, rows that were written by the ids of older columns would be NULL in new ones."""
    from pyiceberg.table.update import AssertCurrentSchemaId, AssertDefaultSpecId  # noqa: PLC0415  (an extra)

    return (
        AssertCurrentSchemaId(**{"current-schema-id": metadata.current_schema_id}),
        AssertDefaultSpecId(**{"default-spec-id": metadata.default_spec_id}),
    )


def _without(update: Any, named: set[int]) -> Any:
    """An update that removes no snapshot with a name; None if it removes none then."""
    if update.action != _REMOVAL:
        return update
    left = [one for one in update.snapshot_ids if one not in named]
    return update.model_copy(update={"snapshot_ids": left}) if left else None


def _added(updates: tuple[Any, ...]) -> int | None:
    """The id of the snapshot that a commit adds."""
    return next((update.snapshot.snapshot_id for update in updates if update.action == "add-snapshot"), None)
