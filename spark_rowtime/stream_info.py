"""StreamInfo: the state of a stream, of its producers and its readers, and for whom it waits."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa

from spark_rowtime.bounds.bound import RowtimeBound
from spark_rowtime.bounds.clock import Status
from spark_rowtime.store.record import ProducerInfo
from spark_rowtime.types.html import html_facts, html_table
from spark_rowtime.types.schema import show_schema
from spark_rowtime.types.short_repr import some

NAMED = 3
"""The largest number of producers, or of a producer's values, that are named."""


@dataclass(frozen=True, slots=True)
class ProducerDescription:
    """A producer of a stream, as ``describeStream`` reports it. Rows received = accepted + rejected.

    Attributes:
        name: The producer's name in the stream.
        status: expected (named by ``createStream``, has not opened a sink), attached, idle, detached, left, or
            complete (it will never send again).
        bound: The producer's own bound; None if it has none.
        accepted: The number of its rows that the stream accepted.
        rejected: The number of its rows that the stream rejected.
        epoch: Rises by one each time that another sink takes the producer over.
        checkpoint: The checkpoint stored last; None if none was stored.
        seen: When its process last committed or renewed its lease; an aware datetime, UTC. None: it has never opened a
            sink.
        sent: When it last sent a row or a new bound, or joined; an aware datetime, UTC. A producer that is seen, but
            has not sent for long, lives and has nothing to say. None: it has never opened a sink.
        lease: The lease that it was opened with, a timedelta; None if it has none.
        leaseLeft: What is left of the lease, a timedelta: the stream waits no longer unless the producer is seen
            again. None if it has no lease, or has left or was detached.
        keys: How many values of the column ``inOrderPer`` are known; 0 for a producer with another order.
        weakestKeys: The weakest of these values, at most three, each with its bound.
        cut: Of a producer whose rows are in Kafka topics, by topic and partition the offset after the last message that
            its bounds follow; None for any other.
        lag: Of a partition of a Kafka topic that ``KafkaFeed`` or ``KafkaWatch`` follows, how many offsets its end was
            ahead when the adapter last committed; None for any other.
        query: The queryName of the Spark query that writes as this producer, which is called ``spark-`` and the
            query's id; None for any other.

    ``seen``, ``sent``, ``lease`` and ``leaseLeft`` are not compared by ``==``, since they change with the time.
    """

    name: str
    status: Status
    bound: RowtimeBound | None
    accepted: int
    rejected: int
    epoch: int
    checkpoint: str | None
    seen: datetime | None = field(compare=False)
    sent: datetime | None = field(compare=False)
    lease: timedelta | None = field(compare=False)
    leaseLeft: timedelta | None = field(compare=False)
    keys: int = 0
    weakestKeys: tuple[tuple[Any, RowtimeBound], ...] = ()
    cut: Mapping[str, Mapping[int, int]] | None = None
    query: str | None = None
    lag: int | None = None


@dataclass(frozen=True, slots=True)
class ReaderDescription:
    """A registered reader: a query, or a reader with a name. Retention keeps the rows that it has not read.

    Attributes:
        name: The name of the reader. A query is registered under the path at which its checkpoint keeps the source.
        seq: The sequence number in the log up to which it has read.
        seen: When it last reported that it still reads; an aware datetime, UTC.
        unread: The number of rows that were committed after its position. The stream keeps them for it.
        checkpointGone: True for a query whose checkpoint no longer exists on this machine, so that it cannot go on.
        reads: ``"stream"``, or ``"topic"`` of a query over a topic beside the stream, for which the offsets of bounds
            are kept, too; None if an earlier version has registered it.
    """

    name: str
    seq: int
    seen: datetime
    unread: int
    checkpointGone: bool
    reads: str | None = None


