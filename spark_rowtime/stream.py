"""createStream creates a stream; describeStream reports its state."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa

from spark_rowtime.bounds.bound import RowtimeBound, as_bound
from spark_rowtime.bounds.clock import Status
from spark_rowtime.bounds.key_order import declares_keys, weakest_first
from spark_rowtime.errors import DataLostError, InvalidOptionError, SchemaMismatchError, StreamExistsError
from spark_rowtime.store import create_store, open_store
from spark_rowtime.store.base import REJECTED_BYTES, Position, ProducerInfo, Store, StreamSettings
from spark_rowtime.store.current_state import clock_now, producers_now
from spark_rowtime.store.retention import checkpoint_gone, lost
from spark_rowtime.types.arguments import is_whole, to_flag
from spark_rowtime.types.schema import same_schema, show_schema, stream_schema
from spark_rowtime.types.short_repr import short_repr
from spark_rowtime.types.timestamps import from_micros, to_interval

_NAMED = 3
"""The largest number of producers, or of a producer's values, that are named."""


@dataclass(frozen=True, slots=True)
class ProducerDescription:
    """A producer of a stream, as ``describeStream`` reports it. Rows received = accepted + rejected.

    Attributes:
        name: The producer's name in the stream.
        status: attached, idle, detached or left.
        bound: The producer's own bound; None if it has none.
        accepted: The number of its rows that the stream accepted.
        rejected: The number of its rows that the stream rejected.
        epoch: Rises by one each time that another sink takes the producer over.
        checkpoint: The checkpoint stored last; None if none was stored.
        keys: How many values of the column ``inOrderPer`` are known; 0 for a producer with another order.
        weakestKeys: The weakest of these values, at most three, each with its bound.
    """

    name: str
    status: Status
    bound: RowtimeBound | None
    accepted: int
    rejected: int
    epoch: int
    checkpoint: str | None
    keys: int = 0
    weakestKeys: tuple[tuple[Any, RowtimeBound], ...] = ()


@dataclass(frozen=True, slots=True)
class ReaderDescription:
    """A registered reader: a query, or a reader with a name. Retention keeps the rows that it has not read.

    Attributes:
        name: The name of the reader. A query is registered under the path at which its checkpoint keeps the source.
        seq: The sequence number in the log up to which it has read.
        seen: When it last reported that it still reads; an aware datetime, UTC.
        unread: The number of rows that were committed after its position. The stream keeps them for it.
        checkpointGone: True for a query whose checkpoint no longer exists on this machine, so that it cannot go on.
    """

    name: str
    seq: int
    seen: datetime
    unread: int
    checkpointGone: bool


@dataclass(frozen=True, slots=True)
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
        settings: The arguments of ``createStream`` that differ from their defaults, by name. Intervals are
            timedeltas, sizes are bytes.
        forgotten: How many producers that left are no longer listed, since ``rowtime gc`` has forgotten them. Their
            rows are counted in ``rows`` and ``rejected``.

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
    settings: Mapping[str, timedelta | int | bool]
    forgotten: int = 0

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
        return waits_for(self.path, self.holder, self.producers)


def waits_for(path: str, holder: str | None, producers: Sequence[ProducerDescription | ProducerInfo]) -> str:
    """The producer whose rows or bounds move the bound of the stream at ``path``; see ``StreamInfo.waitsFor``."""
    if holder is not None:
        return holder
    if not producers:
        return f"nobody: no producer has been attached to {path} yet"
    by_status = [(status, [p.name for p in producers if p.status is status]) for status in Status]
    gone = ", ".join(f"{_some(names)} {_GONE[status]}" for status, names in by_status if names)
    return f"nobody: of the producers of {path} {gone}; its bound stays until one sends"


_GONE = {
    Status.ATTACHED: "is attached",
    Status.IDLE: "is idle",
    Status.DETACHED: "was detached",
    Status.LEFT: "has left",
}


def _some(names: Sequence[str]) -> str:
    """The first names, each in quotes, and the number of the others."""
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(map(repr, names[:_NAMED])) + more


