"""copyStream copies a stream that is in use."""

from contextlib import nullcontext

from spark_rowtime.admin.progress import progress_bar
from spark_rowtime.store import copy_store
from spark_rowtime.store.location import to_location


def copyStream(path: str, to: str, *, location: str | None = None, progress: bool = False) -> None:
    """Copies the stream at ``path`` to ``to``, as it is at one moment. Others may write and read meanwhile.

    The copy has everything that was committed up to that moment: rows, bounds, producers with their checkpoints,
    rejected rows, registered readers and settings. So it can take the place of the stream: adapters, readers and
    queries go on with it from their own checkpoints. A reader or query that is ahead of the copy is refused
    (DataLostError).

    Nobody has the copy open. The time of its leases, of ``idleTimeout`` and of ``retainAge`` stands still until the
    copy is opened. Then each producer that was attached has its lease to come back, as after a restart of the machine.

    Args:
        path: The path of the stream, as for ``createStream``.
        to: The path of the copy, at which nothing may exist yet. A directory can be copied into a database, and back;
            a stream in memory only within it. If the call fails or its process ends, there is no stream there.
        location: For a copy in PostgreSQL, the URL where it keeps large trains, as for ``createStream``. None: that of
            the stream, if it has one.
        progress: If True, a terminal or a notebook shows a bar with how far the copy is.

    Raises:
        StreamNotFoundError: There is no stream at ``path``.
        StreamExistsError: Something exists at ``to`` already.
        StoreCorruptError: Rows of the stream are not there. Nothing was copied.
        StoreUnavailableError: The stream cannot be read, or the copy cannot be written, just now.

    Example:
        >>> import spark_rowtime as rt
        >>> rt.createStream("memory://docs-copy", "rowtime TIMESTAMP NOT NULL, ticker STRING")
        >>> with rt.openSink("memory://docs-copy") as sink:
        ...     sink.sendRow(("2026-01-05T14:30:00Z", "IBM"))
        ...     _ = sink.flush()
        ...     rt.copyStream("memory://docs-copy", "memory://docs-copied")
        >>> rt.describeStream("memory://docs-copied").rows
        1
    """
    with progress_bar("copying") if progress else nullcontext() as advance:
        copy_store(path, to, advance, None if location is None else to_location(location))
