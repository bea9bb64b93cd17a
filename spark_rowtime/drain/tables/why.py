"""whyTable: names what holds a Delta or Iceberg table, through the queries and tables before it."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from spark_rowtime.diagnosis.causes import Finding
from spark_rowtime.diagnosis.chain import Chain, Step, unreadable
from spark_rowtime.diagnosis.explanation import Explanation
from spark_rowtime.diagnosis.query_causes import holding
from spark_rowtime.diagnosis.reach import Reach
from spark_rowtime.diagnosis.stream_state import StreamState
from spark_rowtime.diagnosis.why import SILENT_AFTER, explanation_of
from spark_rowtime.drain.properties import POSITION, QUERY
from spark_rowtime.drain.tables import table_causes as causes
from spark_rowtime.drain.tables.reach import DELTA, ICEBERG, TablesWithin, local
from spark_rowtime.drain.tables.table_state import TableState
from spark_rowtime.errors import InvalidOptionError, RowtimeError
from spark_rowtime.store.query_status import QuerySource, QueryStatus
from spark_rowtime.types.arguments import known_keywords
from spark_rowtime.types.short_repr import short_repr
from spark_rowtime.types.timestamps import END, to_micros, to_required_interval


def is_table(target: object) -> bool:
    """Whether it is the name of a table of one of the two formats."""
    return isinstance(target, str) and target.startswith((DELTA, ICEBERG))


@known_keywords
def whyTable(
    target: str,
    at: Any,
    *,
    query: str | None = None,
    silentAfter: str | timedelta = SILENT_AFTER,
    within: Sequence[str] = (),
) -> Explanation:
    """Names what holds a Delta or Iceberg table below a time, and what would release it.

    It walks from the table back to its feeds: each commit of a query with the option ``rowtimeBound`` names the tables
    and streams that the query has read, and how far. It reads logs and metadata, and writes nothing. Whether a query
    runs, no table says: the answer has the time of its last commit.

    What commits name, others may have written. So it opens only what is in the folder of a Delta table and below, and
    of an Iceberg table those of its catalog.

    Args:
        target: The table, ``delta:PATH``, or ``iceberg:CATALOG.NAMESPACE.TABLE`` with a catalog that PyIceberg's
            configuration has by the name that Spark has for it.
        at: A time, as for ``sendRowtimeBound``.
        query: Must be None: a query over a table leaves no status there. The table that it writes has it.
        silentAfter: An interval: a producer of a stream at the beginning that has sent nothing for longer is silent.
        within: More folders, as paths, to which the answer may lead, and Iceberg catalogs, as ``iceberg:CATALOG``, or
            one of their namespaces.

    Returns:
        An Explanation, whose ``stream`` is the table, and whose links can be of the kinds "table" and "drain", too.

    Raises:
        ExtraNotInstalledError: It needs the pip extra ``delta`` or ``iceberg``.
        StoreUnavailableError: The table cannot be read.
        InvalidOptionError: ``target`` is no such table, or ``at`` is no time.

    Example:
        ```python
        rt.whyTable("delta:/lake/gold", "2026-01-05T12:00:00Z").cause
        ```
    """
    if not is_table(target):
        raise InvalidOptionError(
            f"target={short_repr(target)} is no Delta or Iceberg table. Write delta:PATH, or "
            "iceberg:CATALOG.NAMESPACE.TABLE.",
            option="target",
        )
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
    return explain_table(target, at, TablesWithin(target, within), silentAfter=silentAfter)


def explain_table(target: str, at: Any, reach: Reach, *, silentAfter: str | timedelta = SILENT_AFTER) -> Explanation:
    """Does what ``whyTable`` does, and leads to the tables and streams of ``reach``.

    ``at`` may be None: about the strongest bound of a link; where the table has that, about any time that is to come.
    """
    silent, table = to_required_interval(silentAfter, "silentAfter"), TableState.of(target)
    needs = END - 1 if at is None else to_micros(at)
    walk = _Tables(reach, silent)
    steps = walk.to(table, needs)
    strongest = max((step.floor for step in steps if step.floor is not None), default=None)
    if at is None and strongest is not None and strongest != table.floor:
        needs = strongest
        steps = walk.to(table, needs)
    return explanation_of(target, needs, steps, reach.not_followed)


class _Tables:
    """Walks from a table to what holds it, by the weakest source of each query. It reads each table once."""

    def __init__(self, reach: Reach, silent_after: int) -> None:
        self._reach, self._silent_after = reach, silent_after
        self._visited: set[str] = set()
        self._states: dict[str, TableState] = {}

    def to(self, table: TableState, needs: int) -> list[Step]:
        """The links up to a table that must reach a time."""
        self._visited.clear()
        return self._of_table(table, needs)

    def _of_table(self, table: TableState, needs: int) -> list[Step]:
        """The links up to the table."""
        self._visited.add(table.target)
        if table.floor is not None and table.floor >= needs:
            return [Step("table", table.target, table.floor, None, table.moved, needs, None)]
        steps = self._before(table, needs)
        before = steps[-1].floor if steps else None
        finding = None if steps else causes.of_others(table)
        return [*steps, Step("table", table.target, table.floor, before, table.moved, needs, finding)]

    def _before(self, table: TableState, needs: int) -> list[Step]:
        if POSITION in table.properties:
            return [Step("drain", "a drain", table.floor, None, table.moved, needs, causes.of_drain(table))]
        if QUERY not in table.properties:
            return []
        query = table.query_status
        if query is None:
            name = table.properties[QUERY]
            return [Step("query", name, table.floor, None, table.moved, needs, causes.without_status(table, name))]
        bounded = [source for source in query.sources if source.table is not None or source.path is not None]
        if not bounded or query.lost:
            return [Step("query", query.shown, table.floor, None, table.moved, needs, causes.without_bound(query))]
        source, behind = holding(query, bounded)
        return self._through(table, query, source, needs, min(needs + behind + bool(behind), END))

    def _through(
        self, table: TableState, query: QueryStatus, source: QuerySource, needs: int, of_source: int
    ) -> list[Step]:
        """The links up to the query that has written the table, from the source on for which it waits.

        ``of_source``: the time that the source must reach.
        """
        read = source.floor
        steps, finding = self._of_source(query, source, of_source)
        now = steps[-1].floor if steps else None
        told = finding is not None or any(step.finding for step in steps)
        if not told and read is not None and read >= of_source:
            finding = causes.keeping(query, source, needs)
        elif not told and now is not None and (read is None or now > read):
            finding = causes.behind(query, source, table, now)
        return [*steps, Step("query", query.shown, table.floor, now, table.moved, needs, finding)]

    def _of_source(self, query: QueryStatus, source: QuerySource, needs: int) -> tuple[list[Step], Finding | None]:
        """The links up to a source; none, and why, where the answer does not lead there."""
        stored = local(source.table or source.path or "")
        path = self._reach.path_of(stored) if source.table is None or "://" not in stored else None
        if path is None:
            return [], causes.beyond(query, self._reach.shown(stored))
        try:
            if source.table is None:
                stream = StreamState.at(path, full=True)
                return Chain(self._silent_after, self._reach).of_stream(stream, needs), None
            target = path if is_table(path) else DELTA + path
            return ([] if target in self._visited else self._of_table(self._state(target), needs)), None
        except RowtimeError as error:
            return [], unreadable(query, path, error)

    def _state(self, target: str) -> TableState:
        if target not in self._states:
            self._states[target] = TableState.of(target)
        return self._states[target]