def createStream(
    path: str,
    schema: Any,
    *,
    boundsBeforeRows: bool = True,
    maxLag: str | timedelta | None = None,
    idleTimeout: str | timedelta | None = None,
    maxAhead: str | timedelta | None = None,
    retainAge: str | timedelta | None = None,
    retainBytes: int | None = None,
    retainRejected: int = REJECTED_BYTES,
    existOk: bool = False,
) -> None:
    """Creates an empty stream at ``path``.

    An interval is a text, such as "100 ms", "1 hour" or "1 hour 30 minutes", or a timedelta.

    Committing processes remove rows beyond ``retainAge`` or ``retainBytes`` from time to time. They never remove rows
    that the bound has not released, nor rows that a query or a named reader has still to read.

    Args:
        path: A directory that does not exist yet, also as a ``file://`` URL; or ``memory://name`` for a stream in
            the memory of this process.
        schema: A DDL string, a Spark StructType or a pyarrow schema. It needs a column
            ``rowtime TIMESTAMP NOT NULL``.
        boundsBeforeRows: If False, the stream has no bound until its first row, whatever its producers promise.
        maxLag: An interval of rowtime: how far the slowest producer may hold the fastest back. None: no limit.
        idleTimeout: An interval: a producer that is silent for longer does not count for the stream's bound until
            it sends again. None: a silent producer holds the bound back.
        maxAhead: An interval: a row whose rowtime is further than this ahead of the wall clock is rejected, and
            such a bound is refused. None: no limit.
        retainAge: An interval: rows that were committed longer ago are removed. None: all rows are kept.
        retainBytes: A number of bytes: rows beyond the newest ``retainBytes`` bytes are removed. None: all rows
            are kept.
        retainRejected: A number of bytes: the stream keeps the newest rejected rows up to this size (by default
            256 MiB). All rejected rows are counted.
        existOk: If True, a stream of the same schema that exists already is left as it is; its settings are not
            compared.

    Raises:
        StreamExistsError: Something exists at ``path`` already, and ``existOk`` is False.
        SchemaMismatchError: The schema cannot be that of a stream, or, with ``existOk``, the stream has another one.
        InvalidOptionError: An argument has a value that cannot be used.
        StoreUnavailableError: The stream cannot be written just now.

    Example:
        >>> import spark_rowtime as rt
        >>> rt.createStream("memory://docs-create", "rowtime TIMESTAMP NOT NULL, ticker STRING", idleTimeout="5 min")
        >>> rt.describeStream("memory://docs-create").schema.names
        ['rowtime', 'ticker']
    """
    arrow = stream_schema(schema)
    settings = StreamSettings(
        to_flag(boundsBeforeRows, "boundsBeforeRows"),
        to_interval(maxLag, "maxLag"),
        to_interval(idleTimeout, "idleTimeout"),
        to_interval(maxAhead, "maxAhead"),
        to_interval(retainAge, "retainAge"),
        None if retainBytes is None else _size(retainBytes, "retainBytes"),
        _size(retainRejected, "retainRejected"),
    )
    to_flag(existOk, "existOk")
    try:
        create_store(path, arrow, settings)
    except StreamExistsError:
        if not existOk:
            raise
        _check_same(path, arrow)


def _not_default(settings: StreamSettings) -> dict[str, timedelta | int | bool]:
    changed = {name: value for name, value in asdict(settings).items() if value != getattr(StreamSettings(), name)}
    plain = ("boundsBeforeRows", "retainBytes", "retainRejected")
    return {name: value if name in plain else timedelta(microseconds=value) for name, value in changed.items()}


def _size(value: Any, name: str) -> int:
    if is_whole(value) and 0 <= value < 1 << 63:
        size: int = value
        return size
    raise InvalidOptionError(
        f"{name} must be a whole number of bytes, not {short_repr(value)}.", value=short_repr(value)
    )


def require_stream(path: str, schema: Any) -> None:
    """Raises StreamNotFoundError if there is no stream at ``path``, SchemaMismatchError if it has another schema."""
    _check_same(path, stream_schema(schema))


def _check_same(path: str, wanted: pa.Schema) -> None:
    store = open_store(path)
    try:
        if not same_schema(store.schema, wanted):
            raise SchemaMismatchError(
                f"The stream at {path} has the columns {show_schema(store.schema)}, not {show_schema(wanted)}. "
                "Take another path, or the stream's own schema.",
                path=path,
            )
    finally:
        store.close()


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
    store = open_store(path)
    try:
        (clock, due), head = clock_now(store), store.head()
        infos, summary = producers_now(store, due), store.summary()
        return StreamInfo(
            path,
            store.schema,
            as_bound(clock.floor),
            tuple(_described(store, info) for info in infos),
            head.rows,
            summary.rejected,
            head.seq,
            clock.holder(),
            store.horizon().rows,
            _readers(store),
            store.rejected_removed(),
            _not_default(store.settings),
            summary.forgotten,
        )
    finally:
        store.close()


def _described(store: Store, info: ProducerInfo) -> ProducerDescription:
    keys: list[tuple[Any, int]] = []
    if declares_keys(info.declaration):
        keys = weakest_first(info.declaration, store.schema, store.keys(info.name))
    least = info.floor or 0
    return ProducerDescription(
        info.name, info.status, as_bound(info.floor), info.accepted, info.rejected, info.epoch, info.checkpoint,
        len(keys), tuple((value, RowtimeBound.fromFloor(max(floor, least))) for value, floor in keys[:_NAMED]),
    )  # fmt: skip


def _readers(store: Store) -> tuple[ReaderDescription, ...]:
    found, now = store.readers(), store.now()
    return tuple(
        ReaderDescription(
            r.name, r.position.seq, from_micros(now - r.unseen), _unread(store, r.position), checkpoint_gone(r.name)
        )
        for r in found
    )


def _unread(store: Store, position: Position) -> int:
    """Returns how many rows follow ``position``; of trains that were read in part, all rows."""
    try:
        return _unread_now(store, position)
    except DataLostError:  # retention has removed rows since the horizon was read
        return _unread_now(store, position)


def _unread_now(store: Store, position: Position) -> int:
    horizon, head = store.horizon(), store.head()
    later = head.rows - store.at(min(max(position.seq, horizon.seq), head.seq)).rows
    if position.cut is None or lost(position, horizon):
        return later
    return later + sum(piece.rows for piece in store.slices(position, Position(position.seq, None, None)))
