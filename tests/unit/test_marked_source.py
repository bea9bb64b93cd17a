"""The rows and markers of bounds=markers, batch by batch, as Spark asks for them without the extension."""

from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import spark_rowtime as rt
from spark_rowtime.spark.marked_source import MarkedStreamReader
from spark_rowtime.spark.options import READ, Options
from spark_rowtime.spark.source import RowtimeStreamReader
from tests.streams import clock_of, opened, send

Sources = Callable[..., MarkedStreamReader]


@pytest.fixture
def path(tmp_path: Path) -> str:
    path = str(tmp_path / "s.rowtime")
    rt.createStream(path, "n INT NOT NULL, rowtime TIMESTAMP NOT NULL")
    return path


@pytest.fixture
def run(path: str) -> Iterator[Sources]:
    """A run of the query with these options, as often as it is called."""
    made: list[MarkedStreamReader] = []

    def make(**options: str) -> MarkedStreamReader:
        made.append(MarkedStreamReader(Options({"path": path, "bounds": "markers", **options}, READ), 2))
        return made[-1]

    yield make
    for reader in made:
        reader.stop()


def read(source: MarkedStreamReader, start: Any, end: Any) -> tuple[list[str], list[str]]:
    """The times of the rows of a batch, and those of its markers."""
    batches = [rows for part in source.partitions(start, end) for rows in source.read(part)]
    found = [row for rows in batches for row in rows.to_pylist()]
    assert all(row["bound"] in (None, row["time"]) for row in found)
    assert all(row["row"]["rowtime"] == row["time"] for row in found if row["bound"] is None)
    markers = [clock_of(row["time"]) for row in found if row["bound"] is not None]
    return sorted(clock_of(row["time"]) for row in found if row["bound"] is None), markers


def test_a_marker_follows_the_rows_below_the_bound(path: str, run: Sources) -> None:
    sink, source = opened(path, "feed", rowsImplyBounds=False), run()
    rows = [(1, "10:01"), (2, "10:40"), (3, "10:20")]
    sink.sendRows([{"n": n, "rowtime": f"2006-09-11T{time}:00Z"} for n, time in rows])
    sink.flush()
    start = source.initialOffset()
    without = source.latestOffset(start, None)
    assert read(source, start, without) == ([], []), "there is no bound"
    send(sink, promise="10:30")
    end = source.latestOffset(without, None)
    assert read(source, without, end) == (["10:01", "10:20"], ["10:30"])
    assert source.latestOffset(end, None) == end, "there is nothing new"
    send(sink, promise="10:35")
    assert read(source, end, source.latestOffset(end, None)) == ([], ["10:35"])


def test_a_limited_batch_has_a_marker_where_the_next_one_goes_on(path: str, run: Sources) -> None:
    sink = opened(path, "feed")
    for n in range(4):
        sink.sendRow({"n": n, "rowtime": f"2006-09-11T10:0{n}:00Z"})
        sink.flush()
    source = run(maxRowsPerTrigger="2")
    start, found = source.initialOffset(), []
    while (end := source.latestOffset(start, source.getDefaultReadLimit())) != start:
        found.append(read(source, start, end))
        start = end
    assert [row for rows, _ in found for row in rows] == ["10:00", "10:01", "10:02", "10:03"]
    for (_, [marker]), (rows, _) in pairwise(found):
        assert marker <= min(rows)


def test_each_run_begins_with_a_marker(path: str, run: Sources) -> None:
    sink = opened(path, "feed")
    send(sink, promise="10:30")
    first, second = run(), run()
    start = first.initialOffset()
    end = first.latestOffset(start, None)
    assert read(second, start, end) == read(first, start, end) == ([], ["10:30"])
    again = second.latestOffset(end, None)
    assert read(second, end, again) == ([], ["10:30"])
    assert second.latestOffset(again, None) == again


def test_a_query_from_the_latest_on_runs_its_first_batch_again(path: str, run: Sources) -> None:
    """It had died after the batch was planned; the stream has gone on since."""
    sink = opened(path, "feed")
    sink.sendRow({"n": 1, "rowtime": "2006-09-11T10:00:00Z"})
    sink.flush()
    first = run(startingPosition="latest")
    start = first.initialOffset()
    sink.sendRow({"n": 2, "rowtime": "2006-09-11T10:30:00Z"})
    send(sink, promise="10:40")
    end = first.latestOffset(start, None)
    sink.sendRow({"n": 3, "rowtime": "2006-09-11T10:50:00Z"})
    sink.flush()
    second = run(startingPosition="latest")
    assert read(first, start, end) == (["10:30"], ["10:40"])
    assert read(second, second.initialOffset(), end) == ([], ["10:40"]), "it begins with what is the latest now"
    send(sink, promise="11:00")
    assert read(second, end, second.latestOffset(end, None)) == (["10:50"], ["11:00"])


def test_a_marker_is_a_row_of_any_stream(tmp_path: Path) -> None:
    path = str(tmp_path / "all")
    kinds = "STRING; BINARY; BOOLEAN; INT; DOUBLE; DECIMAL(5, 5); DATE; TIMESTAMP; TIMESTAMP_NTZ; ARRAY<INT>; "
    kinds += "MAP<STRING, INT>; STRUCT<a: STRING NOT NULL, b: INT>"
    columns = [f"c{n} {kind} NOT NULL" for n, kind in enumerate(kinds.split("; "))]
    rt.createStream(path, f"{', '.join(columns)}, optional STRING, rowtime TIMESTAMP NOT NULL")
    sink = opened(path, "feed")
    send(sink, promise="10:30")
    source = MarkedStreamReader(Options({"path": path, "bounds": "markers"}, READ), len(columns) + 2)
    start = source.initialOffset()
    [part] = source.partitions(start, source.latestOffset(start, None))
    [marker] = source.read(part)
    source.stop()
    marker.validate(full=True)
    empty = marker.column("row").to_pylist()[0]
    assert [name for name, value in empty.items() if value is None] == ["optional"]
    assert empty["c11"] == {"a": "", "b": None}


def test_a_checkpoint_that_was_begun_without_markers_gets_one_in_its_next_batch(path: str, run: Sources) -> None:
    send(opened(path, "feed"), promise="10:30")
    plain = RowtimeStreamReader(Options({"path": path, "order": "rowtime", "bounds": "ignore"}, READ), 2)
    start = plain.latestOffset(plain.initialOffset(), None)
    plain.stop()
    source = run()
    end = source.latestOffset(start, None)
    assert read(source, start, end) == ([], ["10:30"])
