"""The causes for which a table stands below a time, each as what ``rowtime why`` says of it."""

from spark_rowtime.diagnosis.causes import Cause, Finding
from spark_rowtime.drain.tables.reach import ICEBERG, local
from spark_rowtime.drain.tables.table_state import TableState
from spark_rowtime.store.query_status import QuerySource, QueryStatus
from spark_rowtime.types.timestamps import show_micros


def _named(query: QueryStatus, source: QuerySource) -> str:
    return f"Query {query.shown!r} has read {local(source.table or source.path or '')}"


def of_others(table: TableState) -> Finding:
    note = f"None of the {table.commits} commits of {table.target} is by a drain or a query that writes bounds."
    if table.floor is not None:
        note = f"The bound of {table.target} is by somebody else: its commit names neither a drain nor a query."
    return Finding(
        Cause.NOT_OURS,
        None,
        note,
        "Ask whoever writes the table, or write it by `rowtime drain`, rt.tableWriter, or the format's own sink with "
        "the option rowtimeBound.",
    )


def of_drain(table: TableState) -> Finding:
    return Finding(
        Cause.DRAIN,
        "a drain",
        f"A drain writes {table.target}, and has brought it up to this bound. Its commits name the position in its "
        "stream, and not the stream's place.",
        "Check that the drain runs, and ask about its stream: rowtime why STREAM.",
    )


def without_status(table: TableState, query: str) -> Finding:
    return Finding(
        Cause.NO_ACCOUNT,
        query,
        f"The commits of {table.target} by query {query} do not say what it reads: they are by rt.tableWriter, or by "
        "an older version.",
        "Ask about the streams and tables that it reads. The format's own sink with the option rowtimeBound says it.",
    )


def without_bound(query: QueryStatus) -> Finding:
    lost = "; ".join(f"{path}: {where}" for path, where in query.lost.items())
    return Finding(
        Cause.BOUND_LOST if lost else Cause.ORDINARY_SOURCE,
        query.shown,
        f"The output of query {query.shown!r} has no bound. It was lost at {lost}."
        if lost
        else f"Query {query.shown!r} reads no table and no stream with bounds.",
        "Use an expression that keeps the order of time." if lost else "Read its sources with rt.punctuate.",
    )


def keeping(query: QueryStatus, source: QuerySource, needs: int) -> Finding:
    return Finding(
        Cause.OPERATOR,
        query.shown,
        f"{_named(query, source)} up to {show_micros(source.floor or 0)}, and its operators keep rows, so its output "
        f"is not complete at {show_micros(needs)} yet.",
        "Its source must come further: wait for the next bound there.",
    )


def behind(query: QueryStatus, source: QuerySource, table: TableState, now: int) -> Finding:
    read = "no bound" if source.floor is None else f"the bound {show_micros(source.floor)}"
    unit = "snapshot" if (source.table or "").startswith(ICEBERG) else "version"
    version = "" if source.version is None else f" to {unit} {source.version}"
    last = "" if table.moved is None else f" Its last commit into {table.target} was at {show_micros(table.moved)}."
    return Finding(
        Cause.QUERY_BEHIND,
        query.shown,
        f"{_named(query, source)}{version} and {read}, which now has the bound {show_micros(now)}.{last}",
        "Check whether it runs: start it again with its checkpoint, or wait for its batch.",
    )


def beyond(query: QueryStatus, shown: str) -> Finding:
    return Finding(
        Cause.NOT_FOLLOWED,
        query.shown,
        f"Query {query.shown!r} says that it reads another place than the folder, or the catalog, of the table; not "
        f"followed: {shown}.",
        "If you trust that place, ask again with it: rowtime why --within FOLDER, or --within iceberg:CATALOG, or "
        "within=[...]. Whoever may write to the table may write any name there.",
    )
