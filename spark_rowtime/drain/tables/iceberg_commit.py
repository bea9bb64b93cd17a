"""A commit into an Iceberg table whose answer was lost, or was an error although the commit took place."""

from typing import Any

from spark_rowtime.drain.tables.outcome import settled
from spark_rowtime.types.extras import import_extra


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
        """Commits, as a catalog does; requirements and updates stay the same, so it takes place once."""
        snapshot = _added(updates)
        return settled(
            self._target,
            lambda: self._catalog.commit_table(table, requirements, updates),
            lambda: self._found(table.name(), snapshot),
            refused=self._errors.CommitFailedException,
            lost=(Exception,),  # each catalog has errors of its own
        )

    def _found(self, name: Any, snapshot: int | None) -> Any:
        """The answer to a commit, if the table has its snapshot."""
        from pyiceberg.table import CommitTableResponse  # noqa: PLC0415  (an extra)

        now = self._catalog.load_table(name)
        if snapshot is None or now.metadata.snapshot_by_id(snapshot) is None:
            return None
        return CommitTableResponse(**{"metadata": now.metadata, "metadata-location": now.metadata_location})


def _added(updates: tuple[Any, ...]) -> int | None:
    """The id of the snapshot that a commit adds."""
    return next((update.snapshot.snapshot_id for update in updates if update.action == "add-snapshot"), None)
