"""Every error that spark-rowtime raises, in one tree.

    RowtimeError
    +-- LateRowError            a row below the bound in force
    +-- BoundRegressionError    a bound set backwards
    +-- SchemaMismatchError     rows, schema or rowtime of the wrong form
    +-- StreamNotFoundError     nothing at that path
    +-- StreamExistsError       something is there already
    +-- StreamBusyError         a stream is in use and cannot be renamed or deleted
    +-- SinkClosedError         a call on a closed sink
    +-- ProducerFencedError     another process took this producer over
    +-- StoreCorruptError       the bytes on disk are not those that were written
    +-- StoreUnavailableError   locked, full or unreachable for now
    +-- DataLostError           rows that a position still needs were removed
    +-- UnknownOptionError      no such option; the message names the nearest
    +-- InvalidOptionError      an option's value cannot be used
    +-- DisorderedOutputError   a row of a query's output is below the bound that its sink published
    +-- ShimMissingError        Spark runs without the extension
    +-- ShimMismatchError       Spark's internals are not as the extension expects
    +-- ExtraNotInstalledError  a pip extra is needed

There is one warning besides: SinkNotClosedWarning, for a sink that was not closed.

Each message states what happened, with the values, and what to do about it.
Each error can be pickled, so that it crosses Spark's process boundaries with all its values.
"""

from typing import Any


class RowtimeError(Exception):
    """The base class of all errors of spark-rowtime.

    Args:
        message: The text of the error.
        values: The values that the message mentions, by name.

    Attributes:
        values: The same values, as a dict.

    Example:
        >>> import spark_rowtime as rt
        >>> try:
        ...     rt.openReader("memory://docs-missing")
        ... except rt.RowtimeError as error:
        ...     error.values
        {'path': 'memory://docs-missing'}
    """

    def __init__(self, message: str, **values: Any) -> None:
        super().__init__(message)
        self.values = values

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), str(self), self.values)


def _rebuild(kind: type[RowtimeError], message: str, values: dict[str, Any]) -> RowtimeError:
    return kind(message, **values)


class LateRowError(RowtimeError):
    """A row lies below the bound in force, or too far ahead of the wall clock. It was recorded as rejected.

    Sinks raise it under ``onLate="raise"``. ``values``: producer, rows (the number of rejected rows), and bound (the
    limit that the first of them fell below or exceeded, in microseconds since the epoch).

    Example:
        >>> import spark_rowtime as rt
        >>> rt.createStream("memory://docs-late", "rowtime TIMESTAMP NOT NULL, ticker STRING")
        >>> sink = rt.openSink("memory://docs-late", producer="nyse")
        >>> sink.sendRowtimeBound("2026-01-05T15:00:00Z")
        >>> sink.sendRow(("2026-01-05T14:30:00Z", "IBM"))  # doctest: +ELLIPSIS
        Traceback (most recent call last):
            ...
        spark_rowtime.errors.LateRowError: 1 late row(s) of producer 'nyse' at 2026-01-05T14:30:00Z, below the bound ...
        >>> sink.close()
    """


class BoundRegressionError(RowtimeError):
    """A bound is weaker than what this sink itself has promised, or implied by rows that it sent in order.

    ``values``: bound (the refused RowtimeBound) and said (the floor that was promised, in microseconds since the
    epoch).

    Example:
        >>> import spark_rowtime as rt
        >>> rt.createStream("memory://docs-regression", "rowtime TIMESTAMP NOT NULL, ticker STRING")
        >>> sink = rt.openSink("memory://docs-regression", producer="nyse")
        >>> sink.sendRowtimeBound("2026-01-05T15:00:00Z")
        >>> sink.sendRowtimeBound("2026-01-05T14:00:00Z")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
            ...
        spark_rowtime.errors.BoundRegressionError: The bound 'every later row is at or after ...' is weaker ...
        >>> sink.close()
    """


class SchemaMismatchError(RowtimeError):
    """A row, a schema or a rowtime does not fit the stream.

    Example:
        >>> import spark_rowtime as rt
        >>> rt.createStream("memory://docs-mismatch", "ticker STRING")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
            ...
        spark_rowtime.errors.SchemaMismatchError: A stream needs a column 'rowtime TIMESTAMP NOT NULL', but ...
    """


