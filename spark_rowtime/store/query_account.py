"""The account of a query: its keys, and what they say. java-shim/README.md describes the JSON."""

import json
from dataclasses import dataclass
from typing import Any

from spark_rowtime.bounds.topic_cut import Offsets, offsets_of
from spark_rowtime.store.base import WRITER, Account, Store
from spark_rowtime.types.timestamps import END

RUNNING, STOPPED, FAILED = "running", "stopped", "failed"
QUERY_PRODUCER = "spark-"
"""The names of the producers under which queries write begin so; the id of the query follows."""
REPORT_SECONDS = 10.0
"""A query reports at least this often that it lives."""
GONE_MICROS = 30_000_000
"""A query that has not reported for this many microseconds is gone: its process has ended without saying so."""


@dataclass(frozen=True, slots=True)
class QuerySource:
    """One source of a query, as of its last batch. Times are in microseconds.

    ``path`` is None for a source that is not a rowtime stream; ``other`` then describes it. ``place`` names the joins
    and unions above the source, and its place in each, the topmost first. ``read``: of bounds beside topics, up to
    where these were read.
    """

    path: str | None
    stream: str
    seq: int
    cut: int | None
    floor: int | None
    hold: str | None
    limits: dict[str, str]
    adapter: str | None
    rows: bool
    place: tuple[str, ...]
    other: str
    read: Offsets | None


@dataclass(frozen=True, slots=True)
class QueryOperator:
    """One stateful operator, as of the last batch. Times are in microseconds.

    ``emits`` says when it outputs a row: "at once", "complete" (when its window or its raw time is complete), or
    "unknown". ``done``: the raw time up to which it has output everything. ``window``: slide, start and reach, see
    ``window_end``.
    """

    name: str
    watermark: int | None
    rows: int | None
    emits: str
    done: int | None
    window: dict[str, int] | None

    def window_end(self, time: int) -> int | None:
        """The end of the last window into which a row at ``time`` falls; None if this is not known."""
        if self.window is None:
            return None
        slide, start, reach = self.window["slide"], self.window["start"], self.window["reach"]
        return (time - start) // slide * slide + start + reach


@dataclass(frozen=True, slots=True)
class QueryAccount:
    """What a query has told of its last batch. ``unseen``: microseconds of uptime since then.

    ``output`` has the floors of its output columns, ``lost`` where a column has lost its bound. ``column`` is the one
    that is the rowtime of the stream that it writes.
    """

    query: str
    name: str | None
    run: str
    batch: int | None
    sources: tuple[QuerySource, ...]
    operators: tuple[QueryOperator, ...]
    output: dict[str, int]
    lost: dict[str, str]
    column: str | None
    state: str | None
    error: str | None
    unseen: int

    @property
    def shown(self) -> str:
        """The name of the query, or its id."""
        return self.name or self.query

    @property
    def output_floor(self) -> int | None:
        """The bound of its output in the last batch, in microseconds; None if a time of the output has none.

        It is that of the column that is the rowtime of the stream it writes; without such a stream, the weakest.
        """
        if self.column is not None:
            return self.output.get(self.column)
        floors = [floor for path, floor in self.output.items() if not path.endswith(".start")]
        return None if self.lost or not floors else min(floors)

    @property
    def gone(self) -> bool:
        """Whether its process has ended without saying so."""
        return self.state == RUNNING and self.unseen > GONE_MICROS

    @classmethod
    def of(cls, account: Account | None) -> "QueryAccount | None":
        """Reads an account; None if there is none, or if it is not of a query of a version that is known."""
        try:
            return None if account is None else cls._parsed(account)
        except (ValueError, KeyError, TypeError, AttributeError):
            return None

    @classmethod
    def _parsed(cls, account: Account) -> "QueryAccount":
        given: dict[str, Any] = json.loads(account.content)
        return cls(
            given["query"],
            given.get("name"),
            given.get("run", ""),
            given.get("batch"),
            tuple(_source(source) for source in given.get("sources", [])),
            tuple(_operator(operator) for operator in given.get("operators", [])),
            given.get("output", {}),
            given.get("lost", {}),
            given.get("column"),
            given.get("state"),
            given.get("error"),
            account.unseen,
        )


def _source(given: dict[str, Any]) -> QuerySource:
    position = given.get("position", {})
    floor = position.get("floor")
    return QuerySource(
        given.get("path"),
        position.get("stream", ""),
        position.get("seq", 0),
        position.get("cut"),
        None if floor is None else min(floor, END),
        given.get("hold"),
        {name: given[name] for name in ("maxRowsPerTrigger", "maxBytesPerTrigger") if name in given},
        given.get("adapter"),
        given.get("view", "rows") == "rows",
        tuple(given.get("place", [])),
        given.get("other", ""),
        offsets_of(given["read"]) if "read" in given else None,
    )


def _operator(given: dict[str, Any]) -> QueryOperator:
    return QueryOperator(
        given["name"],
        given.get("watermark"),
        given.get("rows"),
        given.get("emits", "unknown"),
        given.get("done"),
        given.get("window"),
    )


def query_names(store: Store) -> dict[str, str | None]:
    """The names of the queries that write the stream, by their producers."""
    told = {account.name: QueryAccount.of(account) for account in store.accounts() if account.role == WRITER}
    return {producer: query.name for producer, query in told.items() if query is not None}
