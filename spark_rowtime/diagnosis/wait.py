"""wait: returns when what was flushed is in the results of another stream."""

import time
from collections.abc import Sequence
from datetime import timedelta

from spark_rowtime.diagnosis.causes import Cause
from spark_rowtime.diagnosis.progress import Progress
from spark_rowtime.diagnosis.reach import Within
from spark_rowtime.diagnosis.why import explain
from spark_rowtime.errors import WaitTimeoutError
from spark_rowtime.store import open_store
from spark_rowtime.store.token import parse
from spark_rowtime.types.arguments import known_keywords
from spark_rowtime.types.timestamps import SECOND_MICROS, from_micros, to_interval

POLL_SECONDS = 0.1
"""How long a poll waits for a commit of the stream, in seconds, before it looks at the streams between again."""


@known_keywords
def wait(token: str, path: str, *, timeout: str | timedelta | None = None, within: Sequence[str] = ()) -> None:
    """Waits until what was flushed is in the results of the stream at ``path``.

    It follows the statuses of all queries between the two streams. A query that keeps rows has output them when its
    windows, or the intervals of its joins, are complete: so rows without a bound that completes their window do not
    arrive.

    Args:
        token: What ``sink.flush`` has returned.
        path: The path of a stream, as for ``createStream``: that of the sink, or one that queries make of it.
        timeout: An interval. None: it waits forever.
        within: More folders, databases or streams to which statuses may lead, as for ``why``.

    Raises:
        WaitTimeoutError: It is not there after ``timeout``; the error says who holds it.
        StreamNotFoundError: There is no stream at ``path``.
        DataLostError: A stream on the way is a copy that ends before the token.
        InvalidOptionError: ``token`` is no token, or a query between keeps rows and nothing says for how long.

    Example:
        >>> import spark_rowtime as rt
        >>> rt.createStream("memory://docs-wait", "rowtime TIMESTAMP NOT NULL")
        >>> with rt.openSink("memory://docs-wait") as sink:
        ...     sink.sendRow(("2026-01-05T14:30:00Z",))
        ...     token = sink.flush()
        >>> rt.wait(token, "memory://docs-wait", timeout="1 s")
    """
    progress, micros = Progress(parse(token), Within(path, within)), to_interval(timeout, "timeout")
    until = None if micros is None else time.monotonic() + micros / SECOND_MICROS
    with open_store(path) as store:
        while True:
            seq = store.head().seq
            if progress.has_reached(path):
                return
            left = POLL_SECONDS if until is None else until - time.monotonic()
            if left <= 0:
                raise _timed_out(token, path, timeout, progress)
            store.wait(seq, min(left, POLL_SECONDS))


def _timed_out(token: str, path: str, timeout: str | timedelta | None, progress: Progress) -> WaitTimeoutError:
    """Returns the error, which says for whom the first query that lacks something waits."""
    pending = progress.pending
    where = path if pending is None else pending.path
    needs = None if pending is None or pending.needs is None else from_micros(pending.needs)
    found = explain(where, needs, progress.reach)
    holder, note, remedy = found.holder, found.note, found.remedy
    unknown = progress.reach.not_followed
    beyond = f" not followed: {', '.join(unknown)} (within=[...] follows other places)." if unknown else ""
    if pending is None or pending.query is None:
        note, remedy = f"No query that leads there has reported yet. {note}", remedy or "Start the queries between."
    elif found.cause is Cause.COMPLETE:
        holder = pending.query.shown
        note = f"Query {holder!r} has not read it yet."
        remedy = f"Check whether query {holder} runs: rowtime why {where}."
    return WaitTimeoutError(
        f"What was flushed is not in {path} after {timeout}. {note} {remedy}{beyond}",
        token=token,
        path=path,
        holder=holder,
        cause=found.cause.value,
        remedy=remedy,
    )
