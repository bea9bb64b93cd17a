"""deleteStream removes a stream that nobody uses."""

from spark_rowtime.errors import StreamBusyError
from spark_rowtime.store import delete_store
from spark_rowtime.stream import StreamInfo, describeStream
from spark_rowtime.types.arguments import to_flag


def deleteStream(path: str, *, force: bool = False) -> None:
    """Deletes the stream at ``path`` with all its rows.

    It is refused while a producer is attached, while a query or a named reader is registered that could go on, and
    while some process of the machine has the stream open; of a stream in a database the last is not known.

    Args:
        path: The path of the stream, as for ``createStream``.
        force: If True, the stream is deleted also then, and also if it is damaged. Sinks, readers and queries that
            have it open raise DataLostError at their next call.

    Raises:
        StreamNotFoundError: There is no stream at ``path``.
        StreamBusyError: Somebody uses the stream; the message says who.
        StoreUnavailableError: The files cannot be removed.

    Example:
        >>> import spark_rowtime as rt
        >>> rt.createStream("memory://docs-delete", "rowtime TIMESTAMP NOT NULL, ticker STRING")
        >>> rt.deleteStream("memory://docs-delete")
    """
    if not to_flag(force, "force"):
        users = _users(describeStream(path))
        if users:
            raise StreamBusyError(
                f"{path} is still used: {'; '.join(users)}. Close or detach its producers, forget its readers "
                "(`rowtime gc --forget`), or delete it nevertheless with force=True, `rowtime delete --force`.",
                path=path,
                users=users,
            )
    delete_store(path, force)


def _users(info: StreamInfo) -> list[str]:
    """Returns who writes to the stream and who would go on reading it, a sentence each."""
    producers = [f"producer {p.name!r} is {p.status.value}" for p in info.producers if p.status.value in _ATTACHED]
    readers = [
        f"reader {r.name!r} is registered, last seen {r.seen:%Y-%m-%dT%H:%M:%SZ}, with {r.unread} rows to read"
        for r in info.readers
        if not r.checkpointGone
    ]
    return producers + readers


_ATTACHED = ("attached", "idle")
