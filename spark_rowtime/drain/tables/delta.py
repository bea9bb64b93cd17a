"""A Delta Lake table, through the library ``deltalake``."""

from contextlib import suppress
from typing import Any
from uuid import uuid4

import pyarrow as pa

from spark_rowtime.drain.properties import BATCH, COMMIT, QUERY, QUERY_STATUS
from spark_rowtime.drain.tables.delta_commit import DeltaCommit
from spark_rowtime.drain.tables.delta_log import DeltaLog, in_sight
from spark_rowtime.drain.tables.loading import loading, shown, unavailable
from spark_rowtime.drain.tables.outcome import settled
from spark_rowtime.drain.tables.partitions import require_exact, require_texts
from spark_rowtime.drain.tables.table import LastCommit, Table, require_names, require_same
from spark_rowtime.errors import DataLostError, ProducerFencedError, SchemaMismatchError, StoreUnavailableError
from spark_rowtime.types.extras import import_extra

_DRAIN = "rowtime.drain"
"""The application of a drain's transaction. Its version is the number of the drain's commits."""
_RETENTION = "delta.setTransactionRetentionDuration"
"""After this time, Delta may drop the number of the last commit of a drain."""
_ALL_FEATURES = {"delta.minWriterVersion": "7"}
"""A table with TIMESTAMP_NTZ lists its features. Without this, deltalake 1.6 leaves out the one of NOT NULL columns,
and Spark refuses the table."""


