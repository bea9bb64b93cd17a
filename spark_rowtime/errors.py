"""Every error that spark-rowtime raises, in one tree.

    RowtimeError
    +-- LateRowError            a row below the bound in force
    +-- BoundRegressionError    a bound set backwards
    +-- SchemaMismatchError     rows, schema or rowtime of the wrong form
    +-- StreamNotFoundError     nothing at that path
    +-- StreamExistsError       something is there already
    +-- SinkClosedError         a call on a closed sink
    +-- ProducerFencedError     another process took this producer over
    +-- StoreCorruptError       what is on disk cannot be what was written
    +-- StoreUnavailableError   locked, full or unreachable for now
    +-- DataLostError           rows that a position still needs are gone
    +-- UnknownOptionError      no such option; names the nearest
    +-- InvalidOptionError      an option's value is of no use
    +-- DisorderedOutputError   a sink's row below the bound that it published
    +-- ShimMissingError        Spark runs without the extension
    +-- ShimMismatchError       Spark's internals are not as the extension expects
    +-- ExtraNotInstalledError  a pip extra is needed

One warning is beside it: SinkNotClosedWarning, a sink that nobody closed.

Each message says what happened, with the values, and what to do about it.
Each error pickles, so that it crosses Spark's process boundaries whole.
"""

from typing import Any


class RowtimeError(Exception):
    """The root. ``values`` holds what the message speaks of, by name."""

    def __init__(self, message: str, **values: Any) -> None:
        super().__init__(message)
        self.values = values

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), str(self), self.values)


def _rebuild(kind: type[RowtimeError], message: str, values: dict[str, Any]) -> RowtimeError:
    return kind(message, **values)


class LateRowError(RowtimeError):
    """A row lies below the bound in force; it was recorded as rejected."""


class BoundRegressionError(RowtimeError):
    """A bound is weaker than what this sink itself has promised."""


class SchemaMismatchError(RowtimeError):
    """A row, a schema or a rowtime does not fit the stream."""


class StreamNotFoundError(RowtimeError):
    """There is no stream at that path."""


class StreamExistsError(RowtimeError):
    """There is a stream, or something else, at that path already."""


class SinkClosedError(RowtimeError):
    """The sink was closed, or its process forked."""


class ProducerFencedError(RowtimeError):
    """Another holder opened the same producer; nothing of this call has landed."""


class StoreCorruptError(RowtimeError):
    """Bytes on disk fail their check."""


class StoreUnavailableError(RowtimeError):
    """The store cannot be reached or written just now; nothing of this call has landed."""


class DataLostError(RowtimeError):
    """Rows that were asked for are no longer in the stream."""


class UnknownOptionError(RowtimeError):
    """An option that does not exist."""


class InvalidOptionError(RowtimeError):
    """An option or argument whose value cannot be used."""


class DisorderedOutputError(RowtimeError):
    """A query's output has a row below the bound that its sink has published."""


class ShimMissingError(RowtimeError):
    """The Spark session does not have the extension that carries bounds."""


class ShimMismatchError(RowtimeError):
    """The extension met a Spark that it does not know."""


class ExtraNotInstalledError(RowtimeError):
    """An optional dependency is not installed."""


class SinkNotClosedWarning(RuntimeWarning):
    """A sink was garbage collected, or its process exited, and nobody had closed it. Shown unless it is filtered."""
