"""createStream creates a stream; describeStream reports its state."""

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa

from spark_rowtime.bounds.bound import RowtimeBound, as_bound
from spark_rowtime.bounds.clock import Status
from spark_rowtime.bounds.key_order import declares_keys, weakest_known
from spark_rowtime.bounds.topic_cut import merged
from spark_rowtime.errors import InvalidOptionError, SchemaMismatchError, StreamExistsError
from spark_rowtime.store import create_store, open_store
from spark_rowtime.store.backlog import of_snapshot, rows_held_back, rows_unread
from spark_rowtime.store.base import (
    NEW_STREAM,
    READS_STREAM,
    READS_TOPIC,
    REJECTED_BYTES,
    Snapshot,
    StreamSettings,
)
from spark_rowtime.store.location import to_location
from spark_rowtime.store.query_status import query_names
from spark_rowtime.store.record import ATTACHED, ProducerInfo
from spark_rowtime.store.retention import checkpoint_gone
from spark_rowtime.types.arguments import known_keywords, to_count, to_flag, to_name
from spark_rowtime.types.html import html_facts, html_table
from spark_rowtime.types.schema import is_schema_of, show_schema, stream_schema
from spark_rowtime.types.short_repr import short_repr
from spark_rowtime.types.timestamps import from_micros, to_interval

_NAMED = 3
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
            The name of the ``holder``. If there is none, a text that begins with "nobody" and says why the bound
            does not move.

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
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(map(repr, names[:_NAMED])) + more


@known_keywords
def createStream(
    path: str,
    schema: Any,
    *,
    boundsBeforeRows: bool = True,
    maxLag: str | timedelta | None = None,
    idleTimeout: str | timedelta | None = None,
    maxAhead: str | timedelta | None = "1 day",
    retainAge: str | timedelta | None = None,
    retainBytes: int | None = None,
    retainRejected: int = REJECTED_BYTES,
    producers: Iterable[str] = (),
    closed: bool = False,
    location: str | None = None,
    existOk: bool = False,
) -> None:
    """Creates an empty stream at ``path``.

    An interval is a text, such as "100 ms", "1 hour" or "1 hour 30 minutes", or a timedelta.

    Committing processes remove rows beyond ``retainAge`` or ``retainBytes`` from time to time. They never remove rows
    that the bound has not released, nor rows that a query or a named reader has still to read.

    Args:
        path: A directory that does not exist yet, also as a ``file://`` URL; or
            ``postgresql://host:port/database/stream`` for a stream in a database, which needs the pip extra
            ``postgres``; or ``memory://name`` for a stream in the memory of this process.
        schema: A DDL string, a Spark StructType or a pyarrow schema. It needs a column
            ``rowtime TIMESTAMP NOT NULL``.
        boundsBeforeRows: If False, the stream has no bound until its first row, whatever its producers promise.
        maxLag: An interval of rowtime: how far the slowest producer may hold the fastest back. None: no limit.
        idleTimeout: An interval: a producer that is silent for longer does not count for the stream's bound until
            it sends again. None: a silent producer holds the bound back.
        maxAhead: An interval: a row whose rowtime is further than this ahead of the wall clock is rejected, and
            such a bound is refused, since it would make all rows before it late and cannot be taken back. The clock is
            that of the database, or of this machine. None, or "unlimited": no limit, for times that are not those of
            the present, such as bookings, forecasts and simulations.
        retainAge: An interval: rows that were committed longer ago are removed. None: all rows are kept.
        retainBytes: A number of bytes: rows beyond the newest ``retainBytes`` bytes are removed. None: all rows
            are kept.
        retainRejected: A number of bytes: the stream keeps the newest rejected rows up to this size (by default
            256 MiB). All rejected rows are counted.
        producers: The names of the producers that the stream waits for from the start: it has no bound until each of
            them has opened a sink and promised something, or is let go by ``detachProducer`` or ``closeProducer``. So
            feeds that start one after another lose no rows. Other producers may join too.
        closed: If True, no other producers than ``producers`` may join, under whatever name, adapters and queries
            included. ``alterStream`` lets others in.
        location: For a stream in PostgreSQL, the URL of a folder or bucket, such as "s3://bucket/rowtime": rows that
            are committed in trains of more than 64 KiB are stored there, one object each. It must not contain keys or
            passwords. None: all rows are in the database.
        existOk: If True, a stream of the same schema that exists already is left as it is. Settings that are given here
            must be those that it has; expected producers are not compared. The stream may also have columns that
            ``alterStream`` has added.

    Raises:
        StreamExistsError: Something exists at ``path`` already, and ``existOk`` is False.
        SchemaMismatchError: The schema cannot be that of a stream, or, with ``existOk``, the stream has another one.
        InvalidOptionError: An argument has a value that cannot be used, or, with ``existOk``, that the stream does not
            have.
        StoreUnavailableError: The stream cannot be written just now.

    Example:
        >>> import spark_rowtime as rt
        >>> rt.createStream("memory://docs-create", "rowtime TIMESTAMP NOT NULL, ticker STRING", idleTimeout="5 min")
        >>> rt.describeStream("memory://docs-create").schema.names
        ['rowtime', 'ticker']

        Two feeds of which the first ends before the second begins:

        >>> schema = "rowtime TIMESTAMP NOT NULL, ticker STRING"
        >>> rt.createStream("memory://docs-expected", schema, producers=["nyse", "xetra"])
        >>> with rt.openSink("memory://docs-expected", producer="nyse") as sink:
        ...     sink.sendRow(("2026-01-05T14:30:00Z", "IBM"))
        >>> rt.describeStream("memory://docs-expected").waitsFor
        "'xetra' (expected, has not opened)"
        >>> with rt.openSink("memory://docs-expected", producer="xetra") as sink:
        ...     sink.sendRow(("2026-01-05T09:00:00Z", "SAP"))
        >>> rt.describeStream("memory://docs-expected").bound
        RowtimeBound('2026-01-05T14:30:00Z')
    """
    arrow, expected = stream_schema(schema), to_names(producers)
    settings = StreamSettings(
        to_flag(boundsBeforeRows, "boundsBeforeRows"),
        to_interval(maxLag, "maxLag"),
        to_interval(idleTimeout, "idleTimeout"),
        to_max_ahead(maxAhead),
        to_interval(retainAge, "retainAge"),
        None if retainBytes is None else to_count(retainBytes, "retainBytes", unit="bytes"),
        to_count(retainRejected, "retainRejected", unit="bytes"),
        None if location is None else to_location(location),
        closed_to(expected) if to_flag(closed, "closed") else None,
    )
    to_flag(existOk, "existOk")
    try:
        create_store(path, arrow, settings, expected)
    except StreamExistsError:
        if not existOk:
            raise
        _check_same(path, arrow)
        _check_settings(path, settings)


