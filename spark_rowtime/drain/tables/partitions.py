"""Partitioned tables that are there already: which columns a format's library writes into partitions exactly."""

from collections.abc import Iterable
from importlib.util import find_spec
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from spark_rowtime.errors import ExtraNotInstalledError, SchemaMismatchError

_EXACT = (
    *(pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.string(), pa.date32()),
    *(pa.timestamp("us"), pa.timestamp("us", "UTC")),
)
"""The types whose values deltalake keeps as texts in the paths of a Delta table. Of a DECIMAL it writes ``-1.-10``."""
_NULLS = ("", "__HIVE_DEFAULT_PARTITION__")
"""The texts that are NULL as values of a partition of a Delta table. Not an array: to make one loads pandas."""


def require_exact(target: str, columns: pa.Schema, names: Iterable[str]) -> None:
    """Raises SchemaMismatchError if a Delta table is partitioned by a column whose values it would not keep."""
    for name in names:
        if columns.field(name).type not in _EXACT:
            raise _not_kept(target, name, f"values of {columns.field(name).type} are not kept exactly there")


def require_texts(target: str, rows: pa.Table, names: Iterable[str]) -> None:
    """Raises SchemaMismatchError if rows have a text that a partition of a Delta table reads as NULL."""
    for name in names:
        column = rows.column(name)
        if column.type == pa.string() and pc.any(pc.is_in(column, pa.array(_NULLS))).as_py():
            raise _not_kept(target, name, "a row has the text '' or '__HIVE_DEFAULT_PARTITION__', which is NULL there")


def require_writable(target: str, table: Any) -> None:
    """Raises SchemaMismatchError or ExtraNotInstalledError if PyIceberg cannot write an Iceberg table exactly."""
    version, files = table.metadata.format_version, table.properties.get("write.format.default", "parquet")
    if version > 2 or files != "parquet":
        raise SchemaMismatchError(
            f"{target} has format version {version} and files of {files}, but PyIceberg writes Parquet files of the "
            "versions 1 and 2. Drain into another table, or change it.",
            path=target,
        )
    for field in table.spec().fields:
        name, kind = table.schema().find_column_name(field.source_id), table.schema().find_type(field.source_id)
        if str(field.transform) == "identity" and str(kind) in ("float", "double"):
            raise _not_kept(target, name, f"PyIceberg would write rows with 0.0 and -0.0 of a {kind} twice")
        if str(field.transform) not in ("identity", "void") and find_spec("pyiceberg_core") is None:
            raise ExtraNotInstalledError(
                f"{target} is partitioned by {field.transform}, which PyIceberg computes with the package "
                "pyiceberg-core. Install it: pip install pyiceberg-core.",
                extra="iceberg",
            )


def _not_kept(target: str, column: str, why: str) -> SchemaMismatchError:
    return SchemaMismatchError(
        f"{target} is partitioned by {column!r}: {why}. Nothing of this call is in the table. Drain into a table "
        "that is not partitioned by this column.",
        path=target,
        column=column,
    )
