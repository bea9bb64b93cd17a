"""createStream and describeStream."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa

from spark_rowtime.bounds.bound import RowtimeBound, as_bound
from spark_rowtime.bounds.clock import Status
from spark_rowtime.errors import InvalidOptionError, SchemaMismatchError, StreamExistsError
from spark_rowtime.store import create_store, open_store
from spark_rowtime.store.base import REJECTED_BYTES, ProducerInfo, Store, StreamSettings
from spark_rowtime.store.current_state import clock_now, producers_now
from spark_rowtime.store.retention import checkpoint_gone
from spark_rowtime.types.arguments import is_whole, to_flag
from spark_rowtime.types.schema import same_schema, show_schema, stream_schema
from spark_rowtime.types.short_repr import short_repr
from spark_rowtime.types.timestamps import from_micros, to_interval

_NAMED = 3
"""So many producers are named in one sentence at the most."""


@dataclass(frozen=True, slots=True)
class ProducerDescription:
    """A producer: its own bound, what it sent, and what of it was rejected (received = accepted + rejected)."""

    name: str
    status: Status
    bound: RowtimeBound | None
    accepted: int
    rejected: int
    epoch: int
    checkpoint: str | None


@dataclass(frozen=True, slots=True)
class ReaderDescription:
    """A registered reader, a query or a named one: what it has not read at ``seq`` is kept for it."""

    name: str
    seq: int
    seen: datetime
    """When it last said that it still reads."""
    unread: int
    """So many rows were sent after what it has read; they are kept for it."""
    checkpointGone: bool
    """It is a query whose checkpoint is no longer on this machine, so that it cannot go on."""


@dataclass(frozen=True, slots=True)
class StreamInfo:
    """A stream at one moment. ``holder``: the producer that holds the clock, None if nobody does.

    A producer whose lease has ended is detached here, though it is so in the log only once somebody polls.
    ``rows`` counts all that were ever accepted; ``removed``: how many of them retention has removed;
    ``rejectedRemoved``: how many of the ``rejected`` rows are no longer kept.
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
    """What createStream was told, but for what holds anyway, by the names of its arguments."""

    @property
    def waitsFor(self) -> str:
        """Who holds the clock: the ``holder``; or "nobody", and why the bound stands still all the same."""
        return waits_for(self.path, self.holder, self.producers)


def waits_for(path: str, holder: str | None, producers: Sequence[ProducerDescription | ProducerInfo]) -> str:
    """Whose rows or bounds move the bound of the stream at ``path``; see ``StreamInfo.waitsFor``."""
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
    """A few names, each in quotes, and how many there are more."""
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
    """Creates an empty stream at ``path``, a directory that is not there yet.

    ``schema``: a DDL string, a Spark StructType or a pyarrow schema, with ``rowtime TIMESTAMP NOT NULL``.

    - ``boundsBeforeRows=False``: the stream has no bound until its first row, whatever is promised.
    - ``maxLag``: how far, in rowtime, the slowest producer may hold the fastest back.
    - ``maxAhead``: a row further than that ahead of the wall clock is rejected, and a bound refused.
    - ``retainAge``, ``retainBytes``: rows that were committed longer ago, or lie beyond the newest so many
      bytes, are removed by the processes that commit, now and then; but never what the bound has not
      released, and what a query or a named reader has still to read. None, the default: all is kept.
    - ``retainRejected``: of rejected rows so many bytes are kept, the newest; all are counted.
    - ``existOk``: a stream of the same schema that is there already is left as it is.

    Raises StreamExistsError, SchemaMismatchError, InvalidOptionError, StoreUnavailableError.
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


def _told(settings: StreamSettings) -> dict[str, timedelta | int | bool]:
    told = {name: value for name, value in asdict(settings).items() if value != getattr(StreamSettings(), name)}
    plain = ("boundsBeforeRows", "retainBytes", "retainRejected")
    return {name: value if name in plain else timedelta(microseconds=value) for name, value in told.items()}


def _size(value: Any, name: str) -> int:
    if is_whole(value) and 0 <= value < 1 << 63:
        size: int = value
        return size
    raise InvalidOptionError(
        f"{name} must be a whole number of bytes, not {short_repr(value)}.", value=short_repr(value)
    )


def require_stream(path: str, schema: Any) -> None:
    """StreamNotFoundError where there is no stream at ``path``, SchemaMismatchError where it has another schema."""
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
    """What a stream is and how far it has come; raises StreamNotFoundError, StoreCorruptError."""
    store = open_store(path)
    try:
        (clock, due), head = clock_now(store), store.head()
        infos = producers_now(store, due)
        return StreamInfo(
            path,
            store.schema,
            as_bound(clock.floor),
            tuple(
                ProducerDescription(i.name, i.status, as_bound(i.floor), i.accepted, i.rejected, i.epoch, i.checkpoint)
                for i in infos
            ),
            head.rows,
            sum(i.rejected for i in infos),
            head.seq,
            clock.holder(),
            store.horizon().rows,
            _readers(store),
            store.rejected_removed(),
            _told(store.settings),
        )
    finally:
        store.close()


def _readers(store: Store) -> tuple[ReaderDescription, ...]:
    found, head, horizon, now = store.readers(), store.head(), store.horizon(), store.now()
    unread = [head.rows - store.at(min(max(r.position.seq, horizon.seq), head.seq)).rows for r in found]
    return tuple(
        ReaderDescription(r.name, r.position.seq, from_micros(now - r.unseen), rows, checkpoint_gone(r.name))
        for r, rows in zip(found, unread, strict=True)
    )