class StreamNotFoundError(RowtimeError):
    """There is no stream at that path.

    Example:
        >>> import spark_rowtime as rt
        >>> rt.describeStream("memory://docs-nowhere")
        Traceback (most recent call last):
            ...
        spark_rowtime.errors.StreamNotFoundError: There is no stream at memory://docs-nowhere; createStream makes one.
    """


class StreamExistsError(RowtimeError):
    """There is a stream, or something else, at that path already.

    Example:
        >>> import spark_rowtime as rt
        >>> rt.createStream("memory://docs-exists", "rowtime TIMESTAMP NOT NULL, ticker STRING")
        >>> rt.createStream("memory://docs-exists", "rowtime TIMESTAMP NOT NULL, ticker STRING")
        Traceback (most recent call last):
            ...
        spark_rowtime.errors.StreamExistsError: There is a stream at memory://docs-exists already.
    """


class StreamBusyError(RowtimeError):
    """A stream is in use, or still needed, and so was not renamed or deleted. The message says by whom.

    Example:
        >>> import spark_rowtime as rt
        >>> rt.createStream("memory://docs-busy", "rowtime TIMESTAMP NOT NULL, ticker STRING")
        >>> sink = rt.openSink("memory://docs-busy", producer="nyse")
        >>> rt.deleteStream("memory://docs-busy")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
            ...
        spark_rowtime.errors.StreamBusyError: memory://docs-busy is still used: producer 'nyse' is attached. ...
        >>> sink.close()
        >>> rt.deleteStream("memory://docs-busy")
    """


class SinkClosedError(RowtimeError):
    """The sink was closed, a call of it was interrupted, or its process was forked.

    Example:
        >>> import spark_rowtime as rt
        >>> rt.createStream("memory://docs-closed", "rowtime TIMESTAMP NOT NULL, ticker STRING")
        >>> sink = rt.openSink("memory://docs-closed", producer="nyse")
        >>> sink.close()
        >>> sink.flush()  # doctest: +ELLIPSIS
        Traceback (most recent call last):
            ...
        spark_rowtime.errors.SinkClosedError: The sink of producer 'nyse' is closed. ...
    """


class ProducerFencedError(RowtimeError):
    """Another sink opened the same producer and took it over. Nothing of the call was committed.

    Example:
        >>> import spark_rowtime as rt
        >>> rt.createStream("memory://docs-fenced", "rowtime TIMESTAMP NOT NULL, ticker STRING")
        >>> old = rt.openSink("memory://docs-fenced", producer="nyse")
        >>> new = rt.openSink("memory://docs-fenced", producer="nyse")
        >>> old.flush(checkpoint="offset 1")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
            ...
        spark_rowtime.errors.ProducerFencedError: Producer 'nyse' was taken over: ...
        >>> new.close()
        >>> old.abandon()
    """


class StoreCorruptError(RowtimeError):
    """Bytes on disk fail their check: the stream's files do not hold what was written.

    ``rowtime check STREAM`` reports what is still readable.
    """


class StoreUnavailableError(RowtimeError):
    """The store is locked, full or unreachable just now. Nothing of the call was committed.

    A sink keeps what it took: call ``flush`` again once the cause is gone.
    """


class DataLostError(RowtimeError):
    """Rows that a reader or a query still needs are no longer in the stream.

    The cause is retention, a deleted stream, or an older copy of it. The message says what is left.
    """


class UnknownOptionError(RowtimeError):
    """An option does not exist. If another one has a similar name, the message names it."""


class InvalidOptionError(RowtimeError):
    """An option or an argument has a value that cannot be used.

    Example:
        >>> import spark_rowtime as rt
        >>> rt.RowtimeBound("yesterday")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
            ...
        spark_rowtime.errors.InvalidOptionError: 'yesterday' is no time: ...
    """


class DisorderedOutputError(RowtimeError):
    """A query's output has a row below the bound that its sink has published.

    ``option("onDisorder", "reject")`` records such rows as rejected instead.
    """


class ShimMissingError(RowtimeError):
    """The Spark session does not have the extension that carries bounds.

    ``rt.configure`` adds it to a session's builder, before Spark starts.
    """


class ShimMismatchError(RowtimeError):
    """Spark's internals are not as the extension expects. Use a supported version of PySpark."""


class ExtraNotInstalledError(RowtimeError):
    """An optional dependency is not installed; the message names the pip extra."""


class SinkNotClosedWarning(RuntimeWarning):
    """A sink was garbage collected, or its process exited, before the sink was closed.

    Python shows it by default, as a RuntimeWarning.
    """
