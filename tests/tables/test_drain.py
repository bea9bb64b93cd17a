"""Drains into Delta, Iceberg and Parquet: what is in the table, read by those that did not write it."""

import json
import threading
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import polars
import pyarrow as pa
import pytest
from click.testing import CliRunner

import spark_rowtime as rt
from spark_rowtime.cli import main
from spark_rowtime.store import open_store
from spark_rowtime.types.schema import stream_schema
from tests.tables.lake import FORMATS, TRANSACTIONAL, Lake

WIDE = (
    "rowtime TIMESTAMP NOT NULL, n INT NOT NULL, tiny TINYINT, small SMALLINT, big BIGINT, yes BOOLEAN, f FLOAT, "
    "d DOUBLE, cents DECIMAL(38,10), name STRING, raw BINARY, day DATE, local TIMESTAMP_NTZ, "
    "tags ARRAY<STRUCT<x: SMALLINT, y: STRING>>, counts MAP<STRING, ARRAY<DECIMAL(5,2)>>, "
    "place STRUCT<lat: DOUBLE, seen: TIMESTAMP>"
)
VALUES: list[dict[str, Any]] = [
    {
        "tiny": -128,
        "small": 32767,
        "big": -(2**63),
        "yes": True,
        "f": 0.5,
        "d": 1e300,
        "cents": Decimal("9999999999999999999999999999.0123456789"),
        "name": "ä\n\u0000😀",
        "raw": b"\x00\xff",
        "day": date(9999, 12, 31),
        "local": datetime(2026, 3, 29, 2, 30, 0, 1),
        "tags": [{"x": -32768, "y": None}, {"x": None, "y": ""}],
        "counts": {"a": [Decimal("-999.99")], "b": []},
        "place": {"lat": -0.0, "seen": "2026-01-05T14:30:00.000001Z"},
    },
    dict.fromkeys(
        ("tiny", "small", "big", "yes", "f", "d", "cents", "name", "raw", "day", "local", "tags", "counts", "place")
    ),
]
SCHEMA = "rowtime TIMESTAMP NOT NULL, n INT"


def fill(path: str, hours: range, **bound: Any) -> None:
    """A row at half past each hour, and the bound at the quarter after."""
    with rt.openSink(path, producer="shop") as sink:
        for hour in hours:
            sink.sendRow((f"2026-01-05T{hour:02}:30:00Z", hour))
            sink.flush()
        sink.sendRowtimeBound(f"2026-01-05T{hours[-1]:02}:45:00Z")


def wide_stream(lake: Lake, kind: str) -> list[dict[str, Any]]:
    """Makes the lake's stream, with a value at the edges of each type, and nulls; returns its rows."""
    required = kind == "iceberg"  # PyIceberg does not keep a null there, so it is refused
    rt.createStream(lake.stream, WIDE.replace("STRING>>, counts", "STRING>> NOT NULL, counts") if required else WIDE)
    with rt.openSink(lake.stream) as sink:
        for n, values in enumerate(VALUES):
            tags = values["tags"] or ([] if required else None)
            sink.sendRow({"rowtime": f"2026-01-05T1{n}:30:00.000001Z", "n": n, **values, "tags": tags})
        sink.sendRowtimeBound("2026-01-05T12:00:00Z")
    with rt.openReader(lake.stream) as reader:
        return [row for train in reader for row in train.rows.to_pylist()]


@pytest.mark.parametrize("kind", FORMATS)
def test_every_type_is_read_back_exactly_by_others(lake: Lake, kind: str) -> None:
    expected = wide_stream(lake, kind)
    lake.drain(kind)
    read = lake.read(kind)
    assert read.to_pylist() == expected
    assert read.schema.field("local").type.tz is None
    assert read.schema.field("rowtime").type.tz == "UTC"
    by_polars = lake.read_by_polars(kind)
    assert by_polars["cents"].to_list() == [row["cents"] for row in expected]
    assert by_polars["tags"].to_list() == [row["tags"] for row in expected]
    assert by_polars["rowtime"].dtype == polars.Datetime("us", "UTC")
    assert by_polars["rowtime"].to_list() == [row["rowtime"] for row in expected]


@pytest.mark.parametrize("kind", FORMATS)
def test_a_drain_continues_at_the_tables_position_and_moves_its_bound_without_rows(lake: Lake, kind: str) -> None:
    rt.createStream(lake.stream, SCHEMA)
    fill(lake.stream, range(10, 14))
    lake.drain(kind)
    assert lake.numbers(kind) == [10, 11, 12] + [13] * (kind != "parquet")
    lake.drain(kind)
    fill(lake.stream, range(14, 16))
    lake.drain(kind)
    with rt.openSink(lake.stream, producer="shop") as sink:
        sink.sendRowtimeBound("2026-01-05T18:00:00Z")
    lake.drain(kind)
    assert lake.numbers(kind) == list(range(10, 16))
    assert rt.readTableBound(lake.target(kind)) == rt.RowtimeBound("2026-01-05T18:00:00Z")


