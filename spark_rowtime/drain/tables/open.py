"""openTableSink and readTableBound: a table by its name, whatever its format."""

from collections.abc import Mapping
from datetime import timedelta, tzinfo
from pathlib import Path
from typing import Any, cast

from spark_rowtime.bounds.bound import RowtimeBound
from spark_rowtime.drain.gathering import GatheringSink
from spark_rowtime.drain.properties import bound_properties
from spark_rowtime.drain.sink import BOUNDS_EVERY, EVERY, MAX_ROWS, PLUGINS, Format
from spark_rowtime.drain.tables.table import Table
from spark_rowtime.errors import InvalidOptionError
from spark_rowtime.types.arguments import known_keywords, to_count
from spark_rowtime.types.plugins import plugin
from spark_rowtime.types.schema import columns_of, stream_schema
from spark_rowtime.types.short_repr import short_repr
from spark_rowtime.types.timestamps import to_required_interval, zone_named


@known_keywords
def openTableSink(
    target: str,
    schema: Any,
    *,
    every: str | timedelta = EVERY,
    boundsEvery: str | timedelta = BOUNDS_EVERY,
    maxRows: int = MAX_ROWS,
    tz: str | tzinfo | None = None,
) -> GatheringSink:
    """Opens a table as a sink for ``drainTo``, and makes it if there is none.

    Rows, bound and position are one commit of the table, so each row of the stream is in the table once, whatever
    process dies.

    Args:
        target: ``delta:PATH``, ``iceberg:CATALOG.NAMESPACE.TABLE`` with a catalog of PyIceberg's configuration, or
            ``parquet:FOLDER/date=%Y-%m-%d/hour=%H``, a pattern of folders by event time.
        schema: The stream's schema, ``reader.schema``. A table that exists must have the same columns.
        every: An interval: what has come is committed when so much time has passed since the first of it. "0 s": after
            each train. For Parquet a period is written when it is complete.
        boundsEvery: An interval: a bound without rows is committed when, besides, so much time has passed since the
            commit before. Where a drain ends, it is committed at once. Of no account for Parquet.
        maxRows: The number of rows after which a commit is made before that; for Parquet, the rows of a row group.
        tz: For Parquet, the time zone of the folders, as a name or a tzinfo. None: UTC.

    Returns:
        The sink; it is a context manager that closes itself.

    Raises:
        ExtraNotInstalledError: ``delta`` or ``iceberg`` needs the pip extra of that name.
        SchemaMismatchError: The table has other columns, or cannot have these.
        InvalidOptionError: An argument has a value that cannot be used.
        StoreUnavailableError: The table cannot be written, or another drain writes to the folders.
        StoreCorruptError: The table, or the state of the folders, cannot be read as what it should be.

    Example:
        >>> import tempfile, spark_rowtime as rt
        >>> rt.createStream("memory://docs-table", "rowtime TIMESTAMP NOT NULL, ticker STRING")
        >>> with rt.openSink("memory://docs-table") as sink:
        ...     sink.sendRow(("2026-01-05T14:30:00Z", "IBM"))
        ...     sink.sendRowtimeBound("2026-01-05T15:00:00Z")
        >>> target = f"parquet:{tempfile.mkdtemp()}/date=%Y-%m-%d/hour=%H"
        >>> with (
        ...     rt.openReader("memory://docs-table") as reader,
        ...     rt.openTableSink(target, reader.schema) as table,
        ... ):
        ...     reader.drainTo(table)
        >>> rt.readTableBound(target)
        RowtimeBound('2026-01-05T15:00:00Z')
    """
    interval, bounds = to_required_interval(every, "every"), to_required_interval(boundsEvery, "boundsEvery")
    rows = to_count(maxRows, "maxRows", 1)
    columns = stream_schema(schema)
    found: Any = _format(target)
    if tz is not None and not target.startswith("parquet:"):
        raise InvalidOptionError(f"tz is for folders of Parquet, and {target!r} has none. Leave it out.", option="tz")
    zone = {} if tz is None else {"zone": zone_named(tz)}
    return cast("GatheringSink", found.open_sink(target, columns, interval, rows, bounds, **zone))


def readTableBound(target: str) -> RowtimeBound | None:
    """Returns the bound of a table: no later commit brings a row below it, so what lies below it is complete.

    Args:
        target: The table, as for ``openTableSink``. For Parquet, the folder alone is enough: ``parquet:FOLDER``.

    Returns:
        The bound of the last commit by spark-rowtime; None if there is none, or nothing was promised.

    Raises:
        ExtraNotInstalledError: ``delta`` or ``iceberg`` needs the pip extra of that name.
        StoreUnavailableError: The table cannot be read.
        StoreCorruptError: The bound in its last commit is no time, or the table cannot be read as what it should be.

    Example:
        ```python
        bound = rt.readTableBound("delta:/lake/orders")
        complete = spark.read.format("delta").load("/lake/orders").where(col("rowtime") < bound.time)
        ```
    """
    return _format(target).read_bound(target)


def read_table(target: str) -> tuple[str | None, Mapping[str, str]]:
    """The id of a table, None if its format has none, and what its last commit tells, as properties.

    These are the bound, and the first and the last rowtime of the rows if the format tells them.
    """
    found = _format(target)
    if isinstance(found, type) and issubclass(found, Table):
        table = found(target, None)
        return table.id, table.properties
    if hasattr(found, "read_properties"):
        known = found.read_id(target) if hasattr(found, "read_id") else None
        return known, cast("Mapping[str, str]", found.read_properties(target))
    return None, bound_properties(found.read_bound(target))


def open_table(target: str, schema: Any, missing: Exception | None = None) -> Table:
    """A Delta or Iceberg table with these columns, of which none need be ``rowtime``. ``missing``: see Table."""
    found = _format(target)
    if not (isinstance(found, type) and issubclass(found, Table)):
        raise InvalidOptionError(
            f"{target!r} has no commit that could hold a query's batch. Give delta:PATH or "
            "iceberg:CATALOG.NAMESPACE.TABLE.",
            option="target",
            value=target,
        )
    return found(target, columns_of(schema), missing)


def _format(target: Any) -> Format:
    kind, _, rest = target.partition(":") if isinstance(target, str) else ("", "", "")
    if rest.startswith("~"):
        raise InvalidOptionError(
            f"{target} would be in a folder of the name '~': no shell expands it behind a colon. Write "
            f"{kind}:{Path(rest).expanduser()}.",
            option="target",
            value=target,
        )
    if rest and (found := plugin(PLUGINS, kind)) is not None:
        return cast("Format", found)
    raise InvalidOptionError(
        f"target={short_repr(target)} does not name a table. Give delta:PATH, iceberg:CATALOG.NAMESPACE.TABLE or "
        "parquet:FOLDER/date=%Y-%m-%d/hour=%H.",
        option="target",
        value=short_repr(target),
    )
