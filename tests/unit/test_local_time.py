"""Times without a zone that are those of a place, over the hours that its clocks leave out or show twice."""

import re
from datetime import datetime, timedelta, timezone
from pathlib import Path
from zoneinfo import ZoneInfo

import pandas as pd
import pyarrow as pa
import pytest
from click.testing import CliRunner
from unit_support import SCHEMA, new_stream

import spark_rowtime as rt
from spark_rowtime.cli import main

BERLIN = "Europe/Berlin"
LEFT_OUT, TWICE = "2026-03-29T02:30:00", "2026-10-25T02:30:00"


def sink_in(tz: object = BERLIN, schema: str = SCHEMA, **options: object):
    path = new_stream(schema)
    return path, rt.openSink(path, linger="1 hour", lease=None, tz=tz, **options)


def landed(path: str, column: str = "rowtime") -> list[str]:
    with rt.openReader(path, order="arrival") as reader:
        times = [t for train in reader for t in train.rows.column(column).to_pylist()]
    return [t.isoformat().replace("+00:00", "Z") for t in times]


NOON = datetime(2026, 7, 1, 12)
FORMS = {
    "datetime": [NOON],
    "text": ["2026-07-01T12:00:00"],
    "pandas": [pd.Timestamp(NOON)],
    "arrow scalar": [pa.scalar(NOON, pa.timestamp("ns"))],
    "with an offset": ["2026-07-01T12:00:00+02:00"],
    "aware": [datetime(2026, 7, 1, 10, tzinfo=timezone.utc)],  # noqa: UP017
    "numbers of winter and summer": [datetime(2026, 1, 1, 11), NOON],
}


@pytest.mark.parametrize("form", FORMS)
def test_rows_of_any_form(form: str) -> None:
    for send in ("sendRow tuple", "sendRow dict", "sendRows", "generator"):
        path, sink = sink_in()
        for time in FORMS[form]:
            if send == "sendRow tuple":
                sink.sendRow((time, "X"))
            elif send == "sendRow dict":
                sink.sendRow({"rowtime": time, "ticker": "X"})
            else:
                sink.sendRows([(time, "X")] if send == "sendRows" else ((t, "X") for t in [time]))
        sink.close()
        assert landed(path)[-1] == "2026-07-01T10:00:00Z", send


@pytest.mark.parametrize("unit", ["s", "us", "ns"])
def test_arrow_data_and_other_columns(unit: str) -> None:
    schema = "rowtime TIMESTAMP NOT NULL, made TIMESTAMP, shown TIMESTAMP_NTZ"
    columns = {name: pa.array([NOON], pa.timestamp(unit)) for name in ("rowtime", "made", "shown")}
    for form in (pa.table(columns), pa.record_batch(columns), [(NOON, NOON, NOON)]):
        path, sink = sink_in(schema=schema)
        sink.sendRows(form)
        sink.sendRow((NOON, None, None))
        sink.close()
        assert landed(path, "rowtime") == ["2026-07-01T10:00:00Z"] * 2
        with rt.openReader(path) as reader:
            (train,) = reader
        first = train.rows.to_pylist()[0]
        assert (first["made"].isoformat(), first["shown"]) == ("2026-07-01T10:00:00+00:00", NOON)


def test_a_column_without_a_zone_that_fills_rowtime() -> None:
    schema = "rowtime TIMESTAMP NOT NULL, shown TIMESTAMP_NTZ"
    path, sink = sink_in(schema=schema, rowtime="shown")
    sink.sendRow({"shown": NOON})
    sink.sendRows(pa.table({"shown": pa.array([NOON], pa.timestamp("us"))}))
    sink.close()
    assert landed(path) == ["2026-07-01T10:00:00Z"] * 2
    assert landed(path, "shown") == [NOON.isoformat()] * 2


@pytest.mark.parametrize(
    ("time", "said"),
    [
        (LEFT_OUT, "2026-03-29T02:30:00 does not exist in Europe/Berlin"),
        (TWICE, "2026-10-25T02:30:00 occurs twice in Europe/Berlin.*: 2026-10-25T00:30:00Z and 2026-10-25T01:30:00Z"),
    ],
)
def test_a_row_at_a_time_that_is_there_not_once_is_refused(time: str, said: str) -> None:
    path, sink = sink_in()
    for row in ((time, "X"), {"rowtime": datetime.fromisoformat(time), "ticker": "X"}):
        with pytest.raises(rt.SchemaMismatchError, match=f"Row 0: rowtime: {said}"):
            sink.sendRow(row)
    with pytest.raises(rt.SchemaMismatchError, match="Row 1: rowtime"):
        sink.sendRows([(NOON, "X"), (time, "X")])
    with pytest.raises(rt.SchemaMismatchError, match=r"Column 'rowtime': .*Europe/Berlin.*offset from UTC"):
        moments = pa.array([datetime.fromisoformat(time)], pa.timestamp("us"))
        sink.sendRows(pa.table({"rowtime": moments, "ticker": ["X"]}))
    sink.close()
    assert landed(path) == []