@pytest.mark.parametrize("kind", TRANSACTIONAL)
def test_a_commit_has_rows_bound_and_position(lake: Lake, kind: str) -> None:
    rt.createStream(lake.stream, SCHEMA)
    fill(lake.stream, range(10, 12))
    lake.drain(kind)
    first, last = lake.commits(kind)
    assert set(first) - {"rowtime.commit"} == {"rowtime.position"}, "what the drain began with"
    assert (last["rowtime.bound"], last["rowtime.strict"]) == ("2026-01-05T11:45:00Z", "false")
    with rt.openReader(lake.stream, start=last["rowtime.position"]) as reader:
        assert reader.read() is None


@pytest.mark.parametrize("kind", FORMATS)
def test_a_stream_that_is_complete_completes_the_table(lake: Lake, kind: str) -> None:
    rt.createStream(lake.stream, SCHEMA)
    fill(lake.stream, range(10, 12))
    rt.openSink(lake.stream, producer="shop").close(complete=True)
    lake.drain(kind)
    assert lake.numbers(kind) == [10, 11]
    bound = rt.readTableBound(lake.target(kind))
    assert bound == rt.RowtimeBound.END


@pytest.mark.parametrize("kind", TRANSACTIONAL)
def test_small_trains_are_gathered_by_rows(lake: Lake, kind: str) -> None:
    rt.createStream(lake.stream, SCHEMA)
    for hour in range(10, 16):
        fill(lake.stream, range(hour, hour + 1))
        with (
            rt.openReader(lake.stream) as reader,
            rt.openTableSink(lake.target(kind), reader.schema, maxRows=2, every="1 hour") as to,
        ):
            if hour in (12, 15):
                reader.drainTo(to)
    assert len(lake.commits(kind)) == 3
    assert lake.numbers(kind) == list(range(10, 16))


def test_what_is_gathered_is_committed_when_the_interval_has_passed(lake: Lake) -> None:
    rt.createStream(lake.stream, SCHEMA)
    fill(lake.stream, range(10, 12))
    now = [0.0]
    with rt.openReader(lake.stream) as reader, rt.openTableSink(lake.target("delta"), reader.schema) as sink:
        sink._now = lambda: now[0]
        sink.sendRows(reader.read().rows)
        sink.flush(checkpoint=reader.position)
        assert (sink.commitDue(), sink.checkpoint) == (10.0, None)
        now[0] = 9.5
        sink.flush(checkpoint=reader.position)
        assert (sink.commitDue(), lake.commits("delta")) == (0.5, [])
        now[0] = 10.0
        assert sink.commitDue() is None
        assert sink.checkpoint == reader.position
    assert len(lake.commits("delta")) == 1


@pytest.mark.parametrize("options", [{}, {"boundsEvery": "5 minutes"}, {"boundsEvery": "0 s"}], ids=str)
def test_a_bound_without_rows_is_committed_less_often(lake: Lake, options: dict[str, str]) -> None:
    """After a quiet time at once; after a commit when the interval for bounds has passed; rows do not wait for it."""
    interval = {"5 minutes": 300.0, "0 s": 10.0}.get(options.get("boundsEvery", ""), 60.0)
    now = [1000.0]
    with rt.openTableSink(lake.target("delta"), stream_schema(SCHEMA), **options) as sink:
        sink._now = lambda: now[0]

        def bound(minute: int) -> float | None:
            sink.sendRowtimeBound(f"2026-01-05T10:{minute:02}:00Z")
            sink.flush(checkpoint=str(minute))
            return sink.commitDue()

        assert bound(1) == 10, "none was before"
        now[0] += 10
        assert sink.commitDue() is None
        assert bound(2) == interval
        now[0] += interval - 1
        assert bound(3) == 1
        now[0] += 1
        assert (sink.commitDue(), len(lake.commits("delta"))) == (None, 2)
        assert bound(4) == interval
        row = {"rowtime": rt.RowtimeBound("2026-01-05T10:04:00Z").time, "n": 1}
        sink.sendRows(pa.RecordBatch.from_pylist([row], stream_schema(SCHEMA)))
        sink.flush(checkpoint="5")
        assert sink.commitDue() == 10
    assert rt.readTableBound(lake.target("delta")) == rt.RowtimeBound("2026-01-05T10:04:00Z"), "at the end at once"


