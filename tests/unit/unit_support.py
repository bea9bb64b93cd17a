"""What the unit tests share: times of one day, streams with names of their own, a clock by hand."""

import gc
import itertools
import json
import uuid
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from spark_rowtime import createStream
from spark_rowtime.bounds.disorder import declared
from spark_rowtime.producer import unclosed
from spark_rowtime.producer.rowsink import StreamSink
from spark_rowtime.store import open_store
from spark_rowtime.types.timestamps import to_micros

SCHEMA = "rowtime TIMESTAMP NOT NULL, ticker STRING"
MINUTE = 60_000_000
HOUR = 60 * MINUTE


def when(text: str) -> datetime:
    """A time of day on 2006-09-11 UTC: ``"12:05"``, ``"12:04:59.999"``; or a whole date and time."""
    hour, _, rest = text.partition(":")
    moment = text if "T" in text else f"2006-09-11T{hour:>02}:{rest}"
    return datetime.fromisoformat(moment).replace(tzinfo=UTC)


def us(text: str) -> int:
    """``when`` in microseconds."""
    return to_micros(when(text))


def row(text: str, ticker: str = "X") -> dict:
    return {"rowtime": when(text), "ticker": ticker}


def rows(*texts: str) -> list:
    return [row(text) for text in texts]


def clock_times(batch) -> list[str]:
    """The rowtimes of a batch or table as ``when`` reads them: minutes if they are whole, else all digits."""
    return [_clock_time(t) for t in batch.column("rowtime").cast(pa.timestamp("us")).to_pylist()]


def _clock_time(moment: datetime) -> str:
    return f"{moment:%H:%M}" if not moment.second and not moment.microsecond else f"{moment:%H:%M:%S.%f}"


class HandClock:
    """A wall clock that moves when it is told to; microseconds."""

    def __init__(self, text: str = "12:00") -> None:
        self.micros = us(text)

    def __call__(self) -> int:
        return self.micros

    def advance(self, micros: int) -> None:
        self.micros += micros


def new_stream(schema=SCHEMA, **settings) -> str:
    path = f"memory://{uuid.uuid4()}"
    createStream(path, schema, **settings)
    return path


_names = (f"p{n}" for n in itertools.count())


def new_sink(path: str, producer: str | None = None, *, now=None, linger: int = 0, order=None, **options) -> StreamSink:
    """A sink that commits every call at once, unless ``linger`` (microseconds) says otherwise."""
    store = open_store(path)
    disorder = declared(store.schema, **(order or {}))
    now = now or HandClock()
    return StreamSink(store, producer or next(_names), disorder, now=now, linger=linger, **options)


def stream_floor(path: str) -> int | None:
    return open_store(path).head().floor


def accepted(path: str) -> list[str]:
    """The rowtimes of all committed rows, by commit."""
    store = open_store(path)
    everything = store.slices(*whole_log(store))
    return [time for piece in everything for time in clock_times(store.read(piece))]


def whole_log(store):
    from spark_rowtime.store.position import Position

    return Position(0, None, None), Position(store.head().seq, None, None)


def collect_leftovers() -> None:
    """Ends the sinks that earlier tests have left, and waits for that: they warn now, and not later."""
    gc.collect()
    for thread in list(unclosed._ENDING):
        thread.join(240)


def asked(source: Any, about: dict[str, Any], question: str, **arguments: Any) -> Any:
    """What a streaming source answers the extension."""
    [answer] = source.partitions(about, {"ask": question, **arguments})
    return json.loads(answer)