def test_fold_names_the_second_of_two_and_an_offset_either() -> None:
    path, sink = sink_in()
    sink.sendRow((f"{TWICE}+02:00", "first"))
    sink.sendRow((datetime.fromisoformat(TWICE).replace(fold=1), "second"))
    sink.close()
    assert landed(path) == ["2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"]


BOUNDS = {
    "summer": (NOON, "2026-07-01T10:00:00Z"),
    "left out: the change": (LEFT_OUT, "2026-03-29T01:00:00Z"),
    "the first that was left out": ("2026-03-29T02:00:00", "2026-03-29T01:00:00Z"),
    "the first after it": ("2026-03-29T03:00:00", "2026-03-29T01:00:00Z"),
    "twice: the first": (TWICE, "2026-10-25T00:30:00Z"),
    "twice, the second": (datetime.fromisoformat(TWICE).replace(fold=1), "2026-10-25T01:30:00Z"),
    "with an offset": (f"{TWICE}+01:00", "2026-10-25T01:30:00Z"),
    "a bound": (rt.RowtimeBound(NOON), "2026-07-01T12:00:00Z"),
}


@pytest.mark.parametrize("case", BOUNDS)
def test_a_bound_promises_no_more_than_was_meant(case: str) -> None:
    given, moment = BOUNDS[case]
    path, sink = sink_in()
    sink.sendRowtimeBound(given)
    sink.flush()
    assert rt.describeStream(path).bound == rt.RowtimeBound(moment)
    if not isinstance(given, rt.RowtimeBound):
        assert rt.RowtimeBound(given, tz=BERLIN) == rt.RowtimeBound(moment)
    sink.close()


@pytest.mark.parametrize("zone", [BERLIN, "Pacific/Chatham", "America/St_Johns", "Australia/Lord_Howe", "Asia/Kolkata"])
def test_no_row_that_comes_after_a_time_of_the_clocks_is_before_its_bound(zone: str) -> None:
    """For each quarter of an hour of a year: what the clocks show at or after it lies at or above its bound."""
    quarter, step = datetime(2026, 1, 1), timedelta(minutes=15)
    place = ZoneInfo(zone)
    last = rt.RowtimeBound(quarter, tz=zone)
    while quarter.year == 2026:
        bound = rt.RowtimeBound(quarter, tz=zone)
        shown = bound.time.astimezone(place).replace(tzinfo=None)
        assert shown >= quarter, "it is not weaker than need be"
        before = (bound.time - timedelta(microseconds=1)).astimezone(place).replace(tzinfo=None)
        assert before < quarter, "and not stronger than was meant"
        assert bound >= last
        quarter, last = quarter + step, bound


STRICT = {
    "left out: the moment of the change may follow": (LEFT_OUT, rt.RowtimeBound("2026-03-29T01:00:00Z")),
    "the first that was left out": ("2026-03-29T02:00:00", rt.RowtimeBound("2026-03-29T01:00:00Z")),
    "the first after it is a time like others": (
        "2026-03-29T03:00:00",
        rt.RowtimeBound("2026-03-29T01:00:00Z", strict=True),
    ),
    "twice": (TWICE, rt.RowtimeBound("2026-10-25T00:30:00Z", strict=True)),
}


@pytest.mark.parametrize("case", STRICT)
def test_a_strict_bound_takes_each_row_that_the_clocks_show_after_it(case: str) -> None:
    given, bound = STRICT[case]
    path, sink = sink_in()
    sink.sendRowtimeBound(given, strict=True)
    sink.sendRow((bound.time + timedelta(microseconds=bound.strict), "the first that may follow"))
    sink.close()
    assert rt.RowtimeBound(given, strict=True, tz=BERLIN) == bound
    assert landed(path) == [rt.RowtimeBound.fromFloor(bound.floor).time.isoformat().replace("+00:00", "Z")]
    assert rt.describeStream(path).rejected == 0


