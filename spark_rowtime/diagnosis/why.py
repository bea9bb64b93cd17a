"""why: names what holds a stream."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from spark_rowtime.bounds.bound import as_bound
from spark_rowtime.diagnosis.causes import Cause, Finding
from spark_rowtime.diagnosis.chain import Chain, Step
from spark_rowtime.diagnosis.explanation import ChainLink, Explanation
from spark_rowtime.diagnosis.reach import Reach, Within
from spark_rowtime.diagnosis.stream_state import StreamState
from spark_rowtime.errors import InvalidOptionError, RowtimeError
from spark_rowtime.store.query_status import QueryStatus
from spark_rowtime.store.snapshot import READER
from spark_rowtime.types.arguments import did_you_mean, known_keywords, nearest
from spark_rowtime.types.timestamps import END, SECOND_MICROS, from_micros, to_micros, to_required_interval

SILENT_AFTER = timedelta(seconds=10)
"""A producer that has sent nothing for this long is called silent."""


@known_keywords
def why(
    path: str,
    at: Any = None,
    *,
    query: str | None = None,
    silentAfter: str | timedelta = SILENT_AFTER,
    within: Sequence[str] = (),
) -> Explanation:
    """Names what holds a stream below a time, and what would release it.

    It walks from the stream back to its feeds, through the queries that write it, and names the first link of this
    chain that has not come as far as it must. It reads the streams, and writes nothing.

    Which streams queries read, their statuses say, and others may have written these. So it opens only what is where
    the stream is: in its folder and below, or in its database; the answer names what it has not followed.

    Args:
        path: The path of the stream, as for ``createStream``.
        at: A time, as for ``sendRowtimeBound``. None: the latest time that a feed of the stream has promised or
            sent.
        query: The name or the id of a query that reads the stream. The explanation is then about the output of this
            query, wherever it is written. None: it is about the stream.
        silentAfter: An interval: a producer that has sent nothing for longer is called silent.
        within: More folders, databases or streams, as paths, to which the answer may lead.

    Returns:
        An Explanation.

    Raises:
        StreamNotFoundError: There is no stream at ``path``.
        StoreCorruptError: The stream's files do not hold what was written.
        InvalidOptionError: ``path`` names no kind of store that is known, ``at`` is no time, or no query of that name
            reads the stream.

    Example:
        >>> import spark_rowtime as rt
        >>> rt.createStream("memory://docs-why", "rowtime TIMESTAMP NOT NULL, city STRING")
        >>> sink = rt.openSink("memory://docs-why", producer="Oslo")
        >>> with rt.openSink("memory://docs-why", producer="Berlin") as berlin:
        ...     berlin.sendRow(("2026-01-05T10:30:00Z", "Berlin"))
        ...     found = rt.why("memory://docs-why", at="2026-01-05T10:00:00Z")
        >>> found.complete, found.cause.value, found.holder
        (False, 'nothingPromised', 'Oslo')
        >>> sink.close()
        >>> rt.why("memory://docs-why", at="2026-01-05T10:00:00Z").complete
        True
    """
    return explain(path, at, Within(path, within), query=query, silentAfter=silentAfter)


def explain(
    path: str,
    at: Any,
    reach: Reach,
    *,
    query: str | None = None,
    silentAfter: str | timedelta = SILENT_AFTER,
) -> Explanation:
    """Does what ``why`` does, and leads to the streams of ``reach``."""
    silent, wanted = to_required_interval(silentAfter, "silentAfter"), None if at is None else to_micros(at)
    stream = StreamState.at(path, full=True)
    needs = latest_time(stream, reach) if wanted is None else wanted
    chain = Chain(silent, reach)
    if query is None:
        steps = chain.of_stream(stream, needs)
    else:
        status = _query(stream, query)
        floor, moved = status.output_floor, stream.now - status.unseen
        steps = chain.of_query(status, floor, needs, moved)
    return explanation_of(stream.path, needs, steps, reach.not_followed)


def _query(stream: StreamState, query: str) -> QueryStatus:
    """The status of a query that reads the stream."""
    read = [stream.reader(name) for role, name in stream.statuses if role == READER]
    found = [status for status in read if status is not None]
    named = [status for status in found if query in (status.name, status.query)]
    if named:
        return min(named, key=lambda status: status.unseen)
    names = [status.shown for status in found]
    raise InvalidOptionError(
        f"No query {query!r} that reads {stream.path} has reported.{did_you_mean(nearest(query, names))} Those that "
        f"have are: {', '.join(map(repr, names)) or 'none'}.",
        option="query",
        value=query,
        path=stream.path,
    )


def explanation_of(path: str, needs: int | None, steps: list[Step], not_followed: list[str]) -> Explanation:
    """The answer: of the first link that has a finding. The last link is what was asked about."""
    last = steps[-1]
    reached = last.floor is not None and (needs is None or last.floor >= needs)
    first = next((step.finding for step in steps if step.finding), None)
    found = _COMPLETE if reached else first or _UNKNOWN
    return Explanation(
        path,
        _time(needs),
        reached,
        as_bound(last.floor),
        found.holder,
        found.cause,
        found.note,
        found.remedy,
        tuple(_link(step, told=not reached) for step in steps),
        tuple(not_followed),
    )


_COMPLETE = Finding(Cause.COMPLETE, None, "It is complete at this time.", "")
_UNKNOWN = Finding(Cause.OPERATOR, None, "All links have come as far as they must, but the output has not yet.", "")


def _link(step: Step, *, told: bool) -> ChainLink:
    finding = step.finding if told else None
    return ChainLink(
        step.kind,
        step.name,
        as_bound(step.floor),
        _behind(step.floor, step.before),
        _time(step.moved),
        _time(step.needs),
        finding.cause if finding else None,
        finding.note if finding else "",
    )


def _behind(floor: int | None, before: int | None) -> float | None:
    if floor is None or before is None or before >= END:
        return None
    return max(before - floor, 0) / SECOND_MICROS


def _time(micros: int | None) -> datetime | None:
    return None if micros is None else from_micros(min(micros, END - 1))


def latest_time(stream: StreamState, reach: Reach) -> int | None:
    """The latest time that a feed of the stream has promised or sent; None if there is none.

    The feeds are the producers that are no queries, of the stream and of all streams that queries between read. A
    stream that cannot be opened, or is beyond ``reach``, is left out.
    """
    found: list[int] = []
    left, seen, tried = [stream], {stream.stream}, set[str | None]()
    while left:
        here = left.pop()
        if here.latest_time is not None and (here.is_fed or not here.queries):
            found.append(here.latest_time)
        for path in _sources(here):
            place = reach.path_of(path)
            state = None if place in tried else _opened(place)
            tried.add(place)
            if state is not None and state.stream not in seen:
                seen.add(state.stream)
                left.append(state)
    return max(found, default=None)


def _sources(stream: StreamState) -> list[str]:
    return [source.path for query in stream.queries for source in query.sources if source.path is not None]


def _opened(path: str | None) -> StreamState | None:
    if path is None:
        return None
    try:
        return StreamState.at(path)
    except RowtimeError:
        return None
