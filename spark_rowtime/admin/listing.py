"""listStreams says which streams are in a folder, and how far each has come."""

from dataclasses import dataclass

from spark_rowtime.errors import RowtimeError
from spark_rowtime.store import list_stores
from spark_rowtime.stream import StreamInfo, describeStream


@dataclass(frozen=True, slots=True)
class ListedStream:
    """A stream that ``listStreams`` found.

    Attributes:
        path: The path of the stream.
        info: What ``describeStream`` reports of it; None if it cannot be read.
        error: Why it cannot be read; None if it can.
    """

    path: str
    info: StreamInfo | None
    error: RowtimeError | None


def listStreams(folder: str) -> list[ListedStream]:
    """Lists the streams in a folder, by name. Folders within it are not searched.

    A stream that is damaged, or that this version cannot read, is listed with its error.

    Args:
        folder: A directory; a database, ``postgresql://host:port/database``; or ``memory://`` for the streams of this
            process. If the path of the latter two goes on, only the streams whose path begins so.

    Returns:
        The streams, each as a ListedStream.

    Raises:
        StreamNotFoundError: ``folder`` is no directory.

    Example:
        >>> import spark_rowtime as rt
        >>> rt.createStream("memory://docs-list/orders", "rowtime TIMESTAMP NOT NULL, ticker STRING")
        >>> [(stream.path, stream.info.rows) for stream in rt.listStreams("memory://docs-list/")]
        [('memory://docs-list/orders', 0)]
    """
    return [_listed(path) for path in list_stores(folder)]


def _listed(path: str) -> ListedStream:
    try:
        return ListedStream(path, describeStream(path), None)
    except RowtimeError as error:
        return ListedStream(path, None, error)
