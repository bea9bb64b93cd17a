"""why: names what holds a stream."""

from datetime import datetime, timedelta
from typing import Any

from spark_rowtime.bounds.bound import as_bound
from spark_rowtime.diagnosis.causes import Cause, Finding
from spark_rowtime.diagnosis.explanation import ChainLink, Explanation
from spark_rowtime.diagnosis.stream_causes import finding_of
from spark_rowtime.diagnosis.stream_state import StreamState
from spark_rowtime.store import open_store
from spark_rowtime.types.arguments import known_keywords
from spark_rowtime.types.timestamps import END, from_micros, to_micros, to_required_interval

SILENT_AFTER = timedelta(seconds=10)
"""A producer that has sent nothing for this long is called silent."""


@known_keywords
def why(path: str, at: Any = None, *, silentAfter: str | timedelta = SILENT_AFTER) -> Explanation:
    """Names what holds a stream below a time, and what would release it.

    It reads the stream and its producers, and writes nothing.

    Args:
        path: The path of the stream, as for ``createStream``.
        at: A time, as for ``sendRowtimeBound``. None: the farthest time that a feed of the stream has promised or
            sent.
        silentAfter: An interval: a producer that has sent nothing for longer is called silent.

    Returns:
        An Explanation.

    Raises:
        StreamNotFoundError: There is no stream at ``path``.
        StoreCorruptError: The stream's files do not hold what was written.
        InvalidOptionError: ``path`` names no kind of store that is known, or ``at`` is no time.

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
    silent, wanted = to_required_interval(silentAfter, "silentAfter"), None if at is None else to_micros(at)
    with open_store(path) as store:
        stream = StreamState.of(store)
    needs = stream.farthest if wanted is None else wanted
    finding = None if needs is None and stream.producers else finding_of(stream, needs or END, silent)
    return _explanation(stream, needs, finding)


def _explanation(stream: StreamState, needs: int | None, finding: Finding | None) -> Explanation:
    found = finding or Finding(Cause.COMPLETE, None, "The stream is complete at this time.", "")
    return Explanation(
        stream.path,
        _time(needs),
        finding is None,
        as_bound(stream.floor),
        found.holder,
        found.cause,
        found.note,
        found.remedy,
        tuple(_chain(stream, needs, finding)),
    )


def _chain(stream: StreamState, needs: int | None, finding: Finding | None) -> list[ChainLink]:
    producers = [] if stream.holder is None else [_producer_link(stream, needs, finding)]
    cause = None if producers or finding is None else finding
    before = producers[0].bound if producers else None
    here = ChainLink(
        "stream",
        stream.path,
        as_bound(stream.floor),
        _behind(stream.floor, before.floor if before else None),
        _ago(stream.now, stream.moved),
        _time(needs),
        cause.cause if cause else None,
        cause.note if cause else "",
    )
    return [*producers, here]


def _producer_link(stream: StreamState, needs: int | None, finding: Finding | None) -> ChainLink:
    holder = stream.holder
    assert holder is not None
    return ChainLink(
        "producer",
        holder.name,
        as_bound(holder.floor),
        _behind(holder.floor, stream.strongest),
        _ago(stream.now, stream.seen[holder.name].silent),
        _time(needs),
        finding.cause if finding else None,
        finding.note if finding else "",
    )


def _behind(floor: int | None, before: int | None) -> float | None:
    if floor is None or before is None or before >= END:
        return None
    return max(before - floor, 0) / 1_000_000


def _ago(now: int, age: int | None) -> datetime | None:
    return None if age is None else from_micros(now - age)


def _time(micros: int | None) -> datetime | None:
    return None if micros is None else from_micros(min(micros, END - 1))
