"""A CSV file as a feed: sorted within bounded memory, dealt out to producers, with bounds as time passes."""

import csv
import os
import re
from contextlib import suppress
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spark_rowtime as rt
from spark_rowtime.bounds.bound import RowtimeBound
from spark_rowtime.cli.csv_checkpoint import landed, sent_files
from spark_rowtime.cli.csv_feed import CsvFeed, FeedOptions
from spark_rowtime.cli.csv_rows import CsvRows
from spark_rowtime.sorted_runs import SortedRuns
from spark_rowtime.store import open_store
from spark_rowtime.types.local_time import LocalTime
from spark_rowtime.types.schema import TIMESTAMP, rowtime_micros, stream_schema

HOUR = 3_600_000_000
HEADER = "time,net,mag\n"


def batch(times: list[int], first: int) -> pa.RecordBatch:
    numbers = pa.array(range(first, first + len(times)), pa.int64())
    return pa.record_batch({"rowtime": pa.array(times, pa.int64()).cast(TIMESTAMP), "n": numbers})


@given(
    batches=st.lists(st.lists(st.integers(1, 30) | st.integers(1, 10**15), max_size=12), max_size=8),
    run_bytes=st.sampled_from([1, 100, 300, 1 << 20]),
    batch_rows=st.integers(1, 5),
)
def test_sorted_runs_are_sorted(batches: list[list[int]], run_bytes: int, batch_rows: int) -> None:
    with SortedRuns(run_bytes, batch_rows) as runs:
        rows: list[tuple[int, int]] = []
        for times in batches:
            runs.add(batch(times, len(rows)))
            rows += [(time, len(rows) + at) for at, time in enumerate(times)]
        found = [pair for b in runs.merged() for pair in zip(micros(b), b.column("n").to_pylist(), strict=True)]
    assert found == sorted(rows, key=lambda row: row[0])


def test_runs_are_gone_in_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with SortedRuns(run_bytes=1) as runs:
        runs.add(batch([2, 1], 0))
        assert list(tmp_path.iterdir())
        assert [micros(b) for b in runs.merged()] == [[1, 2]]
    assert not list(tmp_path.iterdir())


def micros(rows: pa.RecordBatch) -> list[int]:
    times: list[int] = rowtime_micros(rows).to_pylist()
    return times


@pytest.fixture
def stream(tmp_path: Path) -> str:
    return f"memory://{tmp_path}"


