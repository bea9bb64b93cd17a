"""Helpers for tests that write, query and read real streams."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

import spark_rowtime as rt
from tests.sparksession import start

DAY = "2006-09-11"
QUIET = "1 hour"
"""A linger longer than any test. Rows become visible only by flush, so the test determines the trains."""


def at(clock: str) -> str:
    """``"9:58"`` or ``"10:03:30"`` of the examples' day, ``"2006-09-12 9:00"`` of another one, as ISO 8601."""
    day, _, time = clock.rpartition(" ")
    hours, minutes, *seconds = time.split(":")
    return f"{day or DAY}T{int(hours):02d}:{minutes}:{seconds[0] if seconds else '00'}Z"


def bound(clock: str, strict: bool = False) -> rt.RowtimeBound:
    """The bound at a time of the examples' day."""
    return rt.RowtimeBound(at(clock), strict)


def send(sink: Any, *rows: tuple[Any, ...], promise: str | None = None, strict: bool = False) -> None:
    """Sends rows whose first value is a clock time, and then a promise, all in one commit."""
    if rows:
        sink.sendRows([(at(row[0]), *row[1:]) for row in rows])
    if promise:
        sink.sendRowtimeBound(at(promise), strict=strict)
    sink.flush()


def opened(path: Path | str, producer: str | None = None, **options: Any) -> Any:
    """A sink that commits only when the test calls flush, and whose lease does not end while a machine stands still."""
    return rt.openSink(str(path), producer=producer, linger=QUIET, **{"lease": "1 hour", **options})


def clock_of(time: datetime) -> str:
    """A rowtime as the examples write it, the reverse of ``at``. Law: different times have different texts."""
    utc = time if time.tzinfo is None else time.astimezone(UTC)
    clock = f"{utc:%H:%M:%S.%f}".rstrip("0").rstrip(".").removesuffix(":00")
    return clock if f"{utc:%Y-%m-%d}" == DAY else f"{utc:%Y-%m-%d} {clock}"


def drained(reader: rt.RowReader) -> list[tuple[Any, ...]]:
    """All rows that the reader returns now, each with its rowtime, as a clock time, first."""
    rows = [row for train in reader for row in train.rows.to_pylist()]
    return [(clock_of(row.pop("rowtime")), *row.values()) for row in rows]


class Pipe:
    """Streams in a folder, or in the ``database`` of that URL, and a query from them into the stream ``out``."""

    def __init__(self, spark: SparkSession, folder: Path, database: str | None = None) -> None:
        self.spark, self.folder, self.query = spark, folder, None
        self._database = database
        self._reader: rt.RowReader | None = None

    def path(self, name: str) -> str:
        """The path of the stream of that name."""
        if self._database is not None:
            return f"{self._database}/{self.folder.name}/{name}"
        return str(self.folder / f"{name}.rowtime")

    def create(self, name: str, columns: str, **settings: Any) -> str:
        """Creates a stream with ``rowtime`` and these columns; returns its path."""
        rt.createStream(self.path(name), f"rowtime TIMESTAMP NOT NULL, {columns}", **settings)
        return self.path(name)

    def read(self, name: str, **options: Any) -> DataFrame:
        """The stream of that name as a streaming DataFrame."""
        reader = self.spark.readStream.format("rowtime")
        for key, value in options.items():
            reader = reader.option(key, value)
        return reader.load(self.path(name))

    def run(self, frame: DataFrame, **options: str) -> StreamingQuery:
        """Starts a query that writes the frame into ``out``. A second start continues from the checkpoint."""
        self.query = start(frame, self.path("out"), self.folder / "checkpoint", **options)
        return self.query

    def step(self) -> list[tuple[Any, ...]]:
        """Waits until the query has processed all available data; returns the new rows of a reader of ``out``."""
        assert self.query is not None
        self.query.processAllAvailable()
        if self._reader is None:
            self._reader = rt.openReader(self.path("out"))
        return drained(self._reader)

    @property
    def bound(self) -> rt.RowtimeBound | None:
        """The bound on ``out`` that its reader has received."""
        assert self._reader is not None
        return self._reader.getRowtimeBound()

    def stop(self) -> None:
        """Ends the query and the reader."""
        if self.query is not None:
            self.query.stop()
        if self._reader is not None:
            self._reader.close()
