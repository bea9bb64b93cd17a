"""whyTable: names what holds a Delta table, through the queries and tables before it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from spark_rowtime.diagnosis.causes import Cause, Finding
from spark_rowtime.diagnosis.chain import Step
from spark_rowtime.diagnosis.explanation import Explanation
from spark_rowtime.diagnosis.reach import Reach, Within
from spark_rowtime.diagnosis.why import SILENT_AFTER, explanation_of, steps_of_stream
from spark_rowtime.drain.properties import POSITION, QUERY, QUERY_STATUS, bound_in
from spark_rowtime.drain.tables.delta import DeltaTable
from spark_rowtime.errors import InvalidOptionError, RowtimeError
from spark_rowtime.store.base import WRITER, ReportedStatus
from spark_rowtime.store.query_status import QuerySource, QueryStatus
from spark_rowtime.types.arguments import known_keywords
from spark_rowtime.types.short_repr import short_repr
from spark_rowtime.types.timestamps import show_micros, to_micros, to_required_interval

PREFIX = "delta:"


@known_keywords
def whyTable(
    target: str,
    at: Any,
    *,
    query: str | None = None,
    silentAfter: str | timedelta = SILENT_AFTER,
    within: Sequence[str] = (),
) -> Explanation:
    """Names what holds a Delta table below a time, and what would release it.

    It walks from the table back to its feeds: each commit of a query with the option ``rowtimeBound`` names the tables
    and streams that the query has read, and how far. It reads the logs, and writes nothing. Whether a query runs, no
    table says: the answer has the time of its last commit.

    What commits name, others may have written. So it opens only what is in the folder of the table and below.

    Args:
        target: The table, ``delta:PATH``.
        at: A time, as for ``sendRowtimeBound``.
        query: Must be None: a query over a table leaves no status there. The table that it writes has it.
        silentAfter: An interval: a producer of a stream at the beginning that has sent nothing for longer is silent.
        within: More folders, as paths, to which the answer may lead.

    Returns:
        An Explanation, whose ``stream`` is the table, and whose links can be of the kinds "table" and "drain", too.

    Raises:
        ExtraNotInstalledError: It needs the pip extra ``delta``.
        StoreUnavailableError: The table cannot be read.
        InvalidOptionError: ``target`` is no Delta table, or ``at`` is no time.

    Example:
        ```python
        rt.whyTable("delta:/lake/gold", "2026-01-05T12:00:00Z").cause
        ```
    """
    if not isinstance(target, str) or not target.startswith(PREFIX):
        raise InvalidOptionError(f"target={short_repr(target)} is no Delta table. Write delta:PATH.", option="target")
    if query is not None:
        raise InvalidOptionError(
            f"query={short_repr(query)}: a query over {target} leaves no status there. Ask about the table that it "
            "writes.",
            option="query",
        )
    if at is None:
        raise InvalidOptionError(
            "at is missing. Of a table, say the time up to which it is to be complete.", option="at"
        )
    needs, reach = to_micros(at), Within(_path(target), within)
    steps = _Tables(reach, to_required_interval(silentAfter, "silentAfter")).of_table(_State.of(target), needs)
    return explanation_of(target, needs, steps, reach.not_followed)


@dataclass(frozen=True)
class _State:
    """A table, as its log is now. Times are in microseconds; ``moved``: of the last commit by this library."""

    target: str
    version: int
    floor: int | None
    moved: int | None
    properties: dict[str, str]
    query_status: QueryStatus | None

    @classmethod
    def of(cls, target: str) -> "_State":
        table = DeltaTable(target, None)
        commit = table.commit or {}
        bound = bound_in(table.properties)
        return cls(
            target,
            table.version,
            None if bound is None else bound.floor,
            commit["timestamp"] * 1000 if commit else None,
            table.properties,
            _status(commit),
        )


def _status(commit: Mapping[str, Any]) -> QueryStatus | None:
    """What the query that has made the commit says of itself."""
    content = commit.get(QUERY_STATUS)
    return None if content is None else QueryStatus.of(ReportedStatus(WRITER, "", str(content), 0))


class _Tables:
    """Walks from a table to what holds it, by the weakest source of each query."""

    def __init__(self, reach: Reach, silent_after: int) -> None:
        self._reach, self._silent_after = reach, silent_after
        self._visited: set[str] = set()

    def of_table(self, table: _State, needs: int) -> list[Step]:
        """The links up to the table."""
        self._visited.add(table.target)
        if table.floor is not None and table.floor >= needs:
            return [Step("table", table.target, table.floor, None, table.moved, needs, None)]
        steps = self._before(table, needs)
        before = steps[-1].floor if steps else None
        finding = None if steps else _of_others(table)
        return [*steps, Step("table", table.target, table.floor, before, table.moved, needs, finding)]

    def _before(self, table: _State, needs: int) -> list[Step]:
        if POSITION in table.properties:
            return [Step("drain", "a drain", table.floor, None, table.moved, needs, _of_drain(table))]
        if QUERY not in table.properties:
            return []
        query = table.query_status
        if query is None:
            name = table.properties[QUERY]
            return [Step("query", name, table.floor, None, table.moved, needs, _without_status(table, name))]
        bounded = [source for source in query.sources if source.table is not None or source.path is not None]
        if not bounded or query.lost:
            return [Step("query", query.shown, table.floor, None, table.moved, needs, _without_bound(query))]
        source = min(bounded, key=lambda each: -1 if each.floor is None else each.floor)
        return self._through(table, query, source, needs)

    def _through(self, table: _State, query: QueryStatus, source: QuerySource, needs: int) -> list[Step]:
        """The links up to the query that has written the table, from its weakest source on."""
        read = source.floor
        steps, finding = self._of_source(query, source, needs)
        now = steps[-1].floor if steps else None
        told = finding is not None or any(step.finding for step in steps)
        if not told and read is not None and read >= needs:
            finding = _keeping(query, source, needs)
        elif not told and now is not None and (read is None or now > read):
            finding = _behind(query, source, table, now)
        return [*steps, Step("query", query.shown, table.floor, now, table.moved, needs, finding)]

    def _of_source(self, query: QueryStatus, source: QuerySource, needs: int) -> tuple[list[Step], Finding | None]:
        """The links up to a source; none, and why, where the answer does not lead there."""
        stored = _local(source.table or source.path or "")
        path = self._reach.path_of(stored) if source.table is None or "://" not in stored else None
        if path is None:
            return [], _beyond(query, self._reach.shown(stored))
        try:
            if source.table is None:
                return steps_of_stream(path, needs, self._reach, self._silent_after), None
            table = _State.of(PREFIX + path)
            known = table.target in self._visited
            return ([] if known else self.of_table(table, needs)), None
        except RowtimeError as error:
            return [], Finding(
                Cause.SOURCE_UNREADABLE,
                query.shown,
                f"Query {query.shown!r} reads {path}, which cannot be opened: {error}",
                f"Restore {path}, or ask on the machine that has it.",
            )


def _path(target: str) -> str:
    return _local(target.removeprefix(PREFIX))


def _local(path: str) -> str:
    """A path as Hadoop writes it, ``file:/lake``, as one of this machine; others stay."""
    return "/" + path.removeprefix("file:").lstrip("/") if path.startswith("file:/") else path


def _named(query: QueryStatus, source: QuerySource) -> str:
    return f"Query {query.shown!r} has read {_local(source.table or source.path or '')}"


def _of_others(table: _State) -> Finding:
    note = f"None of the {table.version + 1} commits of {table.target} is by a drain or a query that writes bounds."
    if table.floor is not None:
        note = f"The bound of {table.target} is by somebody else: its commit names neither a drain nor a query."
    return Finding(
        Cause.NOT_OURS,
        None,
        note,
        "Ask whoever writes the table, or write it by `rowtime drain`, rt.tableWriter, or Delta's sink with the option "
        "rowtimeBound.",
    )


def _of_drain(table: _State) -> Finding:
    return Finding(
        Cause.DRAIN,
        "a drain",
        f"A drain writes {table.target}, and has brought it up to this bound. Its commits name the position in its "
        "stream, and not the stream's place.",
        "Check that the drain runs, and ask about its stream: rowtime why STREAM.",
    )


def _without_status(table: _State, query: str) -> Finding:
    return Finding(
        Cause.NO_ACCOUNT,
        query,
        f"The commits of {table.target} by query {query} do not say what it reads: they are by rt.tableWriter, or by "
        "an older version.",
        "Ask about the streams and tables that it reads. Delta's own sink with the option rowtimeBound says it.",
    )


def _without_bound(query: QueryStatus) -> Finding:
    lost = "; ".join(f"{path}: {where}" for path, where in query.lost.items())
    return Finding(
        Cause.BOUND_LOST if lost else Cause.ORDINARY_SOURCE,
        query.shown,
        f"The output of query {query.shown!r} has no bound. It was lost at {lost}."
        if lost
        else f"Query {query.shown!r} reads no table and no stream with bounds.",
        "Use an expression that keeps the order of time." if lost else "Read its sources with rt.punctuate.",
    )


def _keeping(query: QueryStatus, source: QuerySource, needs: int) -> Finding:
    return Finding(
        Cause.OPERATOR,
        query.shown,
        f"{_named(query, source)} up to {show_micros(source.floor or 0)}, and its operators keep rows, so its output "
        f"is not complete at {show_micros(needs)} yet.",
        "Its source must come further: wait for the next bound there.",
    )


def _behind(query: QueryStatus, source: QuerySource, table: _State, now: int) -> Finding:
    read = "no bound" if source.floor is None else f"the bound {show_micros(source.floor)}"
    version = "" if source.version is None else f" to version {source.version}"
    last = "" if table.moved is None else f" Its last commit into {table.target} was at {show_micros(table.moved)}."
    return Finding(
        Cause.QUERY_BEHIND,
        query.shown,
        f"{_named(query, source)}{version} and {read}, which now has the bound {show_micros(now)}.{last}",
        "Check whether it runs: start it again with its checkpoint, or wait for its batch.",
    )


def _beyond(query: QueryStatus, shown: str) -> Finding:
    return Finding(
        Cause.NOT_FOLLOWED,
        query.shown,
        f"Query {query.shown!r} says that it reads another place than the folder of the table; not followed: {shown}.",
        "If you trust that place, ask again with it: rowtime why --within FOLDER, or within=[...]. Whoever may write "
        "to the table may write any path there.",
    )
