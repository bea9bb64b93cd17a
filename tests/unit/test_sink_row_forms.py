"""The forms of rows that a sink takes: mappings, sequences, Arrow data. A wrong form is refused whole."""

from datetime import UTC, datetime, tzinfo
from typing import NamedTuple

import pandas as pd
import polars
import pyarrow as pa
import pytest
from pyspark.sql import Row
from sink_support import LINGER, everything, tickers
from unit_support import accepted, new_sink, new_stream, row, us, when

import spark_rowtime as rt
from spark_rowtime.store import open_store
from spark_rowtime.store.position import Position


def test_rows_come_in_every_form(path):
    sink = new_sink(path)
    schema = pa.schema([("ticker", pa.string()), ("rowtime", pa.timestamp("us", "UTC"))])
    arrow = pa.table({"ticker": ["f"], "rowtime": [when("10:05")]}, schema)
    sink.sendRow((when("10:00"), "a"))
    sink.sendRow([when("10:01"), "b"])
    sink.sendRow({"ticker": "c", "rowtime": when("10:02")})
    sink.sendRows([(when("10:03"), "d"), {"rowtime": when("10:04"), "ticker": None}])
    sink.sendRows(arrow)
    sink.sendRows(pa.table({"ticker": ["g"], "rowtime": [when("10:06")]}, schema).to_batches()[0])
    sink.sendRows(row for row in [(when("10:07"), "h")])
    assert tickers(path) == ["a", "b", "c", "d", None, "f", "g", "h"]


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ({"rowtime": when("10:00")}, r"missing \['ticker'\]"),
        ({"rowtime": when("10:00"), "ticker": "X", "price": 3}, r"unknown \['price'\]"),
        ((when("10:00"),), "2 values"),
        ("10:00", "must be a mapping"),
        ({"rowtime": None, "ticker": "X"}, "rowtime"),
        ((None, "X"), "rowtime"),
        ({"rowtime": "soon", "ticker": "X"}, "rowtime"),
        ({"rowtime": 1_000_000, "ticker": "X"}, "rowtime"),
        ({"rowtime": datetime(1970, 1, 1, tzinfo=UTC), "ticker": "X"}, "1970"),
        ({"rowtime": datetime(1969, 7, 20, tzinfo=UTC), "ticker": "X"}, "1970"),
        ({"rowtime": datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC), "ticker": "X"}, "at most 9999-12-31"),
        ({"rowtime": when("10:00"), "ticker": 7}, "ticker"),
    ],
)
def test_a_row_of_the_wrong_form_is_refused_whole(path, bad, said):
    sink = new_sink(path)
    with pytest.raises(rt.SchemaMismatchError, match=said):
        sink.sendRow(bad)
    with pytest.raises(rt.SchemaMismatchError, match=said):
        sink.sendRows([row("9:00"), bad])
    sink.flush()
    assert everything(path) == []
    assert sink.getRowtimeBound() is None


@pytest.mark.parametrize("bad", [{"rowtime": 1}, "abc", b"abc", 5])
def test_send_rows_takes_no_single_row(path, bad):
    with pytest.raises(rt.SchemaMismatchError, match="sendRow takes one row"):
        new_sink(path).sendRows(bad)


def test_an_iterable_that_fails_midway_has_sent_nothing(path):
    sink = new_sink(path)

    def feed():
        yield row("10:00")
        raise ConnectionError("gone")

    with pytest.raises(ConnectionError):
        sink.sendRows(feed())
    sink.flush()
    assert everything(path) == []


def test_empty_calls_change_nothing(path):
    sink = new_sink(path)
    sink.sendRows([])
    sink.sendRows(arrow([]))
    sink.flush()
    assert rt.describeStream(path).seq == 1


def test_rows_are_taken_as_they_are_at_the_call():
    """What the adapter does to its own list afterwards is no matter."""
    path = new_stream("rowtime TIMESTAMP NOT NULL, tags ARRAY<STRING>")
    sink = new_sink(path, linger=LINGER)
    tags = ["a"]
    sink.sendRow((when("9:00"), []))
    sink.sendRow((when("10:00"), tags))
    tags.append(7)
    sink.flush()
    store = open_store(path)
    [_, second] = store.slices(Position(0, None, None), Position(store.head().seq, None, None))
    assert store.read(second).column("tags").to_pylist() == [["a"]]


# ---- Arrow data


def arrow(rowtimes, kind=pa.timestamp("us", "UTC"), **columns):
    return pa.table({"rowtime": pa.array(rowtimes, kind), "ticker": ["X"] * len(rowtimes), **columns})


