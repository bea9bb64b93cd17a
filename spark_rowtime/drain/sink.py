"""TableSink: puts what a drain gathers into commits of a table."""

from collections.abc import Mapping
from typing import Any, Protocol

import pyarrow as pa

from spark_rowtime.bounds.bound import RowtimeBound
from spark_rowtime.drain.gathering import GatheringSink
from spark_rowtime.drain.properties import POSITION, QUERY, bound_in, bound_properties
from spark_rowtime.errors import InvalidOptionError

PLUGINS = "spark_rowtime.drain"
"""The group of entry points that name kinds of tables, each a ``Format``."""
EVERY, MAX_ROWS = "10 seconds", 1_000_000
"""The default interval between two commits, and the default number of rows that one gathers."""
BOUNDS_EVERY = "1 minute"
"""The default interval between a commit of a table and one that brings a bound alone: each is kept for some time."""

UNDER_WAY_POLL_SECONDS = 0.1
"""How often a sink of a quiet stream looks whether the commit that is under way has ended."""


class Transactional(Protocol):
    """What commits rows and properties together: a ``Table``, or a topic of Kafka."""

    target: str
    properties: dict[str, str]
    """The properties of the last commit of a drain."""
    place: str
    """What of the target has the position, such as a version."""

    def append(self, rows: pa.Table, properties: Mapping[str, str]) -> None:
        """Commits rows, which may be none, with properties."""


class Format(Protocol):
    """A kind of table, ``KIND:PLACE``. The entry point is an object, such as a class, with these two calls.

    One that has ``read_properties``, too, tells by it the properties of the last commit.
    """

    def open_sink(self, target: str, schema: pa.Schema, every: int, max_rows: int, bounds_every: int) -> GatheringSink:
        """A sink into ``target``, as ``openTableSink``; intervals are in microseconds."""

    def read_bound(self, target: str) -> RowtimeBound | None:
        """The bound of the table's last commit; None if there is none."""


class TableSink(GatheringSink):
    """A sink into a Delta or Iceberg table, for ``drainTo``; ``openTableSink`` returns it.

    Law (*once*): rows, bound and position are one commit of the table, so each row of the stream is in the table once,
    whatever process dies; of two drains into one table the second to commit raises ProducerFencedError.
    """

    def __init__(self, table: Transactional, schema: pa.Schema, every: int, max_rows: int, **options: Any) -> None:
        super().__init__(table.target, schema, every, max_rows, **options)
        if QUERY in table.properties:
            raise InvalidOptionError(
                f"The query {table.properties[QUERY]} writes to {table.target}. A table has the bound of one "
                "writer: drain into another table.",
                option="target",
                value=table.target,
            )
        self._table = table
        self._bound = bound_in(table.properties)
        self._checkpoint = self.checkpoint

    @property
    def checkpoint(self) -> str | None:
        """The position that the table has: a drain continues there. None for a table without one."""
        return self._table.properties.get(POSITION)

    @property
    def checkpointPlace(self) -> str:
        """What has the position, for an error."""
        return f"{self._table.place} of {self.target}" if self._table.place else self.target

    @property
    def rowtimeBound(self) -> RowtimeBound | None:
        """The bound of the table's last commit: no later row is below it. None while nothing is promised."""
        return bound_in(self._table.properties)

    def commit(self) -> None:
        """Commits now what ``flush`` was called for, if there is anything, and waits for it."""
        self._require_open()
        self._wait()
        super().commit()

    def commitDue(self) -> float | None:
        """Commits if the interval has passed, and raises the error of a commit in the background that has ended.

        Returns:
            The number of seconds until the next commit is due, or until one in the background is looked at again; None
            if nothing is gathered and nothing is under way.
        """
        if self._write_future is not None and self._write_future.done():
            self._wait()
        left = super().commitDue()
        return left if self._write_future is None else min(UNDER_WAY_POLL_SECONDS, left or UNDER_WAY_POLL_SECONDS)

    def _commit_in_background(self) -> None:
        """Commits in the sink's thread, so that the reader reads the next rows meanwhile."""
        self._wait()
        with self._or_ended():
            self._start(self._table.append, *self._gathered())
            self._since, self._committed = None, self._now()

    def _write(self) -> None:
        self._table.append(*self._gathered())

    def _gathered(self) -> tuple[pa.Table, dict[str, str]]:
        """The rows and the properties of the next commit."""
        position = {} if self._checkpoint is None else {POSITION: self._checkpoint}
        return self._taken(), {**bound_properties(self._bound), **position}