@pytest.mark.parametrize("kind", FORMATS)
def test_a_drain_that_follows_a_quiet_stream_commits_and_ends_with_it(lake: Lake, kind: str) -> None:
    rt.createStream(lake.stream, SCHEMA)
    fill(lake.stream, range(10, 12))
    committed = threading.Event()

    def drain() -> None:
        with (
            rt.openReader(lake.stream, follow=True) as reader,
            rt.openTableSink(lake.target(kind), reader.schema, every="10 ms") as sink,
        ):
            append = sink._write

            def write() -> None:
                append()
                if sink.rowtimeBound is not None:
                    committed.set()

            sink._write = write
            reader.drainTo(sink)

    thread = threading.Thread(target=drain)
    thread.start()
    assert committed.wait(240)
    assert 10 in lake.numbers(kind), "while the drain waits"
    rt.openSink(lake.stream, producer="shop").close(complete=True)
    thread.join(240)
    assert lake.numbers(kind) == [10, 11]


def test_a_named_reader_confirms_what_is_committed_not_what_is_gathered(lake: Lake) -> None:
    rt.createStream(lake.stream, SCHEMA)
    fill(lake.stream, range(10, 14))
    kept: list[int] = []
    with (
        rt.openReader(lake.stream, order="arrival", name="lake") as reader,
        rt.openTableSink(lake.target("delta"), reader.schema, every="1 hour") as sink,
    ):
        reader._how = type(reader._how)("arrival", max_rows=1)
        send = sink.sendRows

        def sendRows(rows: Any) -> None:
            kept.append(rt.describeStream(lake.stream).readers[0].seq)
            send(rows)

        sink.sendRows = sendRows
        reader.drainTo(sink)
    assert kept == [0] * 4
    with open_store(lake.stream) as store:
        assert rt.describeStream(lake.stream).readers[0].seq == store.head().seq


@pytest.mark.parametrize("kind", FORMATS)
def test_the_command_drains_and_says_the_bound(lake: Lake, kind: str) -> None:
    rt.createStream(lake.stream, SCHEMA)
    fill(lake.stream, range(10, 12))
    result = CliRunner().invoke(main, ["drain", lake.stream, lake.target(kind), "--every", "1 s", "--max-rows", "5"])
    bound = "11:00:00Z" if kind == "parquet" else "11:45:00Z"
    assert result.output == f"{lake.target(kind)}: 2 row(s) read; the table's bound is 2026-01-05T{bound}\n"
    assert result.exit_code == 0


def test_the_options_for_tables_are_refused_for_a_consumer(lake: Lake) -> None:
    result = CliRunner().invoke(main, ["drain", lake.stream, "json:JSONDecoder", "--every", "1 s"])
    assert (result.exit_code, "are for tables and topics" in result.output) == (2, True)


def test_a_position_before_a_time_gives_the_rows_from_there_on_again(lake: Lake) -> None:
    rt.createStream(lake.stream, SCHEMA)
    fill(lake.stream, range(10, 14))
    lake.drain("parquet")
    state = json.loads((lake.folder / "parquet/_rowtime/state.json").read_text())
    assert state["rowtime.bound"] == "2026-01-05T13:00:00Z"
    with rt.openReader(lake.stream, start=state["rowtime.position"]) as reader:
        assert [n for train in reader for n in train.rows.column("n").to_pylist()] == [13]


@pytest.mark.parametrize("local", ["", ", at TIMESTAMP_NTZ", ", at ARRAY<STRUCT<x: TIMESTAMP_NTZ>>"])
def test_a_delta_table_lists_the_feature_of_not_null_columns_where_it_lists_features(lake: Lake, local: str) -> None:
    """Otherwise Spark refuses it; see test_spark_reads.py."""
    from deltalake import DeltaTable

    rt.createStream(lake.stream, SCHEMA + local)
    lake.drain("delta")
    protocol = DeltaTable(f"{lake.folder}/delta").protocol()
    assert ("invariants" in (protocol.writer_features or [])) == bool(local)
    assert (protocol.min_reader_version, protocol.min_writer_version) == ((3, 7) if local else (1, 2))