@pytest.mark.parametrize(
    "bad",
    [
        arrow([us("10:00")]).drop_columns("ticker"),
        arrow([us("10:00")], price=[3]),
        arrow([us("10:00"), None]),
        arrow(["2006-09-11T10:00:00"], pa.string()),
        arrow([us("10:00")], pa.int64()),
        arrow([0]),
        arrow([2**64 // 1_000_000 + 10], pa.timestamp("s")),
        pa.table({"rowtime": pa.array([us("10:00")], pa.timestamp("us", "UTC")), "ticker": [b"\xff"]}),
    ],
    ids=["missing", "unknown", "null", "text", "number", "epoch", "overflow", "bytes"],
)
def test_arrow_of_the_wrong_form_is_refused_whole(path, bad):
    sink = new_sink(path)
    with pytest.raises(rt.SchemaMismatchError):
        sink.sendRows(bad)
    assert everything(path) == []


def test_zone_less_times_are_utc(path):
    sink = new_sink(path)
    sink.sendRow((datetime(2006, 9, 11, 10, 0), "naive"))
    sink.sendRow(("2006-09-11T10:01:00", "text"))
    sink.sendRow(("2006-09-11T12:02:00+02:00", "text with a zone"))
    sink.sendRows(arrow([us("10:03")], pa.timestamp("us")))
    sink.sendRows(arrow([us("10:04") * 1000 + 999], pa.timestamp("ns")))
    sink.sendRows(arrow([us("10:05") // 1000000], pa.timestamp("s", "Asia/Tokyo")))
    assert accepted(path) == ["10:00", "10:01", "10:02", "10:03", "10:04", "10:05"]


def test_a_zone_that_knows_no_offset_is_none():
    class Nowhere(tzinfo):
        def utcoffset(self, _):
            return None

    path = new_stream()
    new_sink(path).sendRow({"rowtime": when("10:00").replace(tzinfo=Nowhere()), "ticker": "X"})
    assert accepted(path) == ["10:00"]


class Named(NamedTuple):
    b: str
    s: tuple[str, str]
    rowtime: datetime
    a: str


def test_a_row_that_names_its_fields_is_taken_by_these_names(path):
    """In the order of its own schema, which need not be that of the stream, its values would be in other columns."""
    rt.createStream(f"{path}-named", "rowtime TIMESTAMP NOT NULL, a STRING, b STRING, s STRUCT<x: STRING, y: STRING>")
    pair = Row(y="y", x="x")
    with rt.openSink(f"{path}-named") as sink:
        sink.sendRow(Row(rowtime=when("10:00"), b="b", a="a", s=pair))
        sink.sendRow(Named("b", ("x", "y"), when("10:01"), "a"))
        sink.sendRows([Row(b="b", a="a", s=pair, rowtime=when("10:02")), Named("b", pair, when("10:03"), "a")])
        sink.sendRow(Row(when("10:04"), "a", "b", ("x", "y")))
        with pytest.raises(rt.SchemaMismatchError, match=r"missing \['a'\], unknown \['c'\]"):
            sink.sendRow(Row(rowtime=when("10:05"), b="b", c="a", s=pair))
    with rt.openReader(f"{path}-named") as reader:
        rows = [row for train in reader for row in train.rows.to_pylist()]
    assert [(row["a"], row["b"], row["s"]) for row in rows] == [("a", "b", {"x": "x", "y": "y"})] * 5


def test_a_frame_of_polars_is_told_its_own_way_to_arrow():
    with pytest.raises(rt.SchemaMismatchError, match=r"not a DataFrame; df\.to_arrow"):
        new_sink(new_stream()).sendRows(polars.DataFrame({"rowtime": [when("10:00")], "ticker": ["X"]}))


def test_a_pandas_frame_is_told_the_way_to_arrow():
    frame = pd.DataFrame({"rowtime": [when("10:00")], "ticker": ["X"]})
    sink = new_sink(new_stream())
    with pytest.raises(rt.SchemaMismatchError, match="from_pandas"):
        sink.sendRows(frame)
    sink.sendRows(pa.Table.from_pandas(frame, preserve_index=False))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([(pd.NaT, "X")], r"the time is missing \(NaT\)"),
        (
            arrow(["2006-09-11T10:00:00Z"], pa.string()),
            r"Of texts in ISO 8601, column\.cast\(pa\.timestamp\('us', 'UTC'\)\)",
        ),
        (
            arrow([us("10:00")], pa.int64()),
            r"Of numbers, column\.cast\(pa\.timestamp\(unit, 'UTC'\)\).*'s', 'ms' or 'us'",
        ),
        (
            pa.Table.from_pandas(
                pd.DataFrame({"rowtime": [when("10:00")], "ticker": ["X"]}, index=[7]).rename_axis(None)
            ),
            r"unknown \['__index_level_0__'\].*from_pandas\(df, preserve_index=False\) leaves the index out",
        ),
    ],
    ids=["NaT", "text", "number", "index"],
)
def test_the_way_out_is_named(path, given, said):
    sink = new_sink(path)
    with pytest.raises(rt.SchemaMismatchError, match=said):
        sink.sendRows(given)
    if isinstance(given, pa.Table) and "__index_level_0__" not in given.column_names:
        moments = given.column("rowtime").cast(pa.timestamp("us", "UTC"))
        sink.sendRows(given.set_column(0, "rowtime", moments))
        sink.flush()
        assert len(everything(path)) == 1
