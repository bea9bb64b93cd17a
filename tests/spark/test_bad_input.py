"""Bad input: a clear error of the tree, wherever it comes in, and the stream exactly as it was."""

import datetime
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import spark_rowtime as rt
from tests.spark.query_output import Watched, contents, finish, refused
from tests.sparksession import start
from tests.streams import Pipe, at, opened, send

GOOD = {"rowtime": at("11:00"), "x": 1, "s": "a"}
TYPES = [("rowtime", pa.timestamp("us", "UTC")), ("x", pa.int32()), ("s", pa.string())]


def arrow(**columns: Any) -> pa.Table:
    """One row as Arrow data, with other values or types than the stream's."""
    values = {"rowtime": datetime.datetime(2006, 9, 11, 11), "x": 1, "s": "a"} | columns
    return pa.table({name: v if isinstance(v, pa.Array) else [v] for name, v in values.items()})


ROWS: dict[str, tuple[Any, str]] = {
    "a field missing": ({"rowtime": at("11:00"), "x": 1}, "missing ['s']"),
    "a field too many": ({**GOOD, "y": 1}, "unknown ['y']"),
    "a sequence too short": ((at("11:00"), 1), "3 values"),
    "no row at all": ("11:00", "must be a mapping, or a sequence"),
    "null rowtime": ({**GOOD, "rowtime": None}, "rowtime is invalid"),
    "rowtime a number": ({**GOOD, "rowtime": 1157968800}, "rowtime is invalid"),
    "rowtime a date": ({**GOOD, "rowtime": datetime.date(2006, 9, 11)}, "rowtime is invalid"),
    "no time": ({**GOOD, "rowtime": "yesterday"}, "'yesterday' is not a time"),
    "before 1970": ({**GOOD, "rowtime": "1969-12-31T23:59:59Z"}, "later than 1970"),
    "1970 itself": ({**GOOD, "rowtime": "1970-01-01T00:00:00Z"}, "later than 1970"),
    "after 9999": ({**GOOD, "rowtime": datetime.datetime.max.replace(tzinfo=datetime.UTC)}, "at most 9999-12-31T23:59"),
    "a value of another type": ({**GOOD, "x": "one"}, "x='one' does not fit"),
    "a value out of range": ({**GOOD, "x": 2**31}, "x=2147483648 does not fit"),
    "null where it may not be": ({**GOOD, "s": None}, "NOT NULL"),
}
ARROW: dict[str, tuple[Any, str]] = {
    "a field missing": (arrow().drop_columns("s"), "missing ['s']"),
    "a field too many": (arrow(y=1), "unknown ['y']"),
    "null rowtime": (arrow(rowtime=pa.array([None], pa.timestamp("us"))), "'rowtime' is NOT NULL"),
    "rowtime a number": (arrow(rowtime=1157968800), "'rowtime' is int64"),
    "rowtime a text": (arrow(rowtime="yesterday"), "'rowtime' is string"),
    "before 1970": (arrow(rowtime=datetime.datetime(1969, 12, 31)), "later than 1970"),
    "a value of another type": (arrow(x="one"), "'x' is string, not int32"),
    "a value out of range": (arrow(x=2**31), "'x' is int64, not int32"),
    "null where it may not be": (arrow(s=pa.array([None], pa.string())), "'s' is NOT NULL"),
}


@pytest.fixture
def sink(tmp_path: Path) -> Iterator[Any]:
    """A producer of a stream that has a row, a rejected row and a bound at 10:30."""
    path = str(tmp_path / "s.rowtime")
    rt.createStream(path, "rowtime TIMESTAMP NOT NULL, x INT, s STRING NOT NULL")
    with opened(path, "feed", onLate="reject") as sink:
        send(sink, ("10:00", 1, "a"), ("9:00", 2, "late"), promise="10:30")
        sink.path = path
        yield sink


def unchanged(sink: Any, kind: type[rt.RowtimeError], said: str, call: Callable[[], Any]) -> None:
    """``call`` is refused, the stream and the sink are as before, and the sink goes on."""
    before, bound = contents(sink.path), sink.getRowtimeBound()
    with pytest.raises(kind) as caught:
        call()
    assert said in str(caught.value)
    sink.flush()
    assert contents(sink.path) == before
    assert sink.getRowtimeBound() == bound
    sink.sendRow(GOOD)
    sink.flush()
    assert rt.describeStream(sink.path).rows == 2