def test_another_zone_in_the_call_goes_before_the_sinks() -> None:
    path, sink = sink_in()
    sink.sendRowtimeBound(NOON, tz="UTC")
    sink.flush()
    assert rt.describeStream(path).bound == rt.RowtimeBound(NOON)
    sink.close()


@pytest.mark.parametrize("tz", ["Berlin", 5, timezone(timedelta(hours=1)), ""])
def test_what_names_no_zone_is_refused(tz: object) -> None:
    with pytest.raises(rt.InvalidOptionError, match="time zone"):
        sink_in(tz)


def test_times_within_other_types_are_refused() -> None:
    with pytest.raises(rt.InvalidOptionError, match=r"\['seen'\] have TIMESTAMPs within a STRUCT, ARRAY or MAP"):
        sink_in(schema="rowtime TIMESTAMP NOT NULL, seen ARRAY<TIMESTAMP>")


def send(path: str, file: Path, *more: str):
    arguments = ["send", path, "--csv", str(file), "--rowtime", "at", "--create", "--tz", BERLIN, *more]
    return CliRunner().invoke(main, arguments)


def test_send_with_a_zone(tmp_path: Path) -> None:
    file, path = tmp_path / "trades.csv", str(tmp_path / "s.rowtime")
    file.write_text("at,n\n2026-01-01T12:00:00,1\n2026-07-01T12:00:00.5,2\n")
    sent = send(path, file, "--final", "2026-07-01T13:00:00")
    assert "Bound: every later row is at or after 2026-07-01T11:00:00Z" in sent.output
    assert landed(path) == ["2026-01-01T11:00:00Z", "2026-07-01T10:00:00.500000Z"]
    assert landed(path, "at") == landed(path)


@pytest.mark.parametrize(
    ("text", "more", "said"),
    [
        (LEFT_OUT, (), "line 3 has '2026-03-29T02:30:00' .*does not exist in Europe/Berlin"),
        ("25.10.2026 02:30", ("--time-format", "%d.%m.%Y %H:%M"), "line 3 has '25.10.2026 02:30' .*occurs twice"),
    ],
)
def test_send_names_the_line_with_a_time_that_is_there_not_once(
    tmp_path: Path, text: str, more: tuple[str, ...], said: str
) -> None:
    file, path = tmp_path / "trades.csv", str(tmp_path / "s.rowtime")
    first = "01.01.2026 12:00" if more else "2026-01-01T12:00:00"
    file.write_text(f"at,n\n{first},1\n{text},2\n")
    sent = send(path, file, *more)
    assert sent.exit_code == 1
    assert re.search(said, sent.output), sent.output
    assert "Nothing was sent" in sent.output


def test_arrow_data_after_the_last_listed_change_of_the_clocks() -> None:
    """A zone's file lists its changes up to 2037, and has a rule for what follows."""
    path = new_stream("rowtime TIMESTAMP NOT NULL, due TIMESTAMP")
    due = datetime(2040, 7, 1, 12)
    with rt.openSink(path, tz="Europe/Berlin") as sink:
        sink.sendRow(("2026-01-01T00:00:00", due))
        sink.sendRows(pa.table({"rowtime": [datetime(2026, 1, 1)], "due": [due]}))
        with pytest.raises(rt.SchemaMismatchError, match="does not exist in Europe/Berlin"):
            sink.sendRows(pa.table({"rowtime": [datetime(2026, 1, 1)], "due": [datetime(2040, 3, 25, 2, 30)]}))
    with rt.openReader(path, order="arrival") as reader:
        found = [row["due"] for train in reader for row in train.rows.to_pylist()]
    assert [f"{time:%H:%M%z}" for time in found] == ["10:00+0000"] * 2


def test_a_time_beyond_the_last_year_in_utc_is_refused() -> None:
    path = new_stream("rowtime TIMESTAMP NOT NULL, due TIMESTAMP")
    with (
        rt.openSink(path, tz="America/New_York") as sink,
        pytest.raises(rt.SchemaMismatchError, match="outside the years 1 to 9999"),
    ):
        sink.sendRow(("2026-01-01T00:00:00", "9999-12-31T23:59:59"))


def test_an_empty_batch_is_of_neither_kind() -> None:
    path = new_stream()
    with rt.openSink(path) as sink:
        sink.sendRow(("2026-01-01T00:00:00Z", "X"))
        sink.sendRows(pa.table({"ticker": pa.array([], pa.string())}))
