"""Streams are copied, renamed, deleted and listed: functions and commands, and what they refuse."""

import json
import os
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

import spark_rowtime as rt
from spark_rowtime.store import STREAMS, open_store
from spark_rowtime.store.memory import MemoryStore
from tests.commands import printed

SCHEMA = "rowtime TIMESTAMP NOT NULL, n INT"


@pytest.fixture(params=["memory", "local", "postgres"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where the streams of a test are."""
    if request.param == "postgres":
        url: str = request.getfixturevalue("postgres").url(f"admin-{uuid.uuid4()}")
        return url
    return f"memory://{uuid.uuid4()}" if request.param == "memory" else str(tmp_path)


@pytest.fixture
def path(folder: str) -> str:
    """A stream with one row, which nobody has open."""
    path = f"{folder}/orders"
    rt.createStream(path, SCHEMA)
    with rt.openSink(path, producer="shop") as sink:
        sink.sendRow(("2006-09-11T10:00:00Z", 1))
    return path


def rows(path: str) -> int:
    return rt.describeStream(path).rows


def test_a_copy_ends_where_it_is_told(folder: str, path: str) -> None:
    with rt.openSink(path, producer="shop") as sink:
        assert sink.checkpoint is None
        sink.sendRow(("2006-09-11T12:00:00Z", 2))
    until = ["--until", "2006-09-11T11:00:00Z"], ["--until", "3"]
    for number, given in enumerate(until):
        to = f"{folder}/copy {number}"
        assert json.loads(printed("copy", path, to, *given, "--json")) == {
            "stream": path,
            "to": to,
            "rows": 1,
            "seq": 4 - number,
            "withoutCheckpoint": ["shop"],
        }
        assert rt.describeStream(to).producers[0].status.value == ("left", "attached")[1 - number]
    assert rt.copyStream(path, f"{folder}/whole", until="2006-09-11T12:00:00Z") == ()
    assert rows(f"{folder}/whole") == 2
    assert "there is no event 99" in printed("copy", path, f"{folder}/none", "--until", "99", code=1)
    assert "'soon' is not a time" in printed("copy", path, f"{folder}/none", "--until", "soon", code=1)
    with pytest.raises(rt.StreamNotFoundError):
        rt.describeStream(f"{folder}/none")


def test_a_renamed_stream_is_the_same_stream(folder: str, path: str) -> None:
    with rt.openReader(path, name="alerts") as reader:
        assert len(list(reader)) == 1
        position = reader.position
    rt.renameStream(path, f"{folder}/deeper/sales")
    with pytest.raises(rt.StreamNotFoundError):
        rt.describeStream(path)
    with rt.openSink(f"{folder}/deeper/sales", producer="shop") as sink:
        sink.sendRow(("2006-09-11T10:01:00Z", 2))
    with rt.openReader(f"{folder}/deeper/sales", start=position, name="alerts") as reader:
        assert [train.rows.column("n").to_pylist() for train in reader] == [[2]]
    rt.createStream(path, SCHEMA)
    with pytest.raises(rt.StreamExistsError):
        rt.renameStream(path, f"{folder}/deeper/sales")
    assert (rows(path), rows(f"{folder}/deeper/sales")) == (0, 2)


def test_a_stream_that_is_open_is_not_renamed_or_deleted(folder: str, path: str) -> None:
    with rt.openSink(path, producer="shop") as sink:
        for call in (lambda: rt.renameStream(path, f"{folder}/sales"), lambda: rt.deleteStream(path)):
            with pytest.raises(rt.StreamBusyError):
                call()
        sink.sendRow(("2006-09-11T10:01:00Z", 2))
    assert rows(path) == 2
    rt.deleteStream(path)
    assert rt.listStreams(folder) == []


def test_a_reader_in_another_process_has_it_open(tmp_path: Path) -> None:
    """It has no name, so only its lock says so."""
    path = str(tmp_path / "orders")
    rt.createStream(path, SCHEMA)
    program = f"import spark_rowtime as rt; reader = rt.openReader({path!r}); print('open', flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(rt.__file__).parents[1])},
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "open\n"
        with pytest.raises(rt.StreamBusyError, match="open in some process"):
            rt.renameStream(path, f"{path}-2")
        assert "open in some process" in printed("delete", path, code=1)
        other.communicate("\n")
    printed("rename", path, f"{path}-2")
    printed("delete", f"{path}-2")
    assert list(tmp_path.iterdir()) == []


def test_what_still_reads_a_stream_is_named_before_it_is_deleted(folder: str, path: str) -> None:
    with rt.openReader(path, name="alerts"):
        pass
    with pytest.raises(rt.StreamBusyError, match=r"reader 'alerts' is registered, last seen .* with 1 rows to read"):
        rt.deleteStream(path)
    sink = rt.openSink(path, producer="late")
    with pytest.raises(rt.StreamBusyError, match=r"producer 'late' is attached; reader 'alerts'"):
        rt.deleteStream(path)
    rt.deleteStream(path, force=True)
    with pytest.raises(rt.DataLostError):  # the sink's own timer may have found it before
        sink.sendRow(("2006-09-11T10:01:00Z", 2))
        sink.flush()
    with suppress(rt.DataLostError):
        sink.abandon()
    assert rt.listStreams(folder) == []


def test_a_stream_that_is_used_while_it_is_about_to_be_deleted_stays(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sends() -> None:
        with rt.openSink(path, producer="shop") as sink:
            sink.sendRow(("2006-09-11T10:01:00Z", 2))

    def registers() -> None:
        rt.openReader(path, name="alerts").close()

    def creates_it_again() -> None:
        rt.deleteStream(path, force=True)
        rt.createStream(path, SCHEMA)

    for use in (sends, registers, creates_it_again):

        def users(_: rt.StreamInfo, use: Callable[[], None] = use) -> list[str]:
            use()
            return []

        with monkeypatch.context() as patch, pytest.raises(rt.StreamBusyError, match="was used while"):
            patch.setattr("spark_rowtime.admin.streams._users", users)
            rt.deleteStream(path)
        rt.describeStream(path)
    rt.deleteStream(path)


def test_what_was_altered_stays_so_in_a_stream_that_is_renamed_or_copied() -> None:
    """Also by an object that was opened before, as by another thread just then."""
    rt.createStream("memory://altered", SCHEMA)
    with open_store("memory://altered") as store:
        rt.alterStream("memory://altered", add="x INT")
        assert isinstance(store, MemoryStore)
        for other in (store.copied("memory://copied"), store.move("memory://moved")):
            assert other.schema.names == ["rowtime", "n", "x"]
    STREAMS.pop("memory://altered")


def test_threads_that_create_one_stream_in_memory_share_it() -> None:
    """Else the sinks of the first one would write into a stream that nobody sees."""
    for number in range(200):
        path, start = f"memory://created-{number}", threading.Barrier(2)

        def send(producer: str, path: str = path, start: threading.Barrier = start) -> None:
            start.wait(240)
            rt.createStream(path, SCHEMA, existOk=True)
            with rt.openSink(path, producer=producer, rowsImplyBounds=False) as sink:
                sink.sendRow(("2006-09-11T10:00:00Z", 1))

        with ThreadPoolExecutor(2) as pool:
            list(pool.map(send, ("a", "b")))
        assert rows(path) == 2


@pytest.mark.parametrize(
    "path",
    [
        "postgres://u:s3cret@db/shop/s", "PostgreSQL://u:s3cret@db/shop/s", "postgresql+psycopg://u:s3cret@db/shop/s",
        "jdbc:postgresql://db/shop?password=s3cret", " postgresql://u:s3cret@db/shop/s", "x/http://y:s3cret@z",
        "s3://KEY:s3cret@bucket/x", "postgresql:/u:s3cret@127.0.0.1/s", Path("postgresql://127.0.0.1/shop/s3cret"),
        Path("memory://s3cret"),
    ],
)  # fmt: skip
def test_a_url_that_is_no_path_of_a_stream_is_refused_and_not_repeated(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for call in (rt.openSink, rt.openReader, rt.listStreams, lambda path: rt.createStream(path, SCHEMA)):
        with pytest.raises(rt.InvalidOptionError, match="There is no store for paths that begin with") as caught:
            call(path)
        assert "s3cret" not in f"{caught.value} {caught.value.values}"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", ["check", "describe", "list", "delete", "delete --force", "copy", "rename"])
def test_a_name_that_no_file_can_have_is_one_line(tmp_path: Path, command: str) -> None:
    to = [str(tmp_path / "to")] if command in ("copy", "rename") else []
    assert "File name too long" in printed(*command.split(), str(tmp_path / ("x" * 300)), *to, code=1)


def test_a_reader_of_a_stream_that_is_deleted_by_force_is_told(path: str) -> None:
    with rt.openReader(path, order="arrival") as reader:
        rt.deleteStream(path, force=True)
        with pytest.raises(rt.DataLostError):
            list(reader)
    rt.createStream(path, SCHEMA)
    assert rows(path) == 0


def test_a_damaged_stream_is_listed_and_deleted_by_force(tmp_path: Path) -> None:
    for name in ("good", "bad"):
        rt.createStream(str(tmp_path / name), SCHEMA)
    (tmp_path / "bad" / "catalog.db").write_bytes(b"no catalog" * 1000)
    (tmp_path / ".orders.12345678.copying" / "segments").mkdir(parents=True)
    (tmp_path / "file").touch()
    bad, good = rt.listStreams(str(tmp_path))
    assert isinstance(bad.error, rt.StoreCorruptError)
    assert good.info is not None
    assert "damaged" in printed("list", str(tmp_path))
    with pytest.raises(rt.StoreCorruptError):
        rt.deleteStream(bad.path)
    rt.deleteStream(bad.path, force=True)
    assert [stream.path for stream in rt.listStreams(str(tmp_path))] == [good.path]


def test_the_commands(tmp_path: Path) -> None:
    path = str(tmp_path / "orders")
    rt.createStream(path, SCHEMA)
    with rt.openSink(path, producer="shop") as sink:
        sink.sendRow(("2006-09-11T10:00:00Z", 1))
        sink.flush()
        assert "1 rows, up to event 2" in printed("copy", path, f"{path}-copy")
        table = printed("list", str(tmp_path)).splitlines()
        assert [line.split()[:2] for line in table] == [["stream", "rows"], ["orders", "1"], ["orders-copy", "1"]]
    first, second = map(json.loads, printed("list", str(tmp_path), "--json").splitlines())
    assert (first["stream"], first["rows"], first["holder"]) == (path, 1, None)
    assert (second["stream"], second["holder"], second["bound"]["time"]) == (
        f"{path}-copy",
        "shop",
        "2006-09-11T10:00:00Z",
    )
    assert "is attached" in printed("delete", f"{path}-copy", code=1)
    printed("delete", "--force", f"{path}-copy")
    assert "not a folder" in printed("list", f"{path}-copy", code=1)


@pytest.mark.parametrize("order", ["arrival", "rowtime"])
def test_a_restored_copy_takes_the_place_of_the_stream(folder: str, path: str, order: str) -> None:
    """A reader that is ahead of it is told, also when as much has been sent again, since it would skip that."""
    copy = f"{folder}/copy"
    with rt.openReader(path, order=order) as reader:
        assert len(list(reader)) == 1
        behind = reader.position
        rt.copyStream(path, copy)
        with rt.openSink(path, producer="shop") as sink:
            sink.sendRow(("2006-09-11T10:01:00Z", 2))
        assert len(list(reader)) == 1
        ahead = reader.position
    rt.renameStream(path, f"{folder}/damaged")
    rt.copyStream(copy, path)
    with rt.openSink(path, producer="shop") as sink:
        for n in (3, 4, 5):
            sink.sendRow((f"2006-09-11T10:0{n}:00Z", n))
            sink.flush()
    with pytest.raises(rt.DataLostError, match="a copy that has it up to 3 has taken its place"):
        rt.openReader(path, order=order, start=ahead)
    with rt.openReader(path, order=order, start=behind) as reader:
        assert [n for train in reader for n in train.rows.column("n").to_pylist()] == [3, 4, 5]
        last = reader.position
    with rt.openReader(path, order=order, start=last) as reader:
        assert list(reader) == []
    with pytest.raises(rt.InvalidOptionError, match="belongs to the stream"):
        rt.openReader(f"{folder}/damaged", order=order, start=last)


def test_paths_of_other_forms(tmp_path: Path) -> None:
    place = tmp_path / "grüße & co"
    rt.createStream(place, SCHEMA)  # type: ignore[arg-type]
    rt.alterStream(place, add="coupon STRING")  # type: ignore[arg-type]
    rt.copyStream(place, f"file://{place}-copy")  # type: ignore[arg-type]
    rt.renameStream(f"file://{place}-copy", place.with_name("other"))  # type: ignore[arg-type]
    assert [Path(stream.path).name for stream in rt.listStreams(tmp_path)] == ["grüße & co", "other"]  # type: ignore[arg-type]
    for url in (place.as_uri(), f"file://localhost{place}", f"file:{place}"):
        assert rt.describeStream(url).rows == 0
    for url in ("file://lake/orders", "file://", "file://localhost"):
        with pytest.raises(rt.InvalidOptionError, match="has three slashes before its path"):
            rt.createStream(url, SCHEMA)
    with pytest.raises(rt.InvalidOptionError, match="without NUL"):
        rt.describeStream("file:///a%00b")
    rt.deleteStream(place)  # type: ignore[arg-type]
    with pytest.raises(rt.InvalidOptionError, match="There is no store for paths that begin with"):
        rt.copyStream(f"file://{tmp_path}/other", "s3://bucket/orders")


def test_between_stores(tmp_path: Path) -> None:
    rt.createStream("memory://between", SCHEMA)
    for call in (rt.copyStream, rt.renameStream):
        with pytest.raises(rt.InvalidOptionError, match="different kinds of store"):
            call("memory://between", str(tmp_path / "orders"))
    rt.deleteStream("memory://between")
