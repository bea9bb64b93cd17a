"""The status of a query: its keys, and what they say. java-shim/README.md describes the JSON."""

from dataclasses import dataclass

from spark_rowtime.bounds.topic_cut import Offsets, offsets_of
from spark_rowtime.errors import RowtimeError
from spark_rowtime.store.snapshot import WRITER, ReportedStatus, Snapshot
from spark_rowtime.types.stranger import Stranger
from spark_rowtime.types.timestamps import to_interval

RUNNING, STOPPED, FAILED = "running", "stopped", "failed"
QUERY_PRODUCER = "spark-"
"""The names of the producers under which queries write begin so; the id of the query follows."""
REPORT_SECONDS = 10.0
"""A query reports at least this often that it lives."""
GONE_MICROS = 30_000_000
"""A query that has not reported for this many microseconds is gone: its process has ended without saying so."""

MOST_SOURCES = 1_000
"""No query reads more streams; each one that a status names costs its reader a look."""


@dataclass(frozen=True, slots=True)
class QuerySource:
    """One source of a query, as of its last batch. Times are in microseconds.

    ``path`` is None for a source that is not a rowtime stream; ``other`` then describes it. ``table`` is a table with
    bounds in its commits, the path of a Delta table or ``iceberg:CATALOG.NAMESPACE.TABLE``, ``version`` the last
    version or snapshot that was read entirely. ``place`` names the joins and unions above the source, and its place in
    each, the topmost first. ``read``: of bounds beside topics, up to where these were read. ``behind``: by how much
    the results of the joins above the source can lie behind its bound.
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
    table: str | None = None
    version: int | None = None
    behind: int = 0


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
class QueryStatus:
    """What a query has told of its last batch. ``unseen``: microseconds of uptime since then.

    ``output`` has the floors of its output columns, ``lost`` where a column has lost its bound. ``column`` is the one
    that is the rowtime of the stream that it writes. ``follows``: its watermark is not that of bounds, but follows the
    rows' values of this column.
    """

    query: str
    name: str | None
    run: str
    batch: int | None
    sources: tuple[QuerySource, ...]
    operators: tuple[QueryOperator, ...]
    output: dict[str, int]
    lost: dict[str, str]
    follows: str | None
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
    def of(cls, status: ReportedStatus | None) -> "QueryStatus | None":
        """Reads a status; None if there is none, or if it is not of a query of a version that is known.

        Law: whatever somebody has written there, each part has its type, and its times can be shown.
        """
        try:
            return None if status is None else cls._parsed(Stranger.of_text(status.content), status.unseen)
        except (ValueError, RowtimeError):
            return None

    @classmethod
    def _parsed(cls, given: Stranger, unseen: int) -> "QueryStatus":
        output, lost = given.part("output"), given.part("lost")
        return cls(
            _required(given.text("query")),
            given.text("name"),
            given.text("run") or "",
            given.whole("batch"),
            _sources(given.parts("sources")),
            tuple(_operator(operator) for operator in given.parts("operators")),
            {} if output is None else output.all(Stranger.time),
            {} if lost is None else lost.all(Stranger.text),
            given.text("follows"),
            given.text("column"),
            given.text("state"),
            given.text("error"),
            unseen,
        )


def _required(text: str | None) -> str:
    if not text:
        raise ValueError("a name is missing")
    return text


def _sources(given: list[Stranger]) -> tuple[QuerySource, ...]:
    if len(given) > MOST_SOURCES:
        raise ValueError("too many sources")
    return tuple(map(_source, given))


def _source(given: Stranger) -> QuerySource:
    position, hold = given.part("position") or Stranger({}), given.text("hold")
    to_interval(hold, "hold")
    return QuerySource(
        given.text("path"),
        position.text("stream") or "",
        position.whole("seq") or 0,
        position.time("cut"),
        position.time("floor"),
        hold,
        {name: given.shown(name) for name in ("maxRowsPerTrigger", "maxBytesPerTrigger") if name in given},
        given.text("adapter"),
        (given.text("view") or "rows") == "rows",
        tuple(given.texts("place")),
        given.text("other") or "",
        _offsets(given.part("read"), given.text("reads")),
        given.text("table"),
        position.whole("version"),
        max(given.whole("behind") or 0, 0),
    )


def _offsets(given: Stranger | None, reads: str | None) -> Offsets | None:
    if given is None:
        return None
    return offsets_of({topic: ends.all(Stranger.whole) for topic, ends in given.all(Stranger.part).items()}, reads)


def _operator(given: Stranger) -> QueryOperator:
    window = given.part("window")
    return QueryOperator(
        _required(given.text("name")),
        given.time("watermark"),
        given.whole("rows"),
        given.text("emits") or "unknown",
        given.time("done"),
        None if window is None else _window(window),
    )


def _window(given: Stranger) -> dict[str, int]:
    found = {name: given.whole(name) for name in ("slide", "start", "reach")}
    if not found["slide"] or found["slide"] < 0 or None in found.values():
        raise ValueError("no window")
    return {name: value for name, value in found.items() if value is not None}


def query_names(snapshot: Snapshot) -> dict[str, str | None]:
    """The names of the queries that write the stream, by their producers."""
    told = {status.name: QueryStatus.of(status) for status in snapshot.statuses if status.role == WRITER}
    return {producer: query.name for producer, query in told.items() if query is not None}
