"""Input: a stream that a test writes, with its producers and its clock."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from spark_rowtime.bounds.disorder import declared
from spark_rowtime.errors import InvalidOptionError
from spark_rowtime.producer.sink import StreamSink
from spark_rowtime.store import open_store
from spark_rowtime.stream import createStream
from spark_rowtime.stream_description import describeStream
from spark_rowtime.testing.clock import TestClock
from spark_rowtime.testing.difference import show
from spark_rowtime.testing.times import Times
from spark_rowtime.types.schema import stream_schema
from spark_rowtime.types.timestamps import to_required_interval

LINGER_MICROS = 10**15
"""A linger longer than any test: rows become visible with ``flush`` alone."""


class Input:
    """A stream at ``path``, whose producers send what the test tells them, each step in one commit."""

    def __init__(
        self, path: str, schema: Any, producers: Sequence[str], settings: Mapping[str, Any], times: Times, now: Any
    ) -> None:
        createStream(path, schema, **{"maxAhead": None, **settings})
        self.path, self._schema, self._times = path, stream_schema(schema), times
        self._clock = TestClock(now)
        self._sinks = {name: self._open(name) for name in producers}

    def _open(self, producer: str) -> StreamSink:
        store = open_store(self.path)
        self._clock.drive(store)
        disorder = declared(store.schema, rowsImplyBounds=False)
        return StreamSink(
            store, producer, disorder, onLate="reject", linger=LINGER_MICROS, lease=None, now=self._clock.now
        )

    def send(self, rows: Sequence[Any], producer: str | None) -> None:
        """Sends rows; AssertionError if one of them is late."""
        late = self._rejected_of(rows, producer)
        if late:
            raise AssertionError(
                f"rows: {late} of {len(rows)} rows are late; send such rows with late().\n{self.report()}"
            )

    def send_late(self, rows: Sequence[Any], producer: str | None) -> None:
        """Sends rows; AssertionError if one of them is accepted."""
        late = self._rejected_of(rows, producer)
        if late < len(rows):
            texts = "\n".join(f"  {show(tuple(row.values()) if isinstance(row, Mapping) else row)}" for row in rows)
            raise AssertionError(
                f"late: {len(rows) - late} of {len(rows)} rows were accepted:\n{texts}\n{self.report()}"
            )

    def _rejected_of(self, rows: Sequence[Any], producer: str | None) -> int:
        sink, before = self._sink(producer), describeStream(self.path).rejected
        sink.sendRows([self._times.row(row, self._schema) for row in rows])
        sink.flush()
        return describeStream(self.path).rejected - before

    def promise(self, time: Any, strict: bool, producer: str | None) -> None:
        """Sends a bound."""
        sink = self._sink(producer)
        sink.sendRowtimeBound(self._times.of(time), strict=strict)
        sink.flush()

    def advance(self, interval: str | timedelta) -> None:
        """Moves the clock, and logs what is due then."""
        self._clock.advance(to_required_interval(interval, "interval"))
        with open_store(self.path) as store:
            self._clock.drive(store)
            store.expire()

    def report(self) -> str:
        """The state of the stream in one line."""
        info = describeStream(self.path)
        return (
            f"{self.path}: {info.rows} rows, {info.rejected} rejected, "
            f"bound: {info.bound or 'none'}, waits for {info.waitsFor}"
        )

    def close(self) -> None:
        """Closes the sinks without a further commit."""
        for sink in self._sinks.values():
            sink.abandon()

    def _sink(self, producer: str | None) -> StreamSink:
        name = next(iter(self._sinks)) if producer is None else producer
        if name not in self._sinks:
            raise InvalidOptionError(
                f"There is no producer {name!r}; name it in RowtimeTestStream(..., producers=[...]). "
                f"There are {', '.join(self._sinks)}.",
                producer=name,
            )
        return self._sinks[name]