@pytest.mark.parametrize("case", ROWS)
@pytest.mark.parametrize("call", ["sendRow", "sendRows"])
def test_a_row_that_does_not_fit(sink: Any, call: str, case: str) -> None:
    row, said = ROWS[case]
    sent = {"sendRow": lambda: sink.sendRow(row), "sendRows": lambda: sink.sendRows([GOOD, row])}[call]
    unchanged(sink, rt.SchemaMismatchError, said, sent)


@pytest.mark.parametrize("case", ARROW)
def test_arrow_data_that_does_not_fit(sink: Any, case: str) -> None:
    data, said = ARROW[case]
    unchanged(sink, rt.SchemaMismatchError, said, lambda: sink.sendRows(data))


@pytest.mark.parametrize(
    ("time", "kind", "said"),
    [
        (at("10:29"), rt.BoundRegressionError, "10:30"),
        ("noon", rt.InvalidOptionError, "'noon' is not a time"),
        (None, rt.InvalidOptionError, "None is not a bound"),
        (1157968800, rt.InvalidOptionError, "is not a time"),
        ("1969-12-31T00:00:00Z", rt.InvalidOptionError, "later than 1970"),
        ("10000-01-01T00:00:00Z", rt.InvalidOptionError, "is not a time"),
    ],
)
def test_a_bound_that_is_none(sink: Any, time: Any, kind: type[rt.RowtimeError], said: str) -> None:
    unchanged(sink, kind, said, lambda: sink.sendRowtimeBound(time))


def test_a_time_zone_that_is_none(sink: Any) -> None:
    unchanged(
        sink, rt.InvalidOptionError, "Atlantis", lambda: sink.sendRowtimeBound("2006-09-11T11:00:00", tz="Atlantis")
    )


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"onLate": "ignore"}, "'raise' nor 'reject'"),
        ({"rowtime": "nothing"}, "not a column that can fill rowtime"),
        ({"maxTrainRows": 0}, "maxTrainRows=0"),
        ({"linger": "soon"}, "not an interval"),
        ({"lateness": "late"}, "not an interval"),
        ({"lateness": "1 hour", "kSort": 3}, "kSort"),
        ({"kSort": -1}, "kSort"),
        ({"durability": "forever"}, "'process' nor 'power'"),
    ],
)
def test_options_of_a_sink(sink: Any, options: dict[str, Any], said: str) -> None:
    unchanged(sink, rt.InvalidOptionError, said, lambda: rt.openSink(sink.path, **{"producer": "new", **options}))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"order": "random"}, "'arrival' nor 'rowtime'"),
        ({"hold": "long"}, "not an interval"),
        ({"start": "yesterday"}, "not a time"),
        ({"start": "{}"}, "not a position"),
        ({"start": json.dumps({"stream": "s", "order": "rowtime", "seq": 1, "cut": 0, "floor": None})}, "deleted"),
    ],
)
def test_options_of_a_reader(sink: Any, options: dict[str, Any], said: str) -> None:
    unchanged(sink, rt.InvalidOptionError, said, lambda: rt.openReader(sink.path, **options))


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ("x INT", "rowtime TIMESTAMP NOT NULL"),
        ("rowtime STRING, x INT", "must be a TIMESTAMP"),
        ("rowtime TIMESTAMP, Rowtime TIMESTAMP", "twice"),
        ("rowtime TIMESTAMP, x INTERVAL DAY", "cannot be read"),
        ("rowtime TIMESTAMP,", "cannot be read"),
        (pa.schema([("rowtime", pa.timestamp("us")), ("x", pa.uint64())]), "uint64"),
        ({"rowtime": "timestamp"}, "not a schema"),
    ],
)
def test_a_schema_that_is_none(tmp_path: Path, schema: Any, said: str) -> None:
    with pytest.raises(rt.SchemaMismatchError) as caught:
        rt.createStream(str(tmp_path / "new"), schema)
    assert said in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def nothing(folder: Path) -> str:
    return str(folder / "nothing")


def directory(folder: Path) -> str:
    (folder / "some").mkdir()
    (folder / "some" / "file").write_text("mine")
    return str(folder / "some")


def file(folder: Path) -> str:
    (folder / "file").write_text("mine")
    return str(folder / "file")


def corrupt(folder: Path) -> str:
    path = folder / "corrupt"
    rt.createStream(str(path), "rowtime TIMESTAMP NOT NULL, x INT")
    (path / "catalog.db").write_bytes(b"no database" * 1000)
    return str(path)


