"""Whether it is the turn of a query's batch in a table, which has the query's last batch in its commits."""

from collections.abc import Mapping

from spark_rowtime.drain.properties import BATCH, OFFSETS, POSITION, QUERY, batch_in
from spark_rowtime.drain.tables.table import Table
from spark_rowtime.errors import DataLostError, ProducerFencedError


def require_ours(table: Table, query: str) -> None:
    """Raises ProducerFencedError if another query or a drain writes to the table."""
    other = table.properties.get(QUERY, query)
    if POSITION in table.properties or other != query:
        who = "A drain" if POSITION in table.properties else f"The query {other}"
        raise ProducerFencedError(
            f"{who} has written to {table.target}, and query {query} is another one. A table has the bound of one "
            "writer: with two, rows could come below it, or twice. Write to another table, or continue the other query "
            "from its checkpoint.",
            path=table.target,
            query=query,
        )


def last_written(table: Table, query: str) -> int:
    """The last batch of the query, -1 for none; DataLostError if the table was set back behind it.

    A query does not send batches again that it has done, so those that were taken out of the table stay away.
    """
    there, done = batch_in(table.properties), table.lastBatch(query)
    if done is None or done <= there or table.hasForgotten:
        return there if done is None else done
    state = f"batch {there} is the last that is in it" if there >= 0 else "none is in it"
    raise DataLostError(
        f"{table.target} was set back: query {query} had written up to batch {done}, and now {state}. The query goes "
        "on behind its checkpoint, so the rows between would be missing. Set the table to where it was, or write to "
        "another one with a new checkpoint.",
        path=table.target,
        query=query,
        batch=done,
    )


def is_written(table: Table, last: int, batch: Mapping[str, str]) -> bool:
    """Whether the table has this batch, behind which ``last`` is the last one of the query.

    Law (*in turn*): a query's batches come in their order, and of those that the table has Spark repeats the last one
    alone, up to the same offsets. The first one is in the table, even if it had no rows. Whatever else comes is
    refused: the table is not the one that the query has written, or the checkpoint is not the newest.
    """
    number, ends = int(batch[BATCH]), {table.properties.get(OFFSETS, ""), batch[OFFSETS]} - {""}
    if last < 0 < number:
        raise lost(table.target, batch)
    if number < last:
        raise _copied(table.target, batch, f"batch {last} has been written")
    if number == last and len(ends) > 1:
        raise _copied(table.target, batch, "that batch has been written from another part of the source")
    return number == last


def lost(target: str, batch: Mapping[str, str]) -> DataLostError:
    """The error for a batch after the first one, where the table has none of the query."""
    query, number = batch[QUERY], int(batch[BATCH])
    return DataLostError(
        f"Batch {number} of query {query} cannot be written to {target}: the table has no batch of this query, so "
        "rows before it would be missing below the bound. The table was dropped, and maybe made again, or was not the "
        "one that the query wrote, or not each batch was given to tableWriter's function. Restore the table, or start "
        "the query with a new checkpoint.",
        path=target,
        query=query,
        batch=number,
    )


def _copied(target: str, batch: Mapping[str, str], what: str) -> ProducerFencedError:
    query, number = batch[QUERY], int(batch[BATCH])
    return ProducerFencedError(
        f"Batch {number} of query {query} cannot be written to {target}: {what}. The checkpoint is an older copy, or "
        "another process runs this query. Nothing of the batch was committed. Continue with the newest checkpoint, in "
        "one process; a copy needs a query and a table of its own.",
        path=target,
        query=query,
        batch=number,
    )
