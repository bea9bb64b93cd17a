"""Sinks: opens several producers of one stream, and ends them together."""

import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Self

from spark_rowtime.errors import InvalidOptionError, SinkClosedError
from spark_rowtime.producer.rowsink import openSink
from spark_rowtime.producer.sink import StreamSink


class Sinks:
    """The producers that one adapter opens on one stream; ``openSinks`` returns it. It is thread-safe.

    Each producer is a sink of its own, as from ``openSink``. It is a context manager: leaving the block closes all
    sinks that are still open, or abandons them after an error.

    Example:
        >>> import spark_rowtime as rt
        >>> rt.createStream("memory://docs-sinks", "rowtime TIMESTAMP NOT NULL, units INT")
        >>> with rt.openSinks("memory://docs-sinks", lease="1 minute") as sinks:
        ...     berlin, oslo = sinks.open("Berlin"), sinks.open("Oslo", lateness="1 hour")
        ...     berlin.sendRow(("2026-01-05T14:30:00Z", 1))
        ...     _ = berlin.flush(checkpoint="1")
        ...     oslo.close()
        ...     sinks.producers
        ('Berlin',)
    """

    def __init__(self, path: str, options: Mapping[str, Any], opened: Callable[[str], object] = lambda _: None) -> None:
        """``options`` are keywords for ``openSink``. ``opened`` is called with the name of each opened producer."""
        self._path, self._options, self._opened = path, dict(options), opened
        self._sinks: dict[str, StreamSink] = {}
        self._ended = False
        self._lock = threading.Lock()

    @property
    def path(self) -> str:
        """The path of the stream."""
        return self._path

    @property
    def producers(self) -> tuple[str, ...]:
        """The names of the producers that are open, in the order in which they were opened."""
        return tuple(name for name, sink in list(self._sinks.items()) if not sink.closed)

    def open(self, producer: str, **options: Any) -> StreamSink:
        """Attaches a producer to the stream, or takes it over, and returns its sink.

        Args:
            producer: The stable name of the producer.
            options: Keywords for ``openSink``. They override those of ``openSinks`` and of the adapter's
                ``sinkOptions``.

        Returns:
            The sink. Its ``checkpoint`` is where this producer resumes.

        Raises:
            InvalidOptionError: The producer is open here already, or an option has a value that cannot be used.
            SinkClosedError: The block has been left, so that nobody would close the sink.
            RowtimeError: The errors of ``openSink``.
        """
        with self._lock:
            if self._ended:
                raise SinkClosedError(
                    f"Producer {producer!r} of {self._path} cannot be opened: the block of the sinks has been left. "
                    "Wait within the block, or within runProducers, for the threads that open producers.",
                    path=self._path,
                )
            if producer in self.producers:
                raise InvalidOptionError(
                    f"Producer {producer!r} is open already: use the sink that the first open({producer!r}) returned, "
                    "or close it first.",
                    producer=producer,
                )
            sink = openSink(self._path, producer=producer, **{**self._options, **options})
            self._sinks.pop(producer, None)
            self._sinks[producer] = sink
        self._opened(producer)
        return sink

    def __enter__(self) -> Self:
        self._ended = False
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        ends = ExitStack()
        with self._lock:
            self._ended = True
        for name in reversed(self.producers):
            ends.push(self._sinks[name])
        ends.__exit__(kind, error, trace)


def openSinks(path: str, **options: Any) -> Sinks:
    """Returns an object that opens several producers of the stream at ``path``, such as those of a ``MultiAdapter``.

    Args:
        path: The path of the stream, as for ``createStream``.
        options: Keywords for ``openSink``, for all producers.

    Returns:
        The object; no producer is attached yet.

    Example:
        >>> import spark_rowtime as rt
        >>> rt.createStream("memory://docs-opensinks", "rowtime TIMESTAMP NOT NULL, units INT")
        >>> with rt.openSinks("memory://docs-opensinks") as sinks:
        ...     for shop in ("Berlin", "Oslo"):
        ...         sinks.open(shop).sendRow(("2026-01-05T14:30:00Z", 1))
        >>> rt.describeStream("memory://docs-opensinks").rows
        2
    """
    return Sinks(path, options)