def write(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "quakes.csv"
    file.write_text(text)
    return file


class Feed:
    """One send of a file into a stream, with tiny batches; ``at_batch`` sees the stream after each."""

    def __init__(self, file: Path, stream: str, *, run_bytes: int = 1000, batch_rows: int = 4, **options: Any) -> None:
        self.rows = CsvRows(file, options.pop("rowtime", "time"))
        self.options = FeedOptions("the file", **options)
        self.stream, self.run_bytes, self.batch_rows = stream, run_bytes, batch_rows

    def send(self, at_batch: Any = lambda _: None) -> int:
        with SortedRuns(self.run_bytes, self.batch_rows) as runs:
            feed = CsvFeed(self.rows, self.options, runs)
            feed.read()
            rt.createStream(self.stream, self.rows.schema, existOk=True)
            return feed.send(self.stream, at_batch)


def table(path: str, order: str = "rowtime") -> pa.Table:
    with rt.openReader(path, order=order) as reader:
        return pa.Table.from_batches([train.rows for train in reader], reader.schema)


def test_rows_are_sent_sorted_and_keep_their_columns(tmp_path: Path, stream: str) -> None:
    file = write(
        tmp_path, HEADER + "2025-05-06T12:00:00Z,se,1\n2025-05-06T10:00:00.5+02:00,ak,\n2025-05-06 09:00,ak,2.5\n"
    )
    with pytest.raises(rt.SchemaMismatchError, match="some times may have a zone and others none"):
        Feed(file, stream).send()
    file = write(tmp_path, file.read_text().replace("09:00", "09:00Z"))
    assert Feed(file, stream).send() == 3
    assert table(stream).to_pylist() == [
        {"rowtime": t, "time": t, "net": net, "mag": mag}
        for t, net, mag in [
            (datetime.fromisoformat("2025-05-06T08:00:00.5Z"), "ak", None),
            (datetime.fromisoformat("2025-05-06T09:00Z"), "ak", 2.5),
            (datetime.fromisoformat("2025-05-06T12:00Z"), "se", 1.0),
        ]
    ]
    assert rt.describeStream(stream).bound == RowtimeBound("2025-05-06T12:00Z", strict=True)


def test_all_producers_join_before_the_first_row_and_hours_complete_on_the_way(tmp_path: Path, stream: str) -> None:
    lines = [f"2025-05-06T{10 + n // 6}:{n % 6}0Z,{'se' if n == 25 else 'ak'},{n}\n" for n in range(30)]
    file = write(tmp_path, HEADER + "".join(reversed(lines)))
    seen: list[tuple[str, int]] = []

    def look(_: int) -> None:
        info = rt.describeStream(stream)
        assert [p.name for p in info.producers] == ["ak", "se"]
        seen.append((f"{info.bound.time:%H:%M}" if info.bound else "none", table(stream, "arrival").num_rows))

    Feed(file, stream, producer="net", interval=HOUR).send(look)
    assert seen[0] == ("10:00", 4), "the quiet producer promises the hour too"
    assert [bound for bound, _ in seen] == ["10:00", "11:00", "11:00", "12:00", "13:00", "13:00", "14:10", "14:10"]
    assert [rows for _, rows in seen] == [4, 8, 12, 16, 20, 24, 28, 30]
    assert all(p.bound == RowtimeBound("2025-05-06T14:50Z", strict=True) for p in rt.describeStream(stream).producers)


def test_without_bounds_a_quiet_producer_holds_the_clock_to_the_end(tmp_path: Path, stream: str) -> None:
    file = write(
        tmp_path, HEADER + "".join(f"2025-05-06T10:{n}Z,{'se' if n == 59 else 'ak'},1\n" for n in range(10, 60))
    )
    seen: list[Any] = []
    Feed(file, stream, producer="net").send(lambda _: seen.append(rt.describeStream(stream).bound))
    assert set(seen[:-1]) == {None}
    assert rt.describeStream(stream).bound == RowtimeBound("2025-05-06T10:59Z", strict=True)


def test_the_final_bound(tmp_path: Path, stream: str) -> None:
    file = write(tmp_path, HEADER + "2025-05-06T10:00Z,ak,1\n")
    with pytest.raises(rt.InvalidOptionError, match="lies before the last row, 2025-05-06T10:00:00Z"):
        Feed(file, stream, final=RowtimeBound("2025-05-06T09:59Z")).send()
    with pytest.raises(rt.StreamNotFoundError):
        rt.describeStream(stream)
    Feed(file, stream, final=RowtimeBound("2025-05-07")).send()
    assert rt.describeStream(stream).bound == RowtimeBound("2025-05-07")


@given(cut=st.integers(0, 7), rows=st.integers(0, 30), producers=st.integers(1, 3))
def test_a_send_that_was_cut_off_goes_on_where_it_was(
    tmp_path_factory: pytest.TempPathFactory, cut: int, rows: int, producers: int
) -> None:
    folder = tmp_path_factory.mktemp("cut")
    lines = [f"2025-05-06T{n // 4:02}:{n % 4}0Z,n{n % producers},{n}\n" for n in range(rows)]
    file, stream = write(folder, HEADER + "".join(lines)), f"memory://{folder}"
    left = [cut]

    def fail(_: int) -> None:
        left[0] -= 1
        if left[0] == 0:
            raise RuntimeError("the power went")

    feed = Feed(file, stream, producer="net", interval=HOUR)
    sent = 0
    try:
        sent = feed.send(fail)
    except RuntimeError:
        landed = table(stream, "arrival").num_rows
        sent = landed + feed.send()
    assert sent == rows
    assert feed.send() == 0, "a file that is sent twice is there once"
    assert table(stream).column("mag").to_pylist() == list(range(rows))
    assert all(p.rejected == 0 for p in rt.describeStream(stream).producers)


@given(cut=st.integers(0, 9), producer=st.sampled_from([None, "net"]))
def test_files_that_were_sent_are_not_sent_again_whatever_was_sent_since(
    tmp_path_factory: pytest.TempPathFactory, cut: int, producer: str | None
) -> None:
    """The rows of the earlier files would be late, or there twice where they are at the bound."""
    folder = tmp_path_factory.mktemp("files")
    stream, left, feeds = f"memory://{folder}", [cut], []
    for number in range(3):
        lines = [f"2025-05-0{number + 1}T{n:02}:00Z,n{n % 2},{number * 6 + n}\n" for n in range(6)]
        (file := folder / f"{number}.csv").write_text(HEADER + "".join(lines))
        feeds.append(Feed(file, stream, producer=producer, final=RowtimeBound(f"2025-05-0{number + 1}T05:00Z")))

    def fail(_: int) -> None:
        left[0] -= 1
        if left[0] == 0:
            raise RuntimeError("the power went")

    with suppress(RuntimeError):
        for feed in feeds:
            feed.send(fail)
    for feed in [*feeds, *feeds]:
        feed.send()
    assert table(stream).column("mag").to_pylist() == [*range(18)]
    assert all(known.rejected == 0 for known in rt.describeStream(stream).producers)
    assert [feed.send() for feed in feeds] == [0, 0, 0]


@pytest.mark.parametrize("rows", ["1e999", '"a"', "null", "[1]", "1.5", "-1"])
def test_a_number_of_rows_that_is_none_says_nothing_of_the_file(rows: str) -> None:
    """Whoever may write to the stream can write any checkpoint."""
    assert landed(f'{{"csv": "abc", "rows": {rows}}}', {"csv": "abc", "read": {}}) is None


def test_the_files_that_a_checkpoint_remembers_are_limited(stream: str, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("spark_rowtime.cli.csv_feed.MOST_FILES", 2)
    files = [tmp_path / f"{n}.csv" for n in range(4)]
    for n, file in enumerate(files):
        file.write_text(HEADER + f"2025-05-06T1{n}:00Z,ak,{n}\n")
        Feed(file, stream).send()
    with open_store(stream) as store:
        assert len(sent_files(store.producer("the file").checkpoint)) == 2
    assert [Feed(file, stream).send() for file in files[2:]] == [0, 0], "the newest are remembered"
    with pytest.raises(rt.LateRowError):
        Feed(files[0], stream).send()
    assert sent_files('{"files": 7}') == sent_files("[]") == sent_files(None) == []


def test_producers_of_a_send_that_was_cut_off_are_waited_for(tmp_path: Path, stream: str) -> None:
    """The lease of the one that was seen last would end last, and the bound go on to its own, past others' rows."""

    def fail(_: int) -> None:
        raise RuntimeError("the power went")

    text = HEADER + "".join(f"2025-05-06T10:0{n}Z,n{n % 2},{n}\n" for n in range(10))
    with pytest.raises(RuntimeError):
        Feed(write(tmp_path, text), stream, producer="net").send(fail)
    assert [known.lease for known in rt.describeStream(stream).producers] == [None, None]
    with pytest.raises(RuntimeError):
        Feed(write(tmp_path, text), f"{stream}-one").send(fail)
    (alone,) = rt.describeStream(f"{stream}-one").producers
    assert alone.lease is not None, "no other producer of this send can lose rows by its end"


def test_producers_of_a_send_that_fails_at_once_are_let_go(tmp_path: Path, stream: str) -> None:
    """A repetition would fail in the same way, and the stream wait for ever."""
    Feed(write(tmp_path, HEADER + "2025-05-06T11:00Z,a,1\n2025-05-06T11:00Z,b,2\n"), stream, producer="net").send()
    with pytest.raises(rt.LateRowError):
        Feed(write(tmp_path, HEADER + "2025-05-06T09:00Z,c,1\n2025-05-06T12:00Z,d,1\n"), stream, producer="net").send()
    assert rt.describeStream(stream).holder is None


def test_producers_of_a_send_that_fails_midway_are_waited_for_and_named(
    tmp_path: Path, stream: str, caplog: pytest.LogCaptureFixture
) -> None:
    lines = "".join(f"2025-05-06T1{n}:00Z,{'ab'[n % 2]},{n}\n" for n in range(9))
    with pytest.raises(rt.LateRowError):
        Feed(write(tmp_path, HEADER + lines + "2999-05-06T10:00Z,b,9\n"), stream, producer="net").send()
    assert rt.describeStream(stream).holder == "a"
    said = "waits for 'a', 'b' until this send is repeated, or until they are let go, as by: rowtime detach"
    assert f"{said} {stream} a" in caplog.text


def test_a_file_that_is_read_otherwise_is_refused_before_anybody_attaches(tmp_path: Path, stream: str) -> None:
    """Its producers have no lease, so the stream would wait for them."""
    file = write(tmp_path, HEADER + "2025-05-06T10:00Z,ak,1\n")
    Feed(file, stream, producer="net").send()
    other = Feed(file, stream, producer="net")
    other.rows = CsvRows(file, "time", nulls=("", "1"), stream=rt.describeStream(stream).schema)
    with pytest.raises(rt.InvalidOptionError, match="read with other options"):
        other.send()
    assert rt.describeStream(stream).holder is None


def test_a_file_is_another_one_under_another_column(tmp_path: Path, stream: str) -> None:
    file = write(tmp_path, "time,at,net\n2025-05-06T10:00Z,2025-05-07T10:00Z,ak\n")
    for column in ("time", "at"):
        feed = Feed(file, stream, rowtime=column)
        assert (feed.send(), feed.send()) == (1, 0)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "has no column 'time', only []"),
        ("when,net\n2025-05-06T10:00Z,ak\n", "has no column 'time', only ['when', 'net']"),
        ("time,time\n2025-05-06T10:00Z,ak\n", "two columns with the same name"),
        ("time,Net,net\n2025-05-06T10:00Z,ak,b\n", "'net' occurs twice"),
        ("time,rowtime\n2025-05-06T10:00Z,ak\n", "has a column 'rowtime', but rowtime comes from 'time'"),
        ('time,net\n2025-05-06T10:00Z,"a\nb"\n,ak\n', "line 4 has ''"),
        ("time,net\n2025-05-06T10:00Z,ak\nyesterday,ak\n", "line 3 has 'yesterday'"),
        ("time,net\n2025-05-06T10:00Z,ak\n1969-12-31T23:00Z,ak\n", "line 3 has '1969-12-31T23:00Z'"),
        ("time,net\n1746525600,ak\n", "line 2 has '1746525600'"),
        ("time,net\n2025-05-06T10:00Z,ak,7\n", "Expected 2 columns, got 3"),
        ("time,net\n2025-05-06T10:00Z,ak\n2025-05-06T10:01Z,\n", "'net' names the producer, but is empty: line 3"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_before_anything_is_sent(
    tmp_path: Path, stream: str, text: str, said: str
) -> None:
    with pytest.raises(rt.RowtimeError) as caught:
        Feed(write(tmp_path, text), stream, producer="net").send()
    assert said in str(caught.value)
    with pytest.raises(rt.StreamNotFoundError):
        rt.describeStream(stream)


def test_an_unreadable_time_far_down_is_named_by_its_line(tmp_path: Path, stream: str, monkeypatch: Any) -> None:
    monkeypatch.setattr("spark_rowtime.cli.csv_rows._BLOCK", 64)
    good = "".join(f"2025-05-06T10:00:{n:02}Z,ak\n" for n in range(60))
    with pytest.raises(rt.SchemaMismatchError, match="column 'time', line 62 has 'soon'"):
        Feed(write(tmp_path, "time,net\n" + good + "soon,ak\n"), stream).send()


def test_a_column_named_rowtime_is_the_rowtime(tmp_path: Path, stream: str) -> None:
    file = write(tmp_path, "n,rowtime\n1,2025-05-06\n2,2025-05-05\n")
    Feed(file, stream, rowtime="rowtime").send()
    assert table(stream).column_names == ["rowtime", "n"]
    assert table(stream).column("n").to_pylist() == [2, 1]


def test_texts_and_nulls(tmp_path: Path, stream: str) -> None:
    file = write(tmp_path, 'time,country,note,empty\n2025-05-06,NA,"",\n2025-05-07,,x,\n')
    Feed(file, stream).send()
    assert [list(row.values())[2:] for row in table(stream).to_pylist()] == [["NA", "", None], [None, "x", None]]
    rows = CsvRows(file, "time", ["note", "country"], nulls=("", "NA"))
    assert rows.schema.names == ["rowtime", "note", "country"]
    assert [b.column("country").to_pylist() for b in rows.batches()] == [[None, None]]


def test_digits_beyond_microseconds_are_cut_and_own_formats_are_read(tmp_path: Path) -> None:
    file = write(tmp_path, "time\n2025-05-06T10:00:00.123456789Z\n")
    assert [micros(b) for b in CsvRows(file, "time").batches()] == [[RowtimeBound("2025-05-06T10:00:00.123456Z").floor]]
    file = write(tmp_path, "time;x\n06.05.2025 10:00;1\n")
    rows = CsvRows(file, "time", delimiter=";", time_format="%d.%m.%Y %H:%M")
    assert [micros(b) for b in rows.batches()] == [[RowtimeBound("2025-05-06T10:00Z").floor]]


@pytest.mark.parametrize(
    ("texts", "kind"),
    [
        (["123", "-7", "0", ""], pa.int64()),
        (["00123", "01000"], pa.string()),
        (["1", "007"], pa.string()),
        (["+4930123", "1"], pa.string()),
        (["-0", "1"], pa.float64()),
        (["0x1F"], pa.string()),
        (["9223372036854775807"], pa.int64()),
        (["12345678901234567890", "1"], pa.string()),
        (["12345678901234567890"], pa.string()),
        (["9007199254740993", "0.5"], pa.string()),
        (["9007199254740992", "0.5"], pa.float64()),
        (["12.10", "1e5", ".5", "-0.0", "NaN", "-inf"], pa.float64()),
        (["0.30000000000000004", "0.1"], pa.float64()),
        (["99999999999999999.01", "12.1"], pa.string()),
        (["00.5"], pa.string()),
        (["1e400"], pa.string()),
        (["1e-400"], pa.string()),
        (["true", "FALSE", ""], pa.bool_()),
        (["1", "true"], pa.string()),
        (["10:30", "10:30:00"], pa.string()),
        (["2025-05-06", ""], pa.date32()),
        (["2025-05-06T10:00:00.123456000"], TIMESTAMP),
        (["2025-05-06T10:00:00.123456789"], pa.string()),
    ],
)
@pytest.mark.parametrize("block", [64, 16 << 20])
def test_an_inferred_type_keeps_each_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, texts: list[str], kind: pa.DataType, block: int
) -> None:
    monkeypatch.setattr("spark_rowtime.cli.csv_rows._BLOCK", block)
    rows = CsvRows(write(tmp_path, "time,x\n" + "".join(f"2025-05-06T10:00Z,{text}\n" for text in texts)), "time")
    batches = list(rows.batches())
    assert rows.schema.field("x").type == kind
    if kind == pa.string():
        assert [text for b in batches for text in b.column("x").to_pylist()] == texts


@given(
    texts=st.lists(
        st.from_regex(r"[+-]?[0-9]{0,21}(\.[0-9]{0,20})?(e[0-9]{1,3})?", fullmatch=True) | st.integers().map(str),
        min_size=1,
        max_size=4,
    )
)
def test_what_is_read_is_what_the_texts_say(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    folder = tmp_path_factory.mktemp("texts")
    rows = CsvRows(write(folder, "time,x\n" + "".join(f"2025-05-06T10:00Z,{text}\n" for text in texts)), "time")
    for text, value in zip(texts, [x for b in rows.batches() for x in b.column("x").to_pylist()], strict=True):
        assert value == text or value is None or Decimal(text) == Decimal(repr(value))
        assert not (text.startswith(("00", "+")) and not isinstance(value, str)), "as codes and telephone numbers"


def test_a_column_of_texts_in_a_stream_gets_them_also_if_they_look_like_times(tmp_path: Path, stream: str) -> None:
    rt.createStream(stream, "rowtime TIMESTAMP NOT NULL, time TIMESTAMP, x STRING")
    file = write(tmp_path, "time,x\n2025-05-06T10:00,2025-05-06T10:00:00.5\n")
    rows = CsvRows(file, "time", stream=rt.describeStream(stream).schema)
    assert [b.column("x").to_pylist() for b in rows.batches()] == [["2025-05-06T10:00:00.5"]]


def test_a_stream_that_is_there_decides_the_types(tmp_path: Path, stream: str) -> None:
    rt.createStream(stream, "rowtime TIMESTAMP NOT NULL, mag DECIMAL(5,2), time TIMESTAMP")
    schema = rt.describeStream(stream).schema
    file = write(tmp_path, "mag,time\n1.5,2025-05-06T10:00\n")
    rows = CsvRows(file, "time", stream=schema)
    assert [b.schema for b in rows.batches()] == [schema]
    with pytest.raises(rt.SchemaMismatchError, match=r"stream: missing \['time'\]\. .*Rowtime comes from"):
        _ = CsvRows(file, "time", ["mag"], stream=schema).schema
    narrow = schema.remove(schema.get_field_index("time"))
    with pytest.raises(rt.SchemaMismatchError, match=r"unknown \['time'\]\. .*from 'time'.* Add --columns mag,"):
        _ = CsvRows(file, "time", stream=narrow).schema
    assert CsvRows(file, "time", ["mag"], stream=narrow).schema == narrow


@pytest.mark.parametrize(("kind", "good", "bad"), [("FLOAT", "-3.4e38", "1e300"), ("DOUBLE", "1e308", "-1e999")])
def test_a_number_beyond_its_column_does_not_become_an_infinite_one(
    tmp_path: Path, stream: str, kind: str, good: str, bad: str
) -> None:
    rt.createStream(stream, f"rowtime TIMESTAMP NOT NULL, x {kind}")
    schema = rt.describeStream(stream).schema

    def rows(*texts: str) -> list[float]:
        text = "".join(f"2025-05-06T10:00Z,{one}\n" for one in texts)
        read = CsvRows(write(tmp_path, "rowtime,x\n" + text), "rowtime", nulls=("", "n1"), stream=schema)
        return [x for batch in read.batches() for x in batch.column("x").to_pylist()]

    assert rows("inf", "-Infinity", "n1", good)[:3] == [float("inf"), float("-inf"), None]
    with pytest.raises(
        rt.SchemaMismatchError, match=f"column 'x': line 3 has '{bad}' .it is beyond the largest {kind}"
    ):
        rows("inf", bad)


BAD_DECIMALS = [
    "1.005",
    "1e-41",
    "99999999e-41",
    "1e-999",
    f"0.{'0' * 38}123",
    "1_0",
    "\u0661",
    '"n1"',
    "x",
    "100000000",
]


@pytest.mark.parametrize("bad", [*BAD_DECIMALS, "1e-999999999", f"0.{'1' * 5_000_000}", "0e-9000000"])
def test_a_decimal_is_what_its_text_says_or_its_line_is_named(tmp_path: Path, stream: str, bad: str) -> None:
    rt.createStream(stream, "rowtime TIMESTAMP NOT NULL, x DECIMAL(8,2)")
    schema = rt.describeStream(stream).schema

    def rows(*texts: str) -> list[str]:
        text = "".join(f"2025-05-06T10:00Z,{one}\n" for one in texts)
        read = CsvRows(write(tmp_path, "rowtime,x\n" + text), "rowtime", nulls=("", "n1"), stream=schema)
        return [str(x) for batch in read.batches() for x in batch.column("x").to_pylist()]

    assert rows("1.5", " -2 ", "n1", "1e3", "+.25") == ["1.50", "-2.00", "None", "1000.00", "0.25"]
    assert rows("1e0001", f"{'0' * 100}7", "5.", "2.5000") == ["10.00", "7.00", "5.00", "2.50"]
    with pytest.raises(rt.SchemaMismatchError, match=r"column 'x': (line 3 has '|The string 'n1' is not)"):
        rows("1", bad)


@pytest.mark.parametrize("name", ["b\tc", "stranger"])
def test_a_producer_that_cannot_attach_keeps_no_other_attached(tmp_path: Path, stream: str, name: str) -> None:
    schema = "rowtime TIMESTAMP NOT NULL, time TIMESTAMP, net STRING"
    rt.createStream(stream, schema, producers=["a", "b\tc"[:1]], closed=True)
    file = write(tmp_path, f"time,net\n2025-05-06T10:00Z,a\n2025-05-06T10:01Z,{name}\n")
    with pytest.raises(rt.InvalidOptionError):
        Feed(file, stream, producer="net").send()
    assert [p.status.value for p in rt.describeStream(stream).producers] == ["expected", "expected"]


@pytest.mark.parametrize("where", ["header", "row", "both"])
def test_beside_a_long_field_the_line_of_a_number_beyond_its_column_is_found(
    tmp_path: Path, stream: str, where: str
) -> None:
    name = "n" * (200_000 if where != "row" else 1)
    text = "x" * (3_000_000 if where != "header" else 1)
    rt.createStream(stream, f"rowtime TIMESTAMP NOT NULL, x DOUBLE, `{name}` STRING")
    schema = rt.describeStream(stream).schema

    def rows(number: str) -> list[float]:
        file = write(tmp_path, f"rowtime,x,{name}\n2025-05-06T10:00Z,inf,{text}\n2025-05-06T10:00Z,{number},\n")
        read = CsvRows(file, "rowtime", stream=schema)
        return [x for batch in read.batches() for x in batch.column("x").to_pylist()]

    assert rows("1") == [float("inf"), 1]
    with pytest.raises(rt.SchemaMismatchError, match="line 3 has '1e999'"):
        rows("1e999")


def test_a_column_of_keys_names_no_producers(tmp_path: Path, stream: str) -> None:
    file = write(tmp_path, "time,id\n" + "".join(f"2025-05-06T10:00:00Z,{n}\n" for n in range(1001)))
    with pytest.raises(rt.InvalidOptionError, match="more than 1000 different values"):
        Feed(file, stream, producer="id").send()


def test_the_earthquakes(quakes: Path, stream: str) -> None:
    bounds: list[Any] = []
    plain = pa.csv.read_csv(quakes).sort_by("time")
    runs = {"run_bytes": quakes.stat().st_size // 2, "batch_rows": plain.num_rows // 18}
    feed = Feed(quakes, stream, **runs, producer="net", interval=6 * HOUR)
    assert feed.send(lambda _: bounds.append(rt.describeStream(stream).bound)) == plain.num_rows
    info = rt.describeStream(stream)
    networks = set(plain.column("net").to_pylist())
    assert (info.rows, info.rejected, {p.name for p in info.producers}) == (plain.num_rows, 0, networks)
    assert len(set(bounds)) > 15, "time completes while the feed still runs"
    read = table(stream)
    assert read.column("time").cast(pa.int64()) == read.column("rowtime").cast(pa.int64())
    assert sorted(read.column("id").to_pylist()) == sorted(plain.column("id").to_pylist())
    assert read.column("rowtime").cast(pa.timestamp("ns", "UTC")) == plain.column("time").cast(
        pa.timestamp("ns", "UTC")
    )
    silent = [p for p in info.producers if p.name == "se"]
    assert silent[0].accepted == 9
    assert info.bound.time - read.column("rowtime")[-1].as_py() <= timedelta(microseconds=1)


@pytest.mark.parametrize(
    ("form", "text", "said"),
    [
        ("%d.%m.%Y %H:%M", "31.02.2026 10:00", "line 3 has '31.02.2026 10:00'"),
        ("%d.%m.%Y %H:%M:%S", "03.02.2026 10:00:60", "line 3 has '03.02.2026 10:00:60'"),
        ("%Y-%m-%d %H:%M:%S %Z", "2026-02-03 10:00:00 PST", "name the zone with --tz"),
        ("%Q", "soon", "'Q' is a bad directive"),
        ("%d %d", "1 1", "redefinition"),
    ],
)
def test_a_format_reads_only_times_that_there_are(tmp_path: Path, stream: str, form: str, text: str, said: str) -> None:
    """Arrow's own parser makes 3 March of 31 February."""
    good = datetime(2026, 1, 30, 10, 0).strftime(form)
    file = write(tmp_path, f"time,at\n{good},{good}\n{text},{good}\n")
    with pytest.raises(rt.RowtimeError, match=re.escape(said)):
        list(CsvRows(file, "time", time_format=form).batches())
    if said.startswith("line"):
        with pytest.raises(rt.SchemaMismatchError, match=re.escape(f"column 'at': {said}")):
            list(
                CsvRows(write(tmp_path, f"time,at\n{good},{good}\n{good},{text}\n"), "time", time_format=form).batches()
            )


@pytest.mark.parametrize(
    ("form", "text", "time"),
    [
        ("%Y%m%d", "20260203", "2026-02-03T00:00Z"),
        ("%d.%m.%Y %H:%M:%S.%f", "03.02.2026 10:00:00.25", "2026-02-03T10:00:00.25Z"),
        ("%d.%m.%Y %H:%M %z", "3.2.2026 10:00 +0100", "2026-02-03T09:00Z"),
        ("%d.%m.%Y", "2026-02-03T10:00Z", "2026-02-03T10:00Z"),
        ("%F %T", "2026-02-03 10:00:01", "2026-02-03T10:00:01Z"),
        ("%d.%m.%Y %R", "3.2.2026 10:00", "2026-02-03T10:00Z"),
    ],
)
def test_numbers_fractions_and_offsets_of_a_format(
    tmp_path: Path, stream: str, form: str, text: str, time: str
) -> None:
    rows = CsvRows(write(tmp_path, f"time,n\n{text},1\n"), "time", time_format=form)
    assert [micros(b) for b in rows.batches()] == [[RowtimeBound(time).floor]]
    assert rows.schema.field("time").type == TIMESTAMP


@pytest.mark.parametrize(
    "change", [{"time_format": "%m/%d/%Y"}, {"local": LocalTime("Asia/Tokyo")}, {"nulls": ("", "1")}]
)
def test_rows_that_are_read_in_another_way_are_not_those_that_are_there(
    tmp_path: Path, stream: str, change: dict[str, Any]
) -> None:
    """A send that was cut off would leave some of them out, and send others twice."""
    file = write(tmp_path, "time,n\n" + "".join(f"0{n}/05/2026,{n}\n" for n in range(1, 9)))

    def feed(**how: Any) -> Feed:
        made = Feed(file, stream)
        made.rows = CsvRows(file, "time", **{"time_format": "%d/%m/%Y", **how})
        return made

    def fail(_: int) -> None:
        raise RuntimeError("the power went")

    with pytest.raises(RuntimeError):
        feed().send(fail)
    with pytest.raises(rt.InvalidOptionError, match="4 rows of this file are in the stream, read by"):
        feed(**change).send()
    assert feed().send() == 4
    assert table(stream).column("n").to_pylist() == [*range(1, 9)]
    bound = rt.describeStream(stream).bound
    with pytest.raises(rt.InvalidOptionError, match="All rows of this file are in the stream, read with other options"):
        feed(**change).send()
    assert (feed().send(), rt.describeStream(stream).bound) == (0, bound)


@pytest.mark.parametrize("interval", [None, HOUR])
def test_no_bound_follows_from_a_row_that_is_rejected(tmp_path: Path, stream: str, interval: int | None) -> None:
    file = write(tmp_path, "time,n\n2026-01-01T00:00Z,1\n9000-01-01T00:00Z,2\n2026-01-01T02:00Z,3\n")
    assert Feed(file, stream, on_late="reject", interval=interval, complete=True).send() == 3
    assert table(stream).column("n").to_pylist() == [1, 3]
    (feed,) = rt.describeStream(stream).producers
    assert (feed.status.value, feed.accepted, feed.rejected) == ("complete", 2, 1)


def test_a_file_that_is_written_while_it_is_read_is_not_sent(tmp_path: Path, stream: str) -> None:
    file = write(tmp_path, HEADER + "2026-01-01T00:00Z,ak,1\n")
    feed = Feed(file, stream)
    batches = feed.rows.batches

    def growing() -> Any:
        for batch in batches():
            with file.open("a") as more:
                more.write("2026-01-01T01:00Z,ak,2\n")
            yield batch

    object.__setattr__(feed.rows, "batches", growing)
    with pytest.raises(rt.SchemaMismatchError, match="changed while it was read"):
        feed.send()


def test_a_file_in_another_encoding_is_refused(tmp_path: Path, stream: str) -> None:
    """Arrow takes its texts for bytes."""
    file = tmp_path / "latin.csv"
    file.write_bytes("time,name\n2026-01-01T00:00Z,Bob\n2026-01-01T00:01Z,Müller\n".encode("latin-1"))
    with pytest.raises(rt.SchemaMismatchError, match=r"column 'name': line 3 has 'M.ller' \(it is not in UTF-8\)"):
        Feed(file, stream).send()


@pytest.mark.parametrize("delimiter", [";;", "", "\n", "€"])
def test_a_delimiter_is_one_character(tmp_path: Path, delimiter: str) -> None:
    with pytest.raises(rt.InvalidOptionError, match="delimiter"):
        CsvRows(write(tmp_path, "time\n"), "time", delimiter=delimiter)


def test_what_is_no_file_or_never_ends_a_field_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(rt.InvalidOptionError, match="no file that can be read more than once"):
        CsvRows(tmp_path / "pipe", "time")
    before = csv.field_size_limit(100)
    try:
        with pytest.raises(rt.SchemaMismatchError, match="line 1: a quote is not closed"):
            CsvRows(write(tmp_path, '"time\n' + 200 * "x"), "time").schema  # noqa: B018
    finally:
        csv.field_size_limit(before)


def test_a_full_folder_for_sorting_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pa.ipc, "new_file", full)
    with SortedRuns(1) as runs, pytest.raises(rt.StoreUnavailableError, match="name another folder in TMPDIR"):
        runs.add(pa.RecordBatch.from_pydict({"rowtime": pa.array([1], TIMESTAMP)}))


def test_a_time_beyond_microseconds_is_cut_towards_the_past(tmp_path: Path) -> None:
    schema = stream_schema("rowtime TIMESTAMP NOT NULL, time TIMESTAMP, before TIMESTAMP")
    file = write(tmp_path, "time,before\n2026-01-01T00:00Z,1969-12-31T23:59:59.9999995Z\n")
    (batch,) = CsvRows(file, "time", stream=schema).batches()
    assert batch.column("before").cast(pa.int64()).to_pylist() == [-1]


def test_a_time_of_a_format_does_not_become_a_number(tmp_path: Path) -> None:
    schema = stream_schema("rowtime TIMESTAMP NOT NULL, day BIGINT, n BIGINT")
    file = write(tmp_path, "day,n\n20260203,1\n")
    with pytest.raises(rt.SchemaMismatchError, match="column 'day' is int64 in the stream"):
        list(CsvRows(file, "day", time_format="%Y%m%d", stream=schema).batches())


def test_what_reads_the_same_is_the_same_way_of_reading(tmp_path: Path) -> None:
    file = write(tmp_path, "time,n\n2026-01-01,1\n")
    plain, spelled = CsvRows(file, "time"), CsvRows(file, "time", ["time", "n"], local=LocalTime("UTC"))
    assert plain.how == spelled.how == {}


def test_in_all_blocks_times_have_an_offset_or_in_none(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("spark_rowtime.cli.csv_rows._BLOCK", 64)
    lines = "".join(f"01.02.2026 10:{n:02}\n" for n in range(30))
    file = write(tmp_path, f"time\n{lines}2026-02-01T10:30Z\n")
    with pytest.raises(rt.SchemaMismatchError, match="it has a time that cannot be read"):
        list(CsvRows(file, "time", time_format="%d.%m.%Y %H:%M").batches())


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('a\n"b\nc\n', 3),
        ('a\nb\n"c', 4),
        ('a\n"b" c\nd\n', 3),
        ('a\n"b"c\n"d\ne\n', 3),
        ('"a\nb"\n"c\n', 4),
    ],
)
def test_a_quote_that_is_not_closed_takes_no_rows_for_text(tmp_path: Path, text: str, line: int) -> None:
    lines, within = list[str](), False
    for part in text.splitlines(keepends=True):
        lines.append(part if within else f"2025-05-06T10:00:00Z,{part}")
        within = within != (part.count('"') % 2 == 1 and part[0] == '"')
    file = tmp_path / "one.csv"
    file.write_text("time,shop\n" + "".join(lines))
    with pytest.raises(rt.SchemaMismatchError, match=f"one.csv, line {line}: a quote is not closed, or text follows"):
        list(CsvRows(file, "time").batches())


@given(st.lists(st.text('ab" \n,', max_size=4), min_size=1, max_size=4))
def test_quotes_that_are_closed_are_read_as_python_reads_them(tmp_path_factory: Any, texts: list[str]) -> None:
    """Also one within a text that is not quoted."""
    file = tmp_path_factory.mktemp("csv") / "one.csv"
    with file.open("w", newline="") as out:
        csv.writer(out).writerows([["time", "x"], *(["2025-05-06T10:00:00Z", text] for text in texts)])
        out.write('2025-05-06T10:00:00Z,5" pipe\n')
    found = [x for one in CsvRows(file, "time", nulls=("NULL",)).batches() for x in one.column("x").to_pylist()]
    assert found == [*texts, '5" pipe']
