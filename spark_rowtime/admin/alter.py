"""alterStream adds columns to a stream."""

from typing import Any

from spark_rowtime.store import open_store
from spark_rowtime.types.alteration import columns_to_add


def alterStream(path: str, *, add: Any) -> None:
    """Adds columns at the end of the schema of the stream at ``path``.

    The rows that the stream has already are null in the new columns, for every reader. Whoever has the stream open
    keeps its old schema until it is opened again: sinks go on sending rows without the new columns, and readers and
    running queries go on without them. After that, rows may still leave the new columns out, and are null there.

    Args:
        path: The path of the stream, as for ``createStream``.
        add: The columns: a DDL string, such as "coupon STRING", a Spark StructType or a pyarrow schema. They cannot
            be NOT NULL, and their names, compared without case, must be new.

    Raises:
        StreamNotFoundError: There is no stream at ``path``.
        SchemaMismatchError: A column is there already, is NOT NULL, or has a type that a stream cannot hold.
        StoreUnavailableError: The stream cannot be written just now.

    Example:
        >>> import spark_rowtime as rt
        >>> rt.createStream("memory://docs-alter", "rowtime TIMESTAMP NOT NULL, ticker STRING")
        >>> with rt.openSink("memory://docs-alter") as sink:
        ...     sink.sendRow(("2026-01-05T14:30:00Z", "IBM"))
        >>> rt.alterStream("memory://docs-alter", add="coupon STRING")
        >>> with rt.openReader("memory://docs-alter") as reader:
        ...     [train.rows.column("coupon").to_pylist() for train in reader]
        [[None]]
    """
    columns = columns_to_add(add)
    with open_store(path) as store:
        store.alter(columns)
