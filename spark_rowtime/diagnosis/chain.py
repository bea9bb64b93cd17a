"""The chain from the feed that holds a stream, through the queries between, to the stream."""

from dataclasses import dataclass, replace

from spark_rowtime.bounds.clock import Status
from spark_rowtime.diagnosis.causes import Cause, Finding
from spark_rowtime.diagnosis.query_causes import (
    QueryState,
    closing,
    finding_of_query,
    holding,
    unreached_by,
    waiting_for,
)
from spark_rowtime.diagnosis.reach import Reach
from spark_rowtime.diagnosis.stream_causes import finding_of
from spark_rowtime.diagnosis.stream_state import StreamState
from spark_rowtime.errors import RowtimeError
from spark_rowtime.store import open_store
from spark_rowtime.store.query_status import QUERY_PRODUCER, QueryStatus
from spark_rowtime.store.record import ProducerInfo
from spark_rowtime.types.timestamps import END


@dataclass(frozen=True)
class Step:
    """One link of the chain. Times are in microseconds; ``before`` is the floor that it is compared with."""

    kind: str
    name: str
    floor: int | None
    before: int | None
    moved: int | None
    needs: int | None
    finding: Finding | None


class Chain:
    """Walks from a stream to the feed that holds it, by the weakest source of each query."""

    def __init__(self, silent_after: int, reach: Reach) -> None:
        self._silent_after, self._reach = silent_after, reach
        self._visited: set[str] = set()

    def of_stream(self, stream: StreamState, needs: int | None) -> list[Step]:
        """The links up to the stream. ``needs``: the time that it must reach; None: any."""
        self._visited.add(stream.stream)
        stream = stream if self._reach.shows_values else stream.without_values()
        finding = stream.told(finding_of(stream, END if needs is None else needs, self._silent_after))
        who = stream.holders[0] if stream.holders else finding.about if finding else None
        steps = self._before(stream, who, needs, finding)
        before = steps[-1].floor if steps else None
        told = any(step.finding for step in steps)
        here = Step("stream", stream.path, stream.floor, before, _ago(stream, stream.moved), needs, finding)
        return [*steps, replace(here, finding=None) if told or finding is None else here]

    def of_query(self, status: QueryStatus, floor: int | None, needs: int | None, moved: int | None) -> list[Step]:
        """The links up to the query, whose output has this floor."""
        ours = [source for source in status.sources if source.path is not None and source.rows]
        below = needs is None or floor is None or floor < needs
        if not ours:
            unknown = self._without_bounds(status) if below else None
            return [Step("query", status.shown, floor, None, moved, needs, unknown)]
        source, behind = holding(status, ours)
        path = self._reach.path_of(source.path or "")
        if path is None:
            beyond = self._beyond(status, source.path or "")
            return [Step("query", status.shown, floor, None, moved, needs, beyond if below else None)]
        try:
            with open_store(path) as store:
                stream, cut = StreamState.of(store.snapshot(full=True)), unreached_by(store, source)
        except RowtimeError as error:
            missing = unreadable(status, path, error) if below else None
            return [Step("query", status.shown, floor, None, moved, needs, missing)]
        running = stream.reader(status.query)
        query = QueryState(status, floor, END if needs is None else needs, source, stream, running, cut, behind)
        return self._through(query, needs, moved)

    def _beyond(self, status: QueryStatus, path: str) -> Finding:
        """Of a query whose source the answer does not lead to."""
        shown = self._reach.shown(path)
        return Finding(
            Cause.NOT_FOLLOWED,
            status.shown,
            f"Query {status.shown!r} says that it reads another place than the one asked for; not followed: {shown}.",
            "If you trust that place, ask again with it: rowtime why --within FOLDER, or within=[...]. Whoever may "
            "write to the stream may write any path there.",
        )

    def _without_bounds(self, status: QueryStatus) -> Finding:
        """Of a query that has no source with bounds: it reads late rows of streams, or has told of no source."""
        paths = [source.path for source in status.sources if source.path is not None]
        if not paths:
            return _no_status(status.shown)
        path = self._reach.path_of(paths[0]) or self._reach.shown(paths[0])
        return Finding(
            Cause.ORDINARY_SOURCE,
            status.shown,
            f"Query {status.shown!r} reads the late rows of {path} (view=rejected), which have no bound until "
            "that stream is complete, so its output has none.",
            f"Read its output in order of arrival, or close all producers of {path} with complete=True when they have "
            f"ended. Whether an hour is complete, {path} tells.",
        )

    def _through(self, query: QueryState, needs: int | None, moved: int | None) -> list[Step]:
        finding = query.stream.told(finding_of_query(query))
        known = query.stream.stream in self._visited
        steps = [] if known else self.of_stream(query.stream, None if needs is None else query.source_needs)
        below = query.floor is None or query.floor < query.needs
        if finding is None and below and any(step.finding for step in steps):
            finding = waiting_for(query)
        here = Step("query", query.status.shown, query.floor, query.stream.floor, moved, needs, finding)
        return [*steps, here]

    def _before(self, stream: StreamState, who: str | None, needs: int | None, finding: Finding | None) -> list[Step]:
        """The links up to the producer ``who``, which holds the stream."""
        if who is None:
            return []
        producer, moved = stream.producers[who], _ago(stream, stream.seen[who].silent)
        status = stream.writer(who)
        if status is None:
            return [_producer(stream, producer, needs, _of_older(finding, producer))]
        steps = self.of_query(status, producer.floor, needs, moved)
        last = steps[-1]
        if finding is None or any(step.finding for step in steps):
            return [*steps[:-1], _closable(last, stream, who)]
        return [*steps[:-1], replace(last, finding=finding)]


def _producer(stream: StreamState, producer: ProducerInfo, needs: int | None, finding: Finding | None) -> Step:
    came = producer.status is not Status.EXPECTED
    moved = _ago(stream, stream.seen[producer.name].silent) if came else None
    holds = finding if producer.name in stream.holders else None
    return Step("producer", producer.name, producer.floor, stream.strongest, moved, needs, holds)


def _closable(step: Step, stream: StreamState, producer: str) -> Step:
    """Adds what to do if the query never runs again."""
    ended = (Cause.QUERY_STOPPED, Cause.QUERY_FAILED, Cause.QUERY_GONE)
    if step.finding is None or step.finding.cause not in ended:
        return step
    remedy = f"{step.finding.remedy} {closing(stream.path, producer)}"
    return replace(step, finding=replace(step.finding, remedy=remedy))


def _of_older(finding: Finding | None, producer: ProducerInfo) -> Finding | None:
    """A producer that is a query without a status."""
    if finding is None or not producer.name.startswith(QUERY_PRODUCER):
        return finding
    return _no_status(producer.name.removeprefix(QUERY_PRODUCER))


def _no_status(query: str) -> Finding:
    return Finding(
        Cause.NO_ACCOUNT,
        query,
        f"Query {query!r} has left no status of its sources: it runs without the extension, or with an older version.",
        "Look at the query's progress, and ask about the streams that it reads. With this version and the extension "
        "it leaves a status with its next batch.",
    )


def unreadable(status: QueryStatus, path: str, error: RowtimeError) -> Finding:
    """A source of a query that cannot be opened."""
    return Finding(
        Cause.SOURCE_UNREADABLE,
        status.shown,
        f"Query {status.shown!r} reads {path}, which cannot be opened: {error}",
        f"Restore {path}, or ask on the machine that has it.",
    )


def _ago(stream: StreamState, age: int | None) -> int | None:
    return None if age is None else stream.now - age