def truncated(folder: Path) -> str:
    path = folder / "truncated"
    rt.createStream(str(path), "rowtime TIMESTAMP NOT NULL, x INT")
    (path / "catalog.db").write_bytes((path / "catalog.db").read_bytes()[:5000])
    return str(path)


def foreign(folder: Path) -> str:
    return f"s3://bucket/{folder.name}"


PLACES = [
    (nothing, rt.StreamNotFoundError, "There is nothing at"),
    (directory, rt.StreamNotFoundError, "a directory that is not a stream"),
    (file, rt.StreamNotFoundError, "There is a file at"),
    (corrupt, rt.StoreCorruptError, "Restore the directory from a copy"),
    (truncated, rt.StoreCorruptError, "Restore the directory from a copy"),
    (foreign, rt.InvalidOptionError, "There is no store for paths that begin with"),
]


def tree(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(("place", "kind", "said"), PLACES)
def test_a_path_without_a_stream(tmp_path: Path, place: Any, kind: type[rt.RowtimeError], said: str) -> None:
    path = place(tmp_path)
    before = tree(tmp_path)
    for call in (rt.openSink, rt.openReader, rt.describeStream):
        with pytest.raises(kind) as caught:
            call(path)
        assert said in str(caught.value)
        assert Path(path.partition(":/")[0]).name in str(caught.value)
    assert tree(tmp_path) == before


@pytest.mark.parametrize(("place", "kind", "said"), PLACES)
def test_a_path_without_a_stream_in_spark(pipe: Pipe, place: Any, kind: type[rt.RowtimeError], said: str) -> None:
    path = place(pipe.folder)
    for reader in (pipe.spark.read, pipe.spark.readStream):
        with refused(kind, said):
            reader.format("rowtime").load(path)
    if place is nothing:
        return  # a sink creates the stream
    before = tree(Path(path))
    send(opened(pipe.create("s", "x INT"), "feed"), ("10:00", 1))
    taken = place in (directory, file)
    with refused(rt.StreamExistsError if taken else kind, "Choose another path" if taken else said):
        finish(start(pipe.read("s"), path, pipe.folder / "checkpoint"))
    assert tree(Path(path)) == before


@pytest.mark.parametrize("place", [directory, file, corrupt])
def test_no_stream_is_created_over_something(tmp_path: Path, place: Any) -> None:
    path = place(tmp_path)
    before = tree(tmp_path)
    with pytest.raises(rt.StreamExistsError, match="There is a"):
        rt.createStream(path, "rowtime TIMESTAMP NOT NULL, x INT")
    with pytest.raises(rt.RowtimeError):
        rt.createStream(path, "rowtime TIMESTAMP NOT NULL, x INT", existOk=True)
    assert tree(tmp_path) == before


def test_another_schema_for_a_stream_that_is_there(sink: Any) -> None:
    def create() -> None:
        rt.createStream(sink.path, "rowtime TIMESTAMP NOT NULL, x BIGINT, s STRING NOT NULL", existOk=True)

    unchanged(sink, rt.SchemaMismatchError, "x int64", create)


def test_damaged_rows_are_found_by_the_task_that_reads_them(pipe: Pipe) -> None:
    path = pipe.create("s", "x INT")
    send(opened(path, "feed"), *((f"10:{minute:02d}", minute) for minute in range(60)))
    [segment] = [f for f in Path(path).rglob("*") if f.is_file() and f.stat().st_size and "catalog" not in f.name]
    damaged = bytearray(segment.read_bytes())
    damaged[len(damaged) // 2] ^= 0xFF
    segment.write_bytes(damaged)
    with refused(rt.StoreCorruptError, "feed"):
        pipe.spark.read.format("rowtime").load(path).collect()
    with refused(rt.StoreCorruptError, "feed"):
        Watched().all_available(pipe.read("s"))


def test_a_stream_in_memory_is_refused_by_spark(pipe: Pipe) -> None:
    said = "Spark cannot use memory://in-one-process", "which processes share"
    for reader in (pipe.spark.read, pipe.spark.readStream):
        with refused(rt.InvalidOptionError, *said):
            reader.format("rowtime").load("memory://in-one-process")
    frame = pipe.spark.createDataFrame([(datetime.datetime(2006, 9, 11),)], "rowtime timestamp")
    with refused(rt.InvalidOptionError, *said):
        frame.write.format("rowtime").mode("append").save("memory://in-one-process")
    pipe.create("s", "x INT")
    with refused(rt.InvalidOptionError, *said):
        finish(start(pipe.read("s"), "memory://in-one-process", pipe.folder / "checkpoint"))