@pytest.mark.parametrize("start", ["2026-01-05T10:20:00Z", "2026-01-05T11:00:00Z", "latest", "removed"])
def test_folders_of_a_drain_that_begins_within_a_period_begin_with_the_next(
    lake: Lake, start: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Law *whole*: a folder that is there is complete, also where a second drain goes on."""
    rt.createStream(lake.stream, "rowtime TIMESTAMP NOT NULL, n INT, pad STRING")
    with rt.openSink(lake.stream, producer="feed") as sink:
        for n in range(8):
            sink.sendRow((f"2026-01-05T{10 + n // 4}:{n % 4 * 15:02}:00Z", n, "x" * 1000))
            sink.flush()
    if start == "removed":
        done = CliRunner().invoke(main, ["gc", lake.stream, "--bytes", "9000"])
        assert done.exit_code == 0, done.output
        with rt.openReader(lake.stream, order="arrival") as reader:
            (left, *_), *_ = (train.rows.column("n").to_pylist() for train in reader)
        assert 0 < left < 4, "some rows of the first hour are gone"
    for n in range(8, 16):
        begin = "earliest" if start == "removed" else start
        with (
            rt.openReader(lake.stream, start=begin) as reader,
            rt.openTableSink(lake.target("parquet"), reader.schema) as to,
        ):
            reader.drainTo(to)
        with rt.openSink(lake.stream, producer="feed") as sink:
            sink.sendRow((f"2026-01-05T{10 + n // 4}:{n % 4 * 15:02}:00Z", n, ""))
    first = 8 if start == "latest" else 4
    assert lake.numbers("parquet") == [*range(first, 12)]
    assert ("is within date=2026-01-05/hour=" in caplog.text) == ("T11" not in start)


def test_a_drain_that_ends_in_the_period_in_which_it_began_leaves_the_rest_of_it_out_later(lake: Lake) -> None:
    rt.createStream(lake.stream, SCHEMA)
    sink = rt.openSink(lake.stream, producer="feed")
    for times in (["10:00", "10:15", "10:30"], ["10:45", "11:15", "12:00"]):
        for time in times:
            sink.sendRow((f"2026-01-05T{time}:00Z", int(time.replace(":", ""))))
        sink.flush()
        with (
            rt.openReader(lake.stream, start="2026-01-05T10:20:00Z") as reader,
            rt.openTableSink(lake.target("parquet"), reader.schema) as to,
        ):
            reader.drainTo(to)
    sink.close()
    assert lake.numbers("parquet") == [1115]


def test_the_last_day_of_the_calendar_is_a_folder_like_others(lake: Lake) -> None:
    """The bound went to where it stood within the day, and the rows before it were lost."""
    rt.createStream(lake.stream, SCHEMA, maxAhead=None)
    target = lake.target("parquet").replace("/hour=%H", "/all")
    sink = rt.openSink(lake.stream, producer="feed")
    for n, time in enumerate(("2026-01-05T10:00:00Z", "9999-12-31T00:00:00Z", "9999-12-31T12:00:00Z")):
        sink.sendRow((time, n))
    sink.flush()
    for complete in (False, True):
        with rt.openReader(lake.stream) as reader, rt.openTableSink(target, reader.schema) as to:
            reader.drainTo(to)
        if not complete:
            assert rt.readTableBound(target) == rt.RowtimeBound("9999-12-31T00:00:00Z")
            sink.sendRow(("9999-12-31T13:00:00Z", 3))
            sink.close(complete=True)
    assert lake.numbers("parquet") == [0, 1, 2, 3]
    assert (lake.folder / "parquet/date=9999-12-31").is_dir()


def test_folders_of_parquet_by_the_clocks_of_a_zone(lake: Lake) -> None:
    rt.createStream(lake.stream, SCHEMA)
    times = ["2026-10-24T23:30:00Z", "2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z", "2026-10-25T02:30:00Z"]
    with rt.openSink(lake.stream, rowsImplyBounds=False) as sink:
        sink.sendRows([(time, n) for n, time in enumerate(times)])
        sink.sendRowtimeBound("2026-10-25T02:00:00Z")
    target = lake.target("parquet")
    done = CliRunner().invoke(main, ["drain", lake.stream, target, "--tz", "Europe/Berlin"])
    assert done.exit_code == 0, done.output
    folders = {
        str(file.parent.relative_to(lake.folder / "parquet")): file for file in lake.folder.rglob("rows-*.parquet")
    }
    assert sorted(folders) == ["date=2026-10-25/hour=01", "date=2026-10-25/hour=02"], "02:00 comes twice"
    assert lake.numbers("parquet") == [0, 1, 2]
    assert rt.readTableBound(target) == rt.RowtimeBound("2026-10-25T02:00:00Z")
    again = CliRunner().invoke(main, ["drain", lake.stream, target])
    assert "in the time zone Europe/Berlin, not" in " ".join(again.output.split())
    with pytest.raises(rt.InvalidOptionError, match="tz is for folders of Parquet"):
        lake.drain("delta", tz="Europe/Berlin")
