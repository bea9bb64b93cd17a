"""closeProducer and detachProducer: what somebody else declares about a producer that is lost."""

from collections.abc import Callable

from spark_rowtime.bounds.bound import RowtimeBound, as_bound
from spark_rowtime.store import open_store
from spark_rowtime.store.base import Store
from spark_rowtime.types.arguments import to_flag, to_text


def closeProducer(path: str, producer: str, *, complete: bool = False) -> RowtimeBound | None:
    """Declares that a producer has left, as if it had closed its sink: its rows count, and the stream goes on.

    Use it for a producer that is lost and will not be missed. A process that still has the producer open gets a
    ProducerFencedError from its next call. A producer that has left, or is complete, stays as it is.

    Args:
        path: The path of the stream, as for ``createStream``.
        producer: The producer's name; also one that is expected and never came, or that was detached.
        complete: If True, the producer will never send again, as after ``close(complete=True)``. Also for one that
            has left.

    Returns:
        The bound of the stream now; None if it has none.

    Raises:
        StreamNotFoundError: There is no stream at ``path``.
        InvalidOptionError: The stream has no such producer.
        StoreUnavailableError: The stream cannot be written just now.

    Example:
        >>> import spark_rowtime as rt
        >>> rt.createStream("memory://docs-closeproducer", "rowtime TIMESTAMP NOT NULL, ticker STRING")
        >>> lost = rt.openSink("memory://docs-closeproducer", producer="nyse", rowsImplyBounds=False)
        >>> lost.sendRow(("2026-01-05T14:30:00Z", "IBM"))
        >>> rt.closeProducer("memory://docs-closeproducer", "nyse")
        RowtimeBound('2026-01-05T14:30:00Z')
        >>> rt.closeProducer("memory://docs-closeproducer", "nyse", complete=True)
        RowtimeBound.END
    """
    to_flag(complete, "complete")
    name = to_text(producer, "producer")
    return _then_bound(path, lambda store: store.close_producer(name, complete=complete))


def detachProducer(path: str, producer: str) -> RowtimeBound | None:
    """Stops waiting for a producer, without a statement about its rows; it may come back.

    It then joins at the stream's bound. Unlike ``closeProducer``, it does not raise the bound to the largest rowtime
    when the producer was the last one. A process that still has the producer open joins again with its next call, and
    its log says so.

    Args:
        path: The path of the stream, as for ``createStream``.
        producer: The producer's name; also one that is expected and never came.

    Returns:
        The bound of the stream now; None if it has none.

    Raises:
        StreamNotFoundError: There is no stream at ``path``.
        InvalidOptionError: The stream has no such producer.
        StoreUnavailableError: The stream cannot be written just now.

    Example:
        >>> import spark_rowtime as rt
        >>> schema = "rowtime TIMESTAMP NOT NULL, ticker STRING"
        >>> rt.createStream("memory://docs-detach", schema, producers=["nyse", "xetra"])
        >>> with rt.openSink("memory://docs-detach", producer="nyse") as sink:
        ...     sink.sendRowtimeBound("2026-01-05T14:30:00Z")
        ...     _ = sink.flush()
        ...     rt.detachProducer("memory://docs-detach", "xetra")
        RowtimeBound('2026-01-05T14:30:00Z')
    """
    name = to_text(producer, "producer")
    return _then_bound(path, lambda store: store.detach(name))


def _then_bound(path: str, declare: Callable[[Store], None]) -> RowtimeBound | None:
    with open_store(path) as store:
        declare(store)
        return as_bound(store.head().floor)
