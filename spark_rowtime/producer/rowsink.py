"""RowSink: the interface through which an adapter sends rows and bounds. openSink returns one for a stream."""

import uuid
from collections.abc import Iterable, Mapping
from datetime import timedelta, tzinfo
from typing import Any, Protocol, runtime_checkable

import pyarrow as pa

from spark_rowtime.bounds.bound import RowtimeBound
from spark_rowtime.bounds.disorder import declared
from spark_rowtime.producer.sink import StreamSink
from spark_rowtime.store import open_shared_store
from spark_rowtime.types.arguments import known_keywords, to_count, to_flag, to_name
from spark_rowtime.types.local_time import LocalTime
from spark_rowtime.types.monotone import Amount
from spark_rowtime.types.timestamps import to_interval, to_required_interval


@runtime_checkable
class RowSink(Protocol):
    """The interface that takes rows and rowtime bounds. Adapters call it; consumers may implement it.

    ``openSink`` returns one that writes into a stream. ``RowReader.drainTo`` sends a stream into any object of this
    form: it needs only ``sendRows`` and ``sendRowtimeBound``; ``checkpoint`` and ``flush`` are used if they exist.

    Example:
        >>> import spark_rowtime as rt
        >>> class Printer:
        ...     def sendRows(self, rows):
        ...         print(rows.num_rows, "row(s)")
        ...     def sendRowtimeBound(self, t, strict=False, tz=None):
        ...         print("bound", t.isoformat())
        >>> rt.createStream("memory://docs-rowsink", "rowtime TIMESTAMP NOT NULL, ticker STRING")
        >>> with rt.openSink("memory://docs-rowsink", producer="nyse") as sink:
        ...     isinstance(sink, rt.RowSink)
        ...     sink.sendRow(("2026-01-05T14:30:00Z", "IBM"))
        ...     sink.sendRowtimeBound("2026-01-05T15:00:00Z")
        True
        >>> with rt.openReader("memory://docs-rowsink") as reader:
        ...     reader.drainTo(Printer())
        1 row(s)
        bound 2026-01-05T15:00:00+00:00
    """

    @property
    def checkpoint(self) -> str | None:
        """The last checkpoint stored, where a restarted adapter or a drain resumes; None if there is none."""

    def sendRow(self, row: Mapping[str, Any] | tuple[Any, ...] | list[Any]) -> None:
        """Sends one row.

        Args:
            row: A mapping from column names to values, or a tuple or list of values in schema order. A mapping
                without ``rowtime`` gets the time now.
        """

    def sendRows(self, rows: pa.RecordBatch | pa.Table | Iterable[Any]) -> None:
        """Sends many rows; takes all of them or none.

        Args:
            rows: A pyarrow RecordBatch or Table, or an iterable of rows as for ``sendRow``.
        """

    def sendRowtimeBound(self, t: Any, strict: bool = False, tz: str | tzinfo | None = None) -> None:
        """Promises that every later row is at or after a time.

        Args:
            t: The time, in any form that ``RowtimeBound`` takes, or a RowtimeBound. A drain gives a consumer a
                datetime. Once the stream is complete this is ``RowtimeBound.END.time``, with ``strict=True``: no row
                follows, so a consumer that counts hours stops at the last one with rows.
            strict: If True, every later row is after ``t``, not at it.
            tz: The time zone of a time that has none.
        """

    def getRowtimeBound(self) -> RowtimeBound | None:
        """Returns the producer's own bound in force; None while there is none."""

    def flush(self, checkpoint: str | None = None) -> object:
        """Makes what was sent durable and visible.

        Args:
            checkpoint: A text that is stored in the same commit, such as the feed's offset; None: no checkpoint.
        """

    def close(self) -> None:
        """Closes the sink: the producer leaves the stream and no longer holds its bound back."""


