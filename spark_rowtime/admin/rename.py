"""renameStream gives a stream another path."""

from spark_rowtime.store import rename_store


def renameStream(path: str, to: str) -> None:
    """Renames the stream at ``path`` to ``to``. It stays the same stream, with all its producers and readers.

    A stream that some process of the machine has open is not renamed. Of a stream in memory or in a database this is
    known of attached producers only; readers that are open raise DataLostError then. A query that is not running goes
    on from its checkpoint when it is given the new path.

    Args:
        path: The path of the stream, as for ``createStream``.
        to: The new path, at which nothing may exist yet, on the same file system or in the same database.

    Raises:
        StreamNotFoundError: There is no stream at ``path``.
        StreamExistsError: Something exists at ``to`` already.
        StreamBusyError: Somebody has the stream open.
        InvalidOptionError: ``to`` is in another database, or in another kind of store.
        StoreUnavailableError: The directory cannot be renamed, for example since ``to`` is on another file system.

    Example:
        >>> import spark_rowtime as rt
        >>> rt.createStream("memory://docs-old-name", "rowtime TIMESTAMP NOT NULL, ticker STRING")
        >>> rt.renameStream("memory://docs-old-name", "memory://docs-new-name")
        >>> rt.describeStream("memory://docs-new-name").rows
        0
    """
    rename_store(path, to)
