"""A Delta Lake table, through the library ``deltalake``."""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from spark_rowtime.errors import DataLostError, SchemaMismatchError, StoreUnavailableError
from spark_rowtime.tables.properties import BATCH, QUERY, marked
from spark_rowtime.tables.table import Table, require_names, require_same
from spark_rowtime.types.extras import import_extra

_DRAIN = "rowtime.drain"
"""The application of a drain's transaction. Its version is the number of the drain's commits."""
_HISTORY = (1, 100, None)
"""How many commits are looked through for the last one by spark-rowtime, in turn; None: all that the log has."""
_ALL_FEATURES = {"delta.minWriterVersion": "7"}
"""A table with TIMESTAMP_NTZ lists its features. Without this, deltalake 1.6 leaves out the one of NOT NULL columns,
and Spark refuses the table."""


class DeltaTable(Table):
    """Rows and properties are one commit of the log: ``add`` and ``commitInfo``, and a ``txn`` that fences others."""

    def __init__(self, target: str, schema: pa.Schema | None) -> None:
        super().__init__(target)
        self._library = import_extra("deltalake", "delta", target)
        path = target.removeprefix("delta:")
        if schema is not None:
            self._make(path, schema)
        try:
            self._table = self._library.DeltaTable(path)
        except self._library.exceptions.TableNotFoundError as error:
            raise _unavailable(target, error) from error
        self.properties = self._last()
        if schema is not None:
            require_same(target, schema, self.schema)

    @property
    def schema(self) -> pa.Schema:
        """The table's columns."""
        return pa.schema(self._table.schema().to_arrow())

    def _make(self, path: str, schema: pa.Schema) -> None:
        """Makes the table if there is none; a writer that makes it at the same time is no error."""
        require_names(self.target, schema, " ,;{}()\n\t=", "Delta Lake")
        errors = self._library.exceptions
        try:
            if not self._library.DeltaTable.is_deltatable(path):
                settings = _ALL_FEATURES if any(_is_local(field.type) for field in schema) else None
                self._library.DeltaTable.create(path, schema, mode="ignore", configuration=settings)
        except (errors.SchemaMismatchError, ValueError, TypeError) as error:
            raise SchemaMismatchError(
                f"{self.target} cannot be made with the stream's columns: {error}", path=self.target
            ) from error
        except (errors.DeltaError, OSError) as error:
            raise _unavailable(self.target, error) from error

    def _commit(self, rows: pa.Table, properties: dict[str, str]) -> bool:
        library = self._library
        commit = library.CommitProperties(
            custom_metadata=properties, app_transactions=[self._transaction(properties)], max_commit_retries=0
        )
        try:
            library.write_deltalake(self._table, rows, mode="append", commit_properties=commit)
        except library.exceptions.CommitFailedError:
            return False
        except (library.exceptions.DeltaError, OSError) as error:
            raise _unavailable(self.target, error) from error
        return True

    def _transaction(self, properties: Mapping[str, str]) -> Any:
        if QUERY in properties:
            return self._library.Transaction(f"{QUERY}:{properties[QUERY]}", int(properties[BATCH]))
        return self._library.Transaction(_DRAIN, (self._table.transaction_version(_DRAIN) or 0) + 1)

    def _reload(self) -> dict[str, str]:
        self._table.update_incremental()
        return self._last()

    def _last(self) -> dict[str, str]:
        for most in _HISTORY:
            for commit in self._table.history(most):
                if found := marked(commit):
                    return found
        if self._table.transaction_version(_DRAIN) is not None:
            raise DataLostError(
                f"{self.target} has been drained into, but its log no longer has the commit with the position: the log "
                "was cleaned up (delta.logRetentionDuration) after later commits of others. Where to continue is not "
                "known. Drain into a new table; let a drain run more often than the log is cleaned up.",
                path=self.target,
            )
        return {}


def _is_local(kind: pa.DataType) -> bool:
    """Whether a type is, or has in it, a timestamp without a time zone."""
    inside = [kind.field(i).type for i in range(kind.num_fields)] if pa.types.is_nested(kind) else []
    return (pa.types.is_timestamp(kind) and kind.tz is None) or any(map(_is_local, inside))


def _unavailable(target: str, error: Exception) -> StoreUnavailableError:
    return StoreUnavailableError(f"{target} cannot be read or written: {error}", path=target)