def to_max_ahead(value: str | timedelta | None) -> int | None:
    """Returns ``maxAhead`` in microseconds; None for no limit, which the text "unlimited" says too."""
    return None if value == "unlimited" else to_interval(value, "maxAhead")


def _check_settings(path: str, given: StreamSettings) -> None:
    """Raises InvalidOptionError if a setting that is given, and not the default, is not that of the stream."""
    with open_store(path) as store:
        stored = store.settings
    for name, value in _not_default(given).items():
        if getattr(stored, name) != getattr(given, name):
            there = _not_default(stored).get(name, "its default")
            raise InvalidOptionError(
                f"The stream at {path} was created with {name} at {there}, and {value} is asked for. A stream keeps "
                "its settings: leave the argument out, or use another path. alterStream changes maxAhead and closed.",
                path=path,
                option=name,
                value=str(value),
            )


def closed_to(producers: tuple[str, ...]) -> tuple[str, ...]:
    """Returns the names of the only producers of a stream that is to be closed to others; there must be some."""
    if not producers:
        raise InvalidOptionError(
            "closed=True without producers=[...] would let nobody send. Name the producers that may.", option="closed"
        )
    return producers


def to_names(producers: Any) -> tuple[str, ...]:
    """Returns the names of producers, each once, in their order."""
    if isinstance(producers, str) or not isinstance(producers, Iterable):
        raise InvalidOptionError(
            f"producers must be a list of names, such as ['Berlin', 'Oslo'], not {short_repr(producers)}.",
            option="producers",
            value=short_repr(producers),
        )
    return tuple(dict.fromkeys(to_name(name, "a name in producers") for name in producers))


def _not_default(settings: StreamSettings) -> dict[str, Any]:
    changed = {name: value for name, value in asdict(settings).items() if value != getattr(NEW_STREAM, name)}
    plain = ("boundsBeforeRows", "retainBytes", "retainRejected", "location", "closed")
    return {
        name: value if name in plain or value is None else timedelta(microseconds=value)
        for name, value in changed.items()
    }


def require_stream(path: str, schema: Any) -> None:
    """Raises StreamNotFoundError if there is no stream at ``path``, SchemaMismatchError if it has another schema.

    ``schema`` may lack columns that were added to the stream.
    """
    _check_same(path, stream_schema(schema))


def _check_same(path: str, wanted: pa.Schema) -> None:
    with open_store(path) as store:
        if not is_schema_of(store.schema, wanted):
            raise SchemaMismatchError(
                f"The stream at {path} has the columns {show_schema(store.schema)}, not {show_schema(wanted)}. "
                "Use another path, or the stream's own schema.",
                path=path,
            )


