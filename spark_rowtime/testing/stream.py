"""RowtimeTestStream: drives a streaming query of one's own step by step, and compares what comes out."""

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Self

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from spark_rowtime.bounds.bound import RowtimeBound
from spark_rowtime.errors import InvalidOptionError
from spark_rowtime.testing.difference import difference
from spark_rowtime.testing.input import Input
from spark_rowtime.testing.output import Output, Row
from spark_rowtime.testing.times import Times


class RowtimeTestStream:
    """A streaming query under test: its input streams, the query, and a reader of what it writes.

    A step is ``rows``, ``bound``, ``late``, ``restart`` or ``advanceClock``; an expectation is ``expectRows``,
    ``expectNothing``, ``expectBound`` or ``expectSameAsBatch``. Each returns the test itself, so steps may be chained.
    Rows imply no bounds: windows close with ``bound`` alone. An expectation waits until the query has processed
    everything that was sent. If it fails, the AssertionError shows the rows that differ, the state of each input and
    whom it waits for.

    The idea is that of Apache Beam's TestStream.

    Args:
        pipeline: The function under test. It takes the input as a DataFrame (where ``schema`` is a mapping, one for
            each name, as keywords), and returns the DataFrame that the query writes, which has a column ``rowtime``.
        schema: The schema of the input, as for ``createStream``; or a mapping from names to the schemas of several.
        spark: The session, made by ``configure``; see the fixture ``rowtime_spark``.
        folder: A folder that is empty, such as pytest's ``tmp_path``, for streams and checkpoint.
        day: A date, such as "2026-01-05", so that a time may be given as "14:30" or "14:30:15" of that day in UTC.
            None: times are given in the forms that ``RowtimeBound`` takes.
        producers: The names of the producers of each input. They are attached from the start, and each has to
            promise a time before the stream does.
        settings: Keywords for ``createStream``, such as ``{"idleTimeout": "5 minutes"}``, for each input. ``maxAhead``
            is None unless it is given, since the times of a test may be any.
        readOptions: Options of the source, such as ``{"hold": "1 minute"}``, for each input.
        now: The wall clock of the inputs at the start, as a time; it moves with ``advanceClock`` alone. Rows without
            ``rowtime`` get it, and ``maxAhead`` counts from it. None: the machine's clock at the start.

    Raises:
        SchemaMismatchError: The schema of an input, or of what the pipeline returns, cannot be that of a stream.
        StreamExistsError: The folder holds the streams of another test.

    Example:
        >>> import spark_rowtime as rt
        >>> from pyspark.sql import SparkSession, functions as F
        >>> from spark_rowtime.testing import RowtimeTestStream
        >>> def hourly(orders):
        ...     hours = orders.groupBy(F.window("rowtime", "1 hour")).agg(F.sum("units").alias("units"))
        ...     return hours.select(F.col("window.end").alias("rowtime"), "units")
        >>> def test_an_hour_is_complete_with_its_bound(rowtime_spark, tmp_path):
        ...     schema = "rowtime TIMESTAMP NOT NULL, units INT"
        ...     with RowtimeTestStream(hourly, schema, spark=rowtime_spark, folder=tmp_path, day="2026-01-05") as test:
        ...         test.rows(("09:40", 3), ("09:10", 4)).expectNothing()
        ...         test.bound("10:00").expectRows(("10:00", 7)).expectBound("10:00", strict=True)
        ...         test.late(("09:30", 1)).expectNothing()
    """

    def __init__(
        self,
        pipeline: Callable[..., DataFrame],
        schema: Any,
        *,
        spark: SparkSession,
        folder: Path | str,
        day: str | None = None,
        producers: Sequence[str] = ("test",),
        settings: Mapping[str, Any] | None = None,
        readOptions: Mapping[str, str] | None = None,
        now: Any = None,
    ) -> None:
        self._pipeline, self._spark, self._folder = pipeline, spark, Path(folder)
        self._times, self._read_options = Times(day), dict(readOptions or {})
        self._named = isinstance(schema, Mapping)
        schemas = schema if self._named else {"input": schema}
        self._inputs = {
            name: Input(self._path(name), columns, producers, settings or {}, self._times, now)
            for name, columns in schemas.items()
        }
        self._output = Output(lambda: self._pipe(spark.readStream), self._folder, self._times)

    @property
    def query(self) -> StreamingQuery:
        """The running query, such as for its ``lastProgress``."""
        return self._output.query

    def rows(self, *rows: Any, stream: str | None = None, producer: str | None = None) -> Self:
        """Sends rows in one commit, none of which may be late.

        Args:
            rows: Each a tuple or list in schema order or a mapping, as for ``sendRow``.
            stream: The name of the input; it may be left out where there is one.
            producer: The name of the producer; None: the first one.

        Raises:
            AssertionError: A row is late. ``late`` sends such rows.
        """
        self._input(stream).send(rows, producer)
        return self

    def bound(self, time: Any, *, strict: bool = False, stream: str | None = None, producer: str | None = None) -> Self:
        """Promises that every later row of a producer is at or after ``time``; with ``strict``, after it.

        Args:
            time: The time.
            strict: If True, no later row is at ``time`` either.
            stream: The name of the input; it may be left out where there is one.
            producer: The name of the producer; None: the first one.
        """
        self._input(stream).promise(time, strict, producer)
        return self

    def late(self, *rows: Any, stream: str | None = None, producer: str | None = None) -> Self:
        """Sends rows each of which the stream must reject because it is late.

        Args:
            rows: The rows, as for ``rows``.
            stream: The name of the input; it may be left out where there is one.
            producer: The name of the producer; None: the first one.

        Raises:
            AssertionError: A row was accepted.
        """
        self._input(stream).send_late(rows, producer)
        return self

    def advanceClock(self, interval: str | timedelta) -> Self:
        """Lets an interval of wall clock time pass in all inputs, without waiting for it.

        A producer that has been silent for longer than the stream's ``idleTimeout`` no longer counts. The producers
        of a test keep their leases.

        Args:
            interval: The interval, such as "5 minutes" or a timedelta.
        """
        for source in self._inputs.values():
            source.advance(interval)
        return self

    def restart(self) -> Self:
        """Stops the query and starts it again from its checkpoint, with a new call of the pipeline function.

        What was sent before is processed first only if an expectation came before.
        """
        self._output.restart()
        return self

    def expectRows(self, *rows: Any) -> Self:
        """Expects that the query has written and released these rows, in any order, since the last expectation of rows.

        A row is released once the bound on the output has passed its rowtime. A filter or a join may write a row
        long before that.

        Args:
            rows: Each a tuple or list in the order of the output's columns, or a mapping.

        Raises:
            AssertionError: Other rows came.
            StreamingQueryException: The query failed.
        """
        return self._compare("expectRows", self._output.as_rows(rows), self._output.new_rows())

    def expectNothing(self) -> Self:
        """Expects that the query has released no rows since the last expectation of rows; see ``expectRows``.

        Raises:
            AssertionError: Rows came.
            StreamingQueryException: The query failed.
        """
        return self._compare("expectNothing", [], self._output.new_rows())

    def expectBound(self, time: Any, *, strict: bool = False) -> Self:
        """Expects the bound on what the query has still to write.

        Args:
            time: The time of the bound; None: there is no bound yet.
            strict: Whether rows at ``time`` itself can no longer come.

        Raises:
            AssertionError: The bound is another one.
            StreamingQueryException: The query failed.
        """
        expected = None if time is None else RowtimeBound(self._times.of(time), strict)
        found = self._output.bound()
        if found != expected:
            raise self._failure(f"expectBound: expected {expected or 'no bound'}; found {found or 'no bound'}", [])
        return self

    def expectSameAsBatch(self) -> Self:
        """Expects that all rows written so far are those of the same pipeline over the input as a batch.

        This holds once bounds have completed every window that has rows. A bound never changes a result, only when it
        appears.

        Raises:
            AssertionError: The results differ.
            StreamingQueryException: The query failed.
        """
        batch = self._output.rows_of(self._pipe(self._spark.read))
        return self._compare("expectSameAsBatch", batch, self._output.all_rows())

    def close(self) -> None:
        """Stops the query and closes the streams."""
        self._output.close()
        for source in self._inputs.values():
            source.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _path(self, name: str) -> str:
        return str(self._folder / "inputs" / f"{name}.rowtime")

    def _pipe(self, read: Any) -> DataFrame:
        """The pipeline over all inputs, each read by ``spark.readStream`` or ``spark.read``."""
        frames = {name: self._frame(read, self._path(name)) for name in self._inputs}
        return self._pipeline(**frames) if self._named else self._pipeline(*frames.values())

    def _frame(self, read: Any, path: str) -> DataFrame:
        frame: DataFrame = read.format("rowtime").options(**self._read_options).load(path)
        return frame

    def _input(self, name: str | None) -> Input:
        if name is None and len(self._inputs) == 1:
            return next(iter(self._inputs.values()))
        if name not in self._inputs:
            raise InvalidOptionError(
                f"stream={name!r} names none of the inputs {', '.join(map(repr, self._inputs))}.", stream=name
            )
        return self._inputs[name]

    def _compare(self, step: str, expected: list[Row], found: list[Row]) -> Self:
        lines = difference(expected, found)
        if lines:
            raise self._failure(f"{step}: the query wrote other rows (- missing, + not expected)", lines)
        return self

    def _failure(self, what: str, lines: list[str]) -> AssertionError:
        reports = [source.report() for source in self._inputs.values()]
        return AssertionError("\n".join([what, *lines, *self._output.waiting(), *reports]))
