"""Refuses rows with values that no version of the project writes."""

from collections.abc import Sequence
from typing import Any

from spark_rowtime.errors import StoreCorruptError
from spark_rowtime.store.cells import Cells
from spark_rowtime.types.short_repr import short_repr


def require(cells: Cells, row: Sequence[Any], table: str) -> None:
    """Raises StoreCorruptError if a row of the table has a value that none has."""
    if (what := cells.strange(row)) is not None:
        raise strange_row(table, row[0], what)


def strange_row(table: str, key: object, what: str) -> StoreCorruptError:
    """The error for a row that nobody has written by this project, found by its first column."""
    return StoreCorruptError(
        f"Row {short_repr(key)} of the table rowtime.{table} cannot be read: {what}, as in no such row. Somebody has "
        "changed it. `rowtime check` says what is still readable; restore the database from a backup."
    )
