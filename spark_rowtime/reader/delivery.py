"""Delivery: sends one train of a drain into a sink, call by call."""

from collections import deque
from collections.abc import Callable
from typing import Any

from spark_rowtime.bounds.bound import RowtimeBound
from spark_rowtime.bounds.train import Train
from spark_rowtime.errors import InvalidOptionError, RowtimeError, SinkClosedError
from spark_rowtime.producer.sink import StreamSink

ROWS = "rows"


class Delivery:
    """The calls that send one train into a sink, and the position after the train.

    Law (*once*): ``finish`` makes each call once. If a call raised, the next ``finish`` repeats that call, provided
    that the sink has certainly taken nothing of it; otherwise it raises SinkClosedError.
    """

    def __init__(self, train: Train, position: str, flushes: bool) -> None:
        """``flushes``: whether the sink has ``flush``."""
        self.position = position
        self._calls: deque[tuple[str, Callable[[Any], object]]] = deque()
        self._unknown = False
        if train.rows.num_rows:
            self._calls.append((ROWS, lambda sink: sink.sendRows(train.rows)))
        if (bound := train.bound) is not None:
            self._calls.append(("a bound", lambda sink: send_bound(sink, bound)))
        if flushes:
            self._calls.append(("flush", lambda sink: sink.flush(checkpoint=position)))

    def finish(self, sink: Any) -> None:
        """Makes the remaining calls; ``sink`` must be the same each time."""
        if self._unknown:
            raise _unknown(sink)
        while self._calls:
            what, call = self._calls[0]
            try:
                call(sink)
            except BaseException as error:
                self._unknown = not _took_nothing(sink, what, error)
                raise
            self._calls.popleft()


def require_consumer(sink: Any) -> None:
    """Raises InvalidOptionError unless ``sink`` is an object with ``sendRows`` and ``sendRowtimeBound``."""
    name = sink.__name__ if isinstance(sink, type) else type(sink).__name__
    lacks = [method for method in ("sendRows", "sendRowtimeBound") if not callable(getattr(sink, method, None))]
    if lacks:
        raise InvalidOptionError(
            f"{name} cannot be drained into: it has no {' and no '.join(lacks)}. A sink needs sendRows(rows) and "
            "sendRowtimeBound(time, strict), and can have flush(checkpoint) and checkpoint.",
            missing=lacks,
        )
    if isinstance(sink, type):
        raise InvalidOptionError(f"drainTo takes a sink, not the class {name}. Give an instance, {name}(...).")


def gathers(sink: Any) -> bool:
    """Whether the sink gathers several trains into one commit."""
    return callable(getattr(sink, "commitDue", None)) and callable(getattr(sink, "commit", None))


def resumes(sink: Any) -> bool:
    """Whether the sink tells where a drain goes on, beyond what it has committed."""
    return callable(getattr(sink, "resume", None))


def send_bound(sink: Any, bound: RowtimeBound) -> None:
    """Sends a bound as a time, which every sink takes; the end of time as itself, where the sink is one of a stream.

    Another sink gets the end of time as the last legal time, strict.
    """
    if bound.isEnd and isinstance(sink, StreamSink):
        sink.sendRowtimeBound(bound)
    else:
        sink.sendRowtimeBound(bound.time, strict=bound.strict)


def _took_nothing(sink: Any, what: str, error: BaseException) -> bool:
    """Whether ``sink`` has certainly taken nothing of a call that raised ``error``.

    A StreamSink guarantees this for a RowtimeError; flushing or promising again changes nothing there. For another
    sink with ``flush``, which may be a transaction that is rolled back, it is not known.
    """
    if isinstance(sink, StreamSink):
        return what != ROWS or isinstance(error, RowtimeError)
    return isinstance(error, Exception) and not hasattr(sink, "flush")


def _unknown(sink: Any) -> SinkClosedError:
    again = (
        f"Call abandon(), and open a sink under its name ({sink.producer!r}) again"
        if isinstance(sink, StreamSink)
        else f"Create a new {type(sink).__name__}"
    )
    return SinkClosedError(
        f"An earlier drain into this {type(sink).__name__} failed in one of its calls. Whether the sink kept the rows "
        f"of that call is not known, so the drain neither sends them again nor skips them. {again}: a drain into the "
        "new one begins at its checkpoint.",
    )
