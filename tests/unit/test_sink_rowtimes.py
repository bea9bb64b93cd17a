"""The rowtimes of a sink's rows: their own, the time now, another column's; and how far ahead they may lie."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pyarrow as pa
import pytest
from sink_support import counts, everything, rejected
from unit_support import HOUR, MINUTE, HandClock, accepted, new_sink, new_stream, row, rows, us, when

import spark_rowtime as rt
from spark_rowtime.types.schema import rows_to_batch


def test_a_missing_rowtime_is_now(path, clock):
    sink = new_sink(path, now=clock)
    sink.sendRow({"ticker": "a"})
    clock.advance(MINUTE)
    sink.sendRows([{"ticker": "b"}, {"ticker": "c"}])
    sink.sendRows(pa.table({"ticker": ["d"]}))
    assert everything(path) == [("12:00", "a"), ("12:01", "b"), ("12:01", "c"), ("12:01", "d")]


def test_now_is_never_below_the_bound(path, clock):
    sink = new_sink(path, now=clock, steady=HandClock())
    sink.sendRowtimeBound(when("12:30"), strict=True)
    clock.advance(-HOUR)
    sink.sendRow({"ticker": "a"})
    sink.sendRows([{"ticker": "b"}])
    sink.sendRows(pa.table({"ticker": ["c"]}))
    assert accepted(path) == ["12:30:00.000001"] * 3


def test_a_clock_that_steps_back_within_a_call_makes_nothing_late(path):
    times = iter([us("12:00")] * 3 + [us("11:59")] * 9)
    sink = new_sink(path, now=lambda: next(times))
    sink.sendRows([{"ticker": "a"}, {"ticker": "b"}, {"ticker": "c"}])
    assert len(set(accepted(path))) == 1


def test_another_column_is_promoted_to_rowtime():
    path = new_stream("rowtime TIMESTAMP NOT NULL, ticker STRING, created_at TIMESTAMP")
    sink = new_sink(path, rowtime="created_at")
    sink.sendRow({"ticker": "a", "created_at": when("10:00")})
    sink.sendRows([{"ticker": "b", "created_at": when("10:01")}])
    kind = pa.timestamp("us", "UTC")
    sink.sendRows(pa.table({"ticker": ["c"], "created_at": pa.array([when("10:02")], kind)}))
    assert everything(path) == [("10:00", "a"), ("10:01", "b"), ("10:02", "c")]
    with pytest.raises(rt.SchemaMismatchError, match="rowtime"):
        sink.sendRow({"ticker": "d", "created_at": None})
    with pytest.raises(rt.SchemaMismatchError, match="created_at"):
        sink.sendRow({"ticker": "e"})
    with pytest.raises(rt.SchemaMismatchError, match="created_at"):
        sink.sendRows(pa.table({"ticker": ["f"]}))


def test_rows_without_a_promoted_column_do_not_get_the_time_now():
    """Also where it was added to the stream, so that rows may leave it out."""
    path = new_stream("rowtime TIMESTAMP NOT NULL, ticker STRING")
    rt.alterStream(path, add="created_at TIMESTAMP")
    sink = new_sink(path, rowtime="created_at")
    for call in (lambda: sink.sendRow({"ticker": "a"}), lambda: sink.sendRows(pa.table({"ticker": ["a"]}))):
        with pytest.raises(rt.SchemaMismatchError, match="rowtime"):
            call()
    assert sink.getRowtimeBound() is None


@pytest.mark.parametrize("column", ["rowtime", "nothing"])
def test_promoting_needs_another_column(path, column):
    with pytest.raises(rt.InvalidOptionError, match=column):
        new_sink(path, rowtime=column)


# ---- maxAhead


def test_a_row_too_far_ahead_is_rejected(clock):
    path = new_stream(maxAhead="1 hour")
    sink = new_sink(path, "P", now=clock, onLate="reject")
    sink.sendRow(row("13:00"))
    sink.sendRow(row("13:00:00.000001"))
    sink.sendRows(rows("13:00", "14:00", "12:59"))
    assert accepted(path) == ["13:00", "13:00"]
    assert [(r[1], r[2], r[3]) for r in rejected(path)] == [
        ("ahead", when("13:00"), "13:00"),
        ("ahead", when("13:00"), "14:00"),
        ("late", when("13:00"), "12:59"),
    ]
    assert counts(path, "P") == (2, 3)
    clock.advance(HOUR)
    sink.sendRow(row("14:00"))
    assert sink.getRowtimeBound() == rt.RowtimeBound(when("14:00"))


def test_a_row_too_far_ahead_raises_and_makes_nothing_late(clock):
    path = new_stream(maxAhead="1 hour")
    sink = new_sink(path, "P", now=clock)
    with pytest.raises(rt.LateRowError, match="ahead"):
        sink.sendRow({"rowtime": "2999-01-01", "ticker": "X"})
    sink.sendRow(row("12:00"))
    assert counts(path, "P") == (1, 1)


# ---- told the times, or giving them


TOLD = {
    "dict": lambda sink: sink.sendRow(row("12:00")),
    "tuple": lambda sink: sink.sendRow((when("12:00"), "X")),
    "text": lambda sink: sink.sendRow(("2006-09-11T12:00:00Z", "X")),
    "rows": lambda sink: sink.sendRows(rows("12:00")),
    "arrow": lambda sink: sink.sendRows(pa.table({"rowtime": [when("12:00")], "ticker": ["X"]})),
    "batch": lambda sink: sink.sendRows(rows_to_batch(rows("12:00"), sink._store.schema)),
}


GIVEN = {
    "dict": lambda sink: sink.sendRow({"ticker": "now"}),
    "rows": lambda sink: sink.sendRows([{"ticker": "now"}]),
    "arrow": lambda sink: sink.sendRows(pa.table({"ticker": ["now"]})),
}


@pytest.mark.parametrize("told", TOLD)
@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize("linger", [0, HOUR])
def test_a_sink_is_told_the_times_or_gives_them(clock, told, given, linger):
    path = new_stream()
    sink = new_sink(path, now=clock, linger=linger)
    for _ in range(3):
        TOLD[told](sink)
    with pytest.raises(rt.SchemaMismatchError, match=r"Row 0 comes without .* sink had one"):
        GIVEN[given](sink)
    TOLD[told](sink)
    sink.close()
    assert accepted(path) == ["12:00"] * 4
    path = new_stream()
    sink = new_sink(path, now=clock, linger=linger)
    for _ in range(3):
        GIVEN[given](sink)
    with pytest.raises(rt.SchemaMismatchError, match=r"Row 0 comes with a .* each got the time now"):
        TOLD[told](sink)
    GIVEN[given](sink)
    sink.close()
    assert accepted(path) == ["12:00"] * 4


def test_a_sink_that_gives_times_takes_values_that_are_not_plain(clock):
    path = new_stream("rowtime TIMESTAMP NOT NULL, price DECIMAL(9, 2)")
    sink = new_sink(path, now=clock)
    for _ in range(3):
        sink.sendRow({"price": Decimal("1.50")})
    with pytest.raises(rt.SchemaMismatchError, match="Row 0 comes with a"):
        sink.sendRow({"rowtime": when("12:00"), "price": Decimal("1.50")})
    sink.close()
    assert accepted(path) == ["12:00"] * 3


def test_a_call_with_rows_of_both_kinds_is_refused_and_decides_nothing(clock):
    path = new_stream()
    sink = new_sink(path, now=clock)
    with pytest.raises(rt.SchemaMismatchError, match="Row 1 comes without a rowtime"):
        sink.sendRows([row("12:00"), {"ticker": "now"}])
    with pytest.raises(rt.SchemaMismatchError, match="Row 1 comes with a rowtime"):
        sink.sendRows([{"ticker": "now"}, (when("12:00"), "X")])
    with pytest.raises(rt.SchemaMismatchError, match="ticker=5"):
        sink.sendRow({"ticker": 5})
    sink.sendRow(row("12:00"))
    sink.close()
    assert accepted(path) == ["12:00"]


def test_with_another_column_as_rowtime_all_times_are_told(clock):
    path = new_stream("rowtime TIMESTAMP NOT NULL, created TIMESTAMP")
    sink = new_sink(path, now=clock, rowtime="created")
    sink.sendRow({"created": when("12:00")})
    sink.sendRow({"rowtime": when("12:01"), "created": when("12:00")})
    sink.sendRows([{"created": when("12:02")}, {"rowtime": when("12:03"), "created": None}])
    sink.sendRows(pa.table({"created": [when("12:04")]}))
    with pytest.raises(rt.SchemaMismatchError):
        sink.sendRow({})
    sink.close()
    assert accepted(path) == ["12:00", "12:01", "12:02", "12:03", "12:04"]


def test_no_max_ahead_lets_the_end_of_time_in_as_a_rowtime() -> None:
    """Its bound would be that of a complete producer, which cannot be taken back."""
    path = new_stream(maxAhead="2930000 days")
    last = datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
    with new_sink(path) as sink:
        for _ in range(3):
            with pytest.raises(rt.SchemaMismatchError):
                sink.sendRow((last, "never"))
            sink.sendRow((last - timedelta(microseconds=1), "last"))
    assert rt.describeStream(path).producers[0].status == "left"
