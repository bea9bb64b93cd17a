"""Helpers for tests of operators: the output so far, restarts, and the size of the state."""

from datetime import UTC, datetime, timedelta
from typing import Any

import spark_rowtime as rt
from tests.streams import Pipe, clock_of

NOON = datetime(2006, 9, 11, 12, tzinfo=UTC)


def after_noon(**parts: float) -> datetime:
    """A time of the examples' day."""
    return NOON + timedelta(**parts)


def output(pipe: Pipe, name: str = "out") -> list[dict[str, Any]]:
    """All rows that a query has written so far, sorted by their values."""
    assert pipe.query is not None
    pipe.query.processAllAvailable()
    rows = [row for train in rt.openReader(pipe.path(name), order="arrival") for row in train.rows.to_pylist()]
    return sorted(rows, key=lambda row: [(value is not None, value) for value in row.values()])


def told(pipe: Pipe) -> list[tuple[Any, ...]]:
    """The rows of ``output`` as tuples, rowtime as a clock time."""
    return [(clock_of(row.pop("rowtime")), *row.values()) for row in output(pipe)]


def restart(pipe: Pipe, frame: Any) -> None:
    """Stops the query and starts it again from its checkpoint."""
    assert pipe.query is not None
    pipe.query.stop()
    pipe.run(frame)


def kept(pipe: Pipe) -> int:
    """The number of entries in the state of the query's operators."""
    assert pipe.query is not None
    progress = pipe.query.lastProgress
    assert progress is not None
    return sum(operator.numRowsTotal for operator in progress.stateOperators)