@known_keywords
def describeStream(path: str) -> StreamInfo:
    """Reports the schema, the bound, the producers and the readers of a stream.

    Args:
        path: The path of the stream, as for ``createStream``.

    Returns:
        The state of the stream as a StreamInfo.

    Raises:
        StreamNotFoundError: There is no stream at ``path``.
        StoreCorruptError: The stream's files do not hold what was written.
        InvalidOptionError: ``path`` names no kind of store that is known.

    Example:
        >>> import spark_rowtime as rt
        >>> rt.createStream("memory://docs-describe", "rowtime TIMESTAMP NOT NULL, ticker STRING")
        >>> with rt.openSink("memory://docs-describe", producer="nyse") as sink:
        ...     sink.sendRow(("2026-01-05T14:30:00Z", "IBM"))
        >>> info = rt.describeStream("memory://docs-describe")
        >>> info.rows, info.bound
        (1, RowtimeBound('2026-01-05T14:30:00Z'))
        >>> [(producer.name, producer.status.value) for producer in info.producers]
        [('nyse', 'left')]
    """
    return read_info(path, checkpoint_gone)


def read_info(path: str, gone: Callable[[str], bool]) -> StreamInfo:
    """Does what ``describeStream`` does. ``gone`` says whether the checkpoint of a reader, by its name, is gone.

    That asks the machine about a path which the reader has chosen, so it is not for everybody to know.
    """
    with open_store(path) as store:
        snapshot, (held_back, unread) = of_snapshot(
            store,
            lambda at: (rows_held_back(store, at.head), [rows_unread(store, at, r.position) for r in at.readers]),
            full=True,
        )
    return info_of(path, snapshot, held_back, unread, gone)


def info_of(
    path: str, snapshot: Snapshot, held_back: int, unread: Sequence[int], gone: Callable[[str], bool]
) -> StreamInfo:
    """Returns what is said of a full snapshot. ``unread`` has the number of rows that each reader has to read."""
    return StreamInfo(
        path,
        snapshot.schema,
        as_bound(snapshot.clock.floor),
        _producers(snapshot),
        snapshot.head.rows,
        snapshot.rejected,
        snapshot.head.seq,
        snapshot.clock.holder(),
        snapshot.horizon.rows,
        tuple(
            ReaderDescription(
                r.name,
                r.position.seq,
                from_micros(max(snapshot.wall - r.unseen, 0)),
                rows,
                gone(r.name),
                r.reads if r.reads in (READS_STREAM, READS_TOPIC) else None,
            )
            for r, rows in zip(snapshot.readers, unread, strict=True)
        ),
        snapshot.rejected_removed,
        tuple(snapshot.clock.holders()),
        held_back,
        _not_default(snapshot.settings),
        snapshot.forgotten,
        snapshot.open_transactions,
    )


def _producers(snapshot: Snapshot) -> tuple[ProducerDescription, ...]:
    queries = query_names(snapshot)
    return tuple(_producer(snapshot, info, queries.get(info.name)) for info in snapshot.producers.values())


def _producer(snapshot: Snapshot, info: ProducerInfo, query: str | None) -> ProducerDescription:
    last, cut = snapshot.seen[info.name], merged(snapshot.cuts.get(info.name, ()))
    known, weakest = _keys(snapshot, info)
    waits = last.lease is not None and info.status in ATTACHED
    # What attached has declared its order; an account of late rows has not.
    came = bool(info.declaration or info.number)
    return ProducerDescription(
        info.name,
        info.status,
        as_bound(info.floor),
        info.accepted,
        info.rejected,
        info.epoch,
        info.checkpoint,
        from_micros(snapshot.wall - last.unseen) if came else None,
        from_micros(snapshot.wall - last.silent) if came else None,
        None if last.lease is None else timedelta(microseconds=last.lease),
        timedelta(microseconds=max((last.lease or 0) - last.unseen, 0)) if waits else None,
        known,
        tuple((value, RowtimeBound.fromFloor(max(floor, info.floor or 0))) for value, floor in weakest),
        None if cut is None else cut.offsets,
        query,
        messages_behind(info.checkpoint),
    )


def messages_behind(checkpoint: str | None) -> int | None:
    """How far a partition of a topic was read from its end, by the checkpoint of its adapter; None for any other."""
    if checkpoint is None or '"topicId"' not in checkpoint:
        return None
    try:
        found = json.loads(checkpoint)
        offset, end = found["offset"], found["end"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    return max(end - offset, 0) if type(offset) is int and type(end) is int else None


def _keys(snapshot: Snapshot, info: ProducerInfo) -> tuple[int, list[tuple[Any, int]]]:
    """Returns how many values of a producer's key column are known, and the weakest of them with their floors."""
    if not declares_keys(info.declaration):
        return 0, []
    return weakest_known(info.declaration, snapshot.schema, snapshot.keys.get(info.name, ()), _NAMED)