@known_keywords
def openSink(
    path: str,
    *,
    producer: str | None = None,
    rowtime: str | None = None,
    onLate: str = "raise",
    rowsImplyBounds: bool = True,
    lateness: Amount | Mapping[str, Amount] | None = None,
    kSort: int | None = None,
    inOrderPer: str | None = None,
    keyIdle: str | timedelta | None = None,
    maxTrainRows: int = 65536,
    linger: str | timedelta = "100 ms",
    lease: str | timedelta | None = "30 s",
    durability: str = "process",
    tz: str | tzinfo | None = None,
) -> StreamSink:
    """Attaches a producer to the stream at ``path`` and returns the sink that it sends with.

    By default rows must come in the order of their rowtimes, and each row implies a bound at its own rowtime. At most
    one of ``rowsImplyBounds=False``, ``lateness``, ``kSort`` and ``inOrderPer`` may declare another order. An interval
    is a text, such as "100 ms" or "1 hour", or a timedelta.

    Args:
        path: The path of the stream, as for ``createStream``.
        producer: The producer's name. A sink that is opened under the name of an existing producer takes it over from
            its present holder, with its bound, its declared order and its checkpoint. None: a unique name.
        rowtime: The name of the column that fills ``rowtime`` in rows that come without one.
        onLate: What a call with a late row does. "raise": it raises LateRowError and takes nothing. "reject": it
            takes the other rows. Late rows are recorded as rejected in both cases.
        rowsImplyBounds: If False, rows may come in any order at or above the last bound sent, and imply no bound.
        lateness: How far a row may lie below the largest value of earlier calls. An interval is for ``rowtime``. A
            mapping names columns: an interval for a TIMESTAMP, whole days for a DATE, a whole number for an integer
            column. The bound is the largest rowtime less its lateness.
        kSort: A whole number k: each row is at most k positions away from its place in rowtime order. The bound is
            the (k+1)-th largest rowtime.
        inOrderPer: The name of a column, such as "device_id": rows are in order per value of this column, in any order
            across values. Each value has its own bound, and the producer's bound is the weakest of the values known.
            A value is known from the call that sends its first row, or from a bound for it, until ``closeKey``. The
            first row of a value must not be below the producer's bound, so name values that may start behind others
            with ``sendRowtimeBound(t, key=...)`` first. The column is a STRING, BINARY, BOOLEAN, DATE, DECIMAL or
            integer column; NULL is a value.
        keyIdle: With ``inOrderPer``, an interval of rowtime: a value that lies further than this behind the largest
            no longer counts until it sends again. None: every value counts until ``closeKey``.
        maxTrainRows: The largest number of rows in one train, from 1 to 2147483647.
        linger: An interval: how long rows may wait for a commit.
        lease: An interval: how long the stream waits for this producer after its process has gone without closing
            the sink. None: until the producer is back, or is detached by ``rowtime detach``.
        durability: What flushed rows survive: "process", the end of all processes; "power", also a failure of the
            machine.
        tz: The time zone of times without one, in rows and bounds, such as "Europe/Berlin". None: UTC. A row's time
            that the clocks of the zone skipped or showed twice is refused; ``fold=1`` names the second of two. A
            bound at a skipped time is the moment of the change; at a time shown twice it is the first of the two,
            so that it never promises more than was meant.

    Returns:
        The sink. It is a context manager: leaving the block calls ``close``, or ``abandon`` after an error.

    Raises:
        StreamNotFoundError: There is no stream at ``path``.
        StreamCompleteError: The producer, or the whole stream, was declared complete.
        StoreCorruptError: The stream's files do not hold what was written.
        StoreUnavailableError: The stream cannot be reached or written just now.
        InvalidOptionError: An argument has a value that cannot be used, two arguments exclude each other, or the
            producer has declared another order before.

    Example:
        >>> import spark_rowtime as rt
        >>> rt.createStream("memory://docs-orders", "rowtime TIMESTAMP NOT NULL, ticker STRING")
        >>> with rt.openSink("memory://docs-orders", producer="nyse") as sink:
        ...     sink.sendRow({"rowtime": "2026-01-05T14:30:00Z", "ticker": "IBM"})
        ...     sink.sendRowtimeBound("2026-01-05T15:00:00Z")
        >>> rt.describeStream("memory://docs-orders").bound
        RowtimeBound('2026-01-05T15:00:00Z')

        Rows that are up to a minute late:

        >>> with rt.openSink("memory://docs-orders", producer="batched", lateness="1 minute") as sink:
        ...     sink.sendRow(("2026-01-05T15:10:00Z", "IBM"))
        ...     sink.sendRow(("2026-01-05T15:09:30Z", "AAPL"))
        ...     sink.getRowtimeBound()
        RowtimeBound('2026-01-05T15:09:00Z')
    """
    micros = to_required_interval(linger, "linger")
    train_rows = to_count(maxTrainRows, "maxTrainRows", 1, (1 << 31) - 1)
    store = open_shared_store(path, durability)
    try:
        disorder = declared(
            store.schema,
            rowsImplyBounds=to_flag(rowsImplyBounds, "rowsImplyBounds"),
            lateness=lateness,
            kSort=kSort,
            inOrderPer=inOrderPer,
            keyIdle=to_interval(keyIdle, "keyIdle"),
        )
        name = to_name(producer, "producer") if producer is not None else f"producer-{uuid.uuid4().hex[:12]}"
        return StreamSink(
            store,
            name,
            disorder,
            rowtime=rowtime,
            onLate=onLate,
            maxTrainRows=train_rows,
            linger=micros,
            lease=to_interval(lease, "lease"),
            local=None if tz is None else LocalTime(tz),
        )
    except BaseException:
        store.close()
        raise