class DeltaTable(Table):
    """Rows and properties are one commit of the log: ``add`` and ``commitInfo``, and a ``txn`` that fences others.

    The position is that of the newest commit that led to the rows which a reader sees: a RESTORE takes it back.
    """

    def __init__(self, target: str, schema: pa.Schema | None, missing: Exception | None = None) -> None:
        super().__init__(target, schema)
        self._library = import_extra("deltalake", "delta", target)
        self._path = target.removeprefix("delta:")
        if schema is not None:
            self._make(self._path, schema, missing)
        self._table = self._opened()
        self._log = DeltaLog(target, self._table.table_uri)
        self._id = self._table.metadata().id
        self._forgotten = False
        """Whether the log no longer has the commits of a query that wrote to the table, and it was not set back."""
        self._in_sight: DeltaCommit | None = None
        """The last commit by spark-rowtime."""
        self.properties = self._last()
        self._require_same()

    @property
    def id(self) -> str:
        """The id in the table's metadata."""
        return str(self._id)

    @property
    def commits(self) -> int:
        """How many commits the table has had."""
        return int(self._table.version()) + 1

    @property
    def last(self) -> LastCommit | None:
        """The last commit by spark-rowtime that led to the rows which a reader sees; None if it is not there."""
        commit = self._in_sight
        return None if commit is None else LastCommit(commit.time, commit.said.get(QUERY_STATUS))

    @property
    def schema(self) -> pa.Schema:
        """The table's columns."""
        return pa.schema(self._table.schema().to_arrow())

    def _require_same(self) -> None:
        """Raises SchemaMismatchError unless the table takes the rows, and keeps them exactly."""
        if self._columns is not None:
            require_same(self.target, self._columns, self.schema)
            require_exact(self.target, self.schema, self._table.metadata().partition_columns)

    def lastBatch(self, query: str) -> int | None:
        """The last batch that a query has committed, also where the table was set back; None if there is none."""
        version: int | None = self._table.transaction_version(_application(query))
        return version

    @property
    def hasForgotten(self) -> bool:
        """Whether the table no longer knows the bound and the batch of its last commit."""
        return self._forgotten

    def _opened(self, version: int | None = None) -> Any:
        """The table as it is now, or as it was at a version."""
        with loading(self.target):
            return self._library.DeltaTable(self._path, version)

    def _make(self, path: str, schema: pa.Schema, missing: Exception | None) -> None:
        """Makes the table if there is none; a writer that makes it at the same time is no error."""
        require_names(self.target, schema, " ,;{}()\n\t=", "Delta Lake")
        errors = self._library.exceptions
        try:
            if not self._library.DeltaTable.is_deltatable(path):
                if missing is not None:
                    raise missing
                settings = _ALL_FEATURES if any(_is_local(field.type) for field in schema) else None
                self._library.DeltaTable.create(path, schema, mode="ignore", configuration=settings)
        except (errors.SchemaMismatchError, ValueError, TypeError) as error:
            raise SchemaMismatchError(
                f"{self.target} cannot be made with the stream's columns: {error}", path=self.target
            ) from error
        except (errors.DeltaError, OSError) as error:
            raise unavailable(self.target, error) from error

    def _commit(self, rows: pa.Table, properties: dict[str, str]) -> bool:
        library, table = self._library, self._opened()
        if table.metadata().id != self._id or table.version() != self._table.version():
            return False
        require_texts(self.target, rows, table.metadata().partition_columns)
        transaction = library.Transaction(_DRAIN, self._commits(table) + 1)
        if QUERY in properties:
            transaction = library.Transaction(_application(properties[QUERY]), int(properties[BATCH]))
        own, fresh = {**properties, COMMIT: uuid4().hex}, [table]
        commit = library.CommitProperties(custom_metadata=own, app_transactions=[transaction], max_commit_retries=0)
        try:
            self._table = settled(
                self.target,
                lambda: self._written(fresh.pop() if fresh else self._opened(self._table.version()), rows, commit),
                lambda: self._found(own[COMMIT]),
                refused=library.exceptions.CommitFailedError,
                lost=(library.exceptions.DeltaError, OSError, StoreUnavailableError),
            )
        except library.exceptions.CommitFailedError as error:
            if self._opened().version() > self._table.version():
                return False
            raise StoreUnavailableError(
                f"{unavailable(self.target, error)}. If this is a feature of the table that the library deltalake does "
                "not write, drop it (ALTER TABLE ... DROP FEATURE), or drain into another table.",
                path=self.target,
            ) from error
        except StoreUnavailableError:
            with suppress(StoreUnavailableError, OSError):
                self._table = self._opened()
            self._require_same()  # what no repetition mends is said so
            raise
        return True

    def _written(self, table: Any, rows: pa.Table, commit: Any) -> Any:
        """Writes on top of a table as it was opened, which no commit was made through yet; returns it.

        With each commit through one object, the next one takes longer.
        """
        try:
            self._library.write_deltalake(table, rows, mode="append", commit_properties=commit)
        except self._library.exceptions.DeltaError as error:
            if "failed validation check" not in str(error):
                raise
            raise SchemaMismatchError(
                f"Rows cannot be kept in {self.target}: {shown(error).partition(' Preview')[0]} They break a "
                "constraint of the table. Drop it (ALTER TABLE ... DROP CONSTRAINT), or drain into another table.",
                path=self.target,
            ) from None  # its text has rows
        return table

    def _found(self, mark: str) -> Any:
        """The table with the commit on top of the version that was loaded, if that has this mark; None if not."""
        now, version = self._opened(), self._table.version() + 1
        if now.metadata().id != self._id or now.version() < version:
            return None
        commit = self._log.commit(version)
        return self._opened(version) if commit is not None and commit.said.get(COMMIT) == mark else None

    def _reload(self) -> dict[str, str]:
        self._table = self._opened()
        if self._table.metadata().id != self._id:
            raise ProducerFencedError(
                f"{self.target} was deleted and created again, or replaced, since this sink opened it. Nothing of this "
                "call is in the table. A new drain continues from the position of the table that is there now, or "
                "from the beginning if it has none.",
                path=self.target,
            )
        return self._last()

    def _commits(self, table: Any) -> int:
        """How many commits drains have made."""
        return table.transaction_version(_DRAIN) or 0

    def _last(self) -> dict[str, str]:
        version, drained = self._table.version(), self._commits(self._table) > 0
        writes = self._columns is not None
        told = in_sight(self.target, self._log, version, drained=drained, writes=writes)
        found, self._in_sight, missing, went_back, self.place = told
        if missing is None:
            return found
        self._forgotten = not went_back
        if _RETENTION in self._table.metadata().configuration:
            raise DataLostError(
                f"The log of {self.target} no longer has its commits up to version {missing}, and the table has "
                f"{_RETENTION}, so it may have lost the note that a drain has written to it, too. Where to continue is "
                "not known. Drain into a new table. If no drain has ever written there, remove that property first "
                "(ALTER TABLE ... UNSET TBLPROPERTIES).",
                path=self.target,
            )
        if drained:
            raise DataLostError(
                f"{self.target} has been drained into, but its log no longer has the commit with the position "
                f"(version {missing}, or an earlier one): the log was cleaned up (delta.logRetentionDuration) after "
                "later commits of others. Where to continue is not known. Drain into a new table; let a drain run "
                "more often than the log is cleaned up.",
                path=self.target,
            )
        return found


def _application(query: str) -> str:
    """The application of a query's transactions; its version is the number of the batch."""
    return f"{QUERY}:{query}"


def _is_local(kind: pa.DataType) -> bool:
    """Whether a type is, or has in it, a timestamp without a time zone."""
    inside = [kind.field(i).type for i in range(kind.num_fields)]
    return (pa.types.is_timestamp(kind) and kind.tz is None) or any(map(_is_local, inside))
