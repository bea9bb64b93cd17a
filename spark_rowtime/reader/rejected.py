"""rejectedRows: the rejected rows of a stream as an Arrow table."""

import pyarrow as pa

from spark_rowtime.store import open_store


def rejectedRows(path: str) -> pa.Table:
    """Returns the rows that a stream has rejected, oldest first, as far as they are kept.

    A stream keeps the newest ``retainRejected`` bytes of them (``createStream``); ``describeStream(path).rejected``
    counts all.

    Args:
        path: The path of the stream, as for ``createStream``.

    Returns:
        A pyarrow Table. Its first columns are ``producer``, ``reason`` ("late" or "ahead"), ``bound`` (what the row
        fell below or exceeded), ``boundOf`` ("producer": the producer's own promise; "stream": the stream's bound),
        ``boundBy`` and ``boundEvent`` (the producer whose event raised the bound, and the event: sent, left, detached
        or idled), and ``rejectedAt`` (the wall clock when the rejection was committed). The stream's columns follow.

    Raises:
        StreamNotFoundError: There is no stream at ``path``.

    Example:
        >>> import spark_rowtime as rt
        >>> rt.createStream("memory://docs-rejected", "rowtime TIMESTAMP NOT NULL, shop STRING")
        >>> with rt.openSink("memory://docs-rejected", producer="Berlin") as berlin:
        ...     berlin.sendRowtimeBound("2026-01-05T15:00:00Z")
        >>> with rt.openSink("memory://docs-rejected", producer="Oslo", onLate="reject") as oslo:
        ...     oslo.sendRow(("2026-01-05T14:30:00Z", "Oslo"))
        >>> rt.rejectedRows("memory://docs-rejected").select(["producer", "boundOf", "boundBy", "shop"]).to_pylist()
        [{'producer': 'Oslo', 'boundOf': 'stream', 'boundBy': 'Berlin', 'shop': 'Oslo'}]
    """
    with open_store(path) as store:
        return store.rejected()
