"""RowSink: how an adapter says rows and bounds, and openSink, which gives it one."""

import uuid
from collections.abc import Iterable, Mapping
from datetime import timedelta, tzinfo
from typing import Any, Protocol, runtime_checkable

import pyarrow as pa

from spark_rowtime.bounds.bound import RowtimeBound
from spark_rowtime.bounds.disorder import declared
from spark_rowtime.errors import InvalidOptionError
from spark_rowtime.producer.sink import StreamSink
from spark_rowtime.store import open_store
from spark_rowtime.types.arguments import is_whole, to_flag, to_text
from spark_rowtime.types.local_time import LocalTime
from spark_rowtime.types.monotone import Amount
from spark_rowtime.types.short_repr import short_repr
from spark_rowtime.types.timestamps import to_interval


@runtime_checkable
class RowSink(Protocol):
    """Takes rows and rowtime bounds. Adapters call it; consumers may implement it.

    ``openSink`` gives one that writes into a stream; ``RowReader.drainTo`` calls any. A consumer
    needs only ``sendRows`` and ``sendRowtimeBound``; the others are used where they exist.
    """

    @property
    def checkpoint(self) -> str | None:
        """The last one stored: where a restarted adapter, or a drain, resumes."""

    def sendRow(self, row: Mapping[str, Any] | tuple[Any, ...] | list[Any]) -> None:
        """One row: a mapping, or a sequence in schema order. A mapping without rowtime gets now."""

    def sendRows(self, rows: pa.RecordBatch | pa.Table | Iterable[Any]) -> None:
        """Many rows: Arrow, or an iterable of rows; all or nothing."""

    def sendRowtimeBound(self, t: Any, strict: bool = False, tz: str | tzinfo | None = None) -> None:
        """Promises that every later row is at or after ``t`` (strict: after it); ``t`` may be a RowtimeBound."""

    def getRowtimeBound(self) -> RowtimeBound | None:
        """The producer's own bound in force; None while there is none."""

    def flush(self, checkpoint: str | None = None) -> None:
        """Durable and visible; ``checkpoint`` is stored in the same commit."""

    def close(self) -> None:
        """The producer leaves and no longer holds the stream back."""


def openSink(
    path: str,
    *,
    producer: str | None = None,
    rowtime: str | None = None,
    onLate: str = "raise",
    rowsImplyBounds: bool = True,
    lateness: Amount | Mapping[str, Amount] | None = None,
    kSort: int | None = None,
    maxTrainRows: int = 65536,
    linger: str | timedelta = "100 ms",
    lease: str | timedelta | None = "30 s",
    durability: str = "process",
    tz: str | tzinfo | None = None,
) -> StreamSink:
    """Attaches a producer to the stream at ``path`` and gives the sink that it sends with.

    - ``producer``: its name; opened again under it, it takes over from whoever has it, with bound,
      disorder and checkpoint. None: a unique name.
    - ``rowtime``: the column that fills ``rowtime``.
    - ``onLate``: "raise" refuses a call with a late row, "reject" takes the rest of it; late rows are
      recorded in both.
    - ``rowsImplyBounds=False``, ``lateness``, ``kSort``: in which order rows may come; see ``disorder``.
    - ``maxTrainRows``, ``linger``: how rows are grouped.
    - ``lease``: how long the stream waits for this producer after its process has gone without closing;
      None: until it is back, or ``rowtime detach``.
    - ``durability``: what was flushed survives the end of all processes ("process"), or also that of
      the machine ("power").
    - ``tz``: the time zone of times without one, in rows and bounds, such as "Europe/Berlin"; None: UTC. A row's
      time that the clocks there left out, or showed twice, is refused (``fold=1`` names the second one). A
      bound is then the moment of the change, or the first of the two, which promises no more than was meant.

    Raises StreamNotFoundError, StoreCorruptError, StoreUnavailableError, InvalidOptionError.
    """
    micros = to_interval(linger, "linger")
    if not is_whole(maxTrainRows) or not 1 <= maxTrainRows < 1 << 31 or micros is None:
        raise InvalidOptionError(
            f"maxTrainRows={short_repr(maxTrainRows)} must be a whole number from 1 to 2147483647, linger a time."
        )
    store = open_store(path, durability)
    try:
        disorder = declared(
            store.schema, rowsImplyBounds=to_flag(rowsImplyBounds, "rowsImplyBounds"), lateness=lateness, kSort=kSort
        )
        name = to_text(producer, "producer") if producer is not None else f"producer-{uuid.uuid4().hex[:12]}"
        return StreamSink(
            store,
            name,
            disorder,
            rowtime=rowtime,
            onLate=onLate,
            maxTrainRows=maxTrainRows,
            linger=micros,
            lease=to_interval(lease, "lease"),
            local=None if tz is None else LocalTime(tz),
        )
    except BaseException:
        store.close()
        raise