@dataclass(frozen=True, slots=True, repr=False)
class StreamInfo:
    """The state of a stream at one moment; ``describeStream`` returns it.

    A producer whose lease has ended is shown as detached, although the log records this only at the next poll.

    Attributes:
        path: The path of the stream.
        schema: The stream's schema, as a pyarrow schema.
        bound: The bound of the stream; None if it has none yet.
        producers: Every producer that was ever attached and is not forgotten, each as a ProducerDescription.
        rows: The number of rows that were ever accepted.
        rejected: The number of rows that were ever rejected.
        seq: The sequence number of the end of the log.
        holder: The name of the producer that holds the stream's bound back; None if no producer does.
        removed: How many of the ``rows`` were removed by retention.
        readers: The registered readers, each as a ReaderDescription.
        rejectedRemoved: How many of the ``rejected`` rows are no longer kept.
        holders: The names of all producers that hold the bound back: it moves once each of them has sent or left.
        rowsHeldBack: The number of rows that were accepted, but wait for the bound, so that readers in order of
            rowtime do not get them yet.
        settings: The arguments of ``createStream`` that differ from their defaults, by name. Intervals are
            timedeltas, sizes are bytes; ``maxAhead`` is None where there is no limit, and
            ``closed`` has the names of the only producers that may join.
        forgotten: How many producers that left are no longer listed, since ``rowtime gc`` has forgotten them. Their
            rows are counted in ``rows`` and ``rejected``.
        openTransactions: Of a stream in PostgreSQL, what transactions have been open for more than a minute in its
            database, each as a text. What commits change cannot be freed until they end. Others' transactions are
            known to a role with ``pg_read_all_stats`` only.

    Example:
        >>> import spark_rowtime as rt
        >>> rt.createStream("memory://docs-info", "rowtime TIMESTAMP NOT NULL, ticker STRING", retainAge="7 days")
        >>> info = rt.describeStream("memory://docs-info")
        >>> info.rows, info.bound, info.holder
        (0, None, None)
        >>> info.settings
        {'retainAge': datetime.timedelta(days=7)}
    """

    path: str
    schema: pa.Schema
    bound: RowtimeBound | None
    producers: tuple[ProducerDescription, ...]
    rows: int
    rejected: int
    seq: int
    holder: str | None
    removed: int
    readers: tuple[ReaderDescription, ...]
    rejectedRemoved: int
    holders: tuple[str, ...]
    rowsHeldBack: int
    settings: Mapping[str, Any]
    forgotten: int = 0
    openTransactions: tuple[str, ...] = ()

    def __repr__(self) -> str:
        waits = f"waits for {self.waitsFor!r}" if self.holder else f"waits for {self.waitsFor}"
        return (
            f"<StreamInfo of {self.path}: {self.bound or 'no bound'}, {waits}, {self.rows} rows, "
            f"{self.rejected} rejected, {len(self.producers)} producers, {len(self.readers)} readers, seq {self.seq}>"
        )

    def _repr_html_(self) -> str:
        """The state of the stream in a notebook."""
        return stream_html(self)

    @property
    def waitsFor(self) -> str:
        """The producer that the stream waits for, in words.

        Returns:
            The name of the ``holder``; if that is expected, the names of all that are expected, and that they have not
            opened. If there is none, a text that begins with "nobody" and says why the bound does not move.

        Example:
            >>> import spark_rowtime as rt
            >>> rt.createStream("memory://docs-waits", "rowtime TIMESTAMP NOT NULL, ticker STRING")
            >>> rt.describeStream("memory://docs-waits").waitsFor
            'nobody: no producer has been attached to memory://docs-waits yet'
            >>> with rt.openSink("memory://docs-waits", producer="nyse") as sink:
            ...     rt.describeStream("memory://docs-waits").waitsFor
            'nyse'
        """
        complete = self.bound is not None and self.bound.isEnd
        return waits_for(self.path, self.holder, self.producers, complete=complete)


def stream_html(info: StreamInfo) -> str:
    """A stream as two tables: its facts, and its producers, those that hold the bound back first."""
    facts = [
        ("columns", show_schema(info.schema)),
        ("bound", "none" if info.bound is None else str(info.bound)),
        ("waits for", info.waitsFor),
        ("rows", f"{info.rows} accepted, {info.rejected} rejected, {info.rowsHeldBack} waiting for the bound"),
    ]
    holders = frozenset(info.holders)
    ordered = sorted(info.producers, key=lambda producer: producer.name not in holders)
    rows = [_producer_cells(producer, producer.name in holders) for producer in ordered[:_SHOWN]]
    more = f", {_SHOWN} of {len(ordered)}" if len(ordered) > _SHOWN else ""
    head = ("producer", "", "status", "bound", "rows", "rejected", "last sent")
    return html_facts(info.path, facts) + (html_table(f"producers{more}", head, rows) if rows else "")


_SHOWN = 50
"""The largest number of producers that a notebook shows."""


def _producer_cells(producer: ProducerDescription, holds: bool) -> tuple[str, ...]:
    return (
        producer.name,
        "holds the bound" if holds else "",
        producer.status.value,
        "none" if producer.bound is None else str(producer.bound),
        str(producer.accepted),
        str(producer.rejected),
        "" if producer.sent is None else f"{producer.sent:%Y-%m-%d %H:%M:%SZ}",
    )


def waits_for(
    path: str, holder: str | None, producers: Collection[ProducerDescription | ProducerInfo], *, complete: bool = False
) -> str:
    """The producer whose rows or bounds move the bound of the stream at ``path``; see ``StreamInfo.waitsFor``.

    ``complete``: whether the stream's bound is the end of time.
    """
    if complete:
        return f"nobody: {path} is complete, no row follows"
    to_come = [p.name for p in producers if p.status is Status.EXPECTED]
    if holder in to_come:
        return f"{_some(to_come)} (expected, {'have' if len(to_come) > 1 else 'has'} not opened)"
    if holder is not None:
        return holder
    if not producers:
        return f"nobody: no producer has been attached to {path} yet"
    by_status = [(status, [p.name for p in producers if p.status is status]) for status in Status]
    gone = ", ".join(f"{_some(names)} {_GONE[status][len(names) > 1]}" for status, names in by_status if names)
    return f"nobody: of the producers of {path} {gone}; the bound stays as it is until one sends"


_GONE = {
    Status.EXPECTED: ("is expected", "are expected"),
    Status.ATTACHED: ("is attached", "are attached"),
    Status.IDLE: ("is idle", "are idle"),
    Status.DETACHED: ("was detached", "were detached"),
    Status.LEFT: ("has left", "have left"),
    Status.COMPLETE: ("is complete", "are complete"),
}
"""What has become of a producer, and of several, in words."""


def _some(names: Sequence[str]) -> str:
    """The first names, each in quotes, and the number of the others."""
    return some([repr(name) for name in names], NAMED)
