"""Any path is a stream's, or refused with an error that names it; nothing beside it is touched."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import spark_rowtime as rt
from spark_rowtime.spark.options import READ, Options
from tests.hostile.feeds import MANY, TIME
from tests.hostile.kinds import ANYTHING
from tests.streams import opened

SCHEMA = "rowtime TIMESTAMP NOT NULL, x INT"
CALLS: list[Callable[[Any], Any]] = [
    rt.openSink,
    rt.openReader,
    rt.describeStream,
    lambda path: rt.createStream(path, SCHEMA),
]


def goes(path: str, place: Path) -> None:
    """A stream at ``path`` works, and lies at ``place``."""
    rt.createStream(path, SCHEMA)
    with opened(path, "feed") as sink:
        sink.sendRow((TIME, 1))
    with rt.openReader(path) as reader:
        assert [train.rows.num_rows for train in reader if train.rows.num_rows] == [1]
    assert (place / "catalog.db").is_file()


NAMES = [
    "it's",
    'say "x"',
    "größe-漢字-🚂",
    " ",
    "a b ",
    "%2e%2e",
    "100%",
    "a?b=c#d",
    "a;b",
    "-x",
    "~",
    "$HOME",
    "*",
    "\\",
    "a:b",
]


@pytest.mark.parametrize("name", ["x\ny", "\x1b[2J", "a\x07", "\x9b", "\u2028", "Berlin\u200b"])
def test_new_streams_have_no_names_that_break_a_line_or_a_terminal(tmp_path: Path, name: str) -> None:
    """Those that are there stay readable, and can get another name."""
    rt.createStream(str(tmp_path / "plain"), SCHEMA)
    for call in (rt.copyStream, rt.renameStream, lambda _, to: rt.createStream(to, SCHEMA)):
        with pytest.raises(rt.InvalidOptionError, match="control character"):
            call(str(tmp_path / "plain"), str(tmp_path / name))
    (tmp_path / "plain").rename(tmp_path / name)
    with rt.openSink(str(tmp_path / name)) as sink:
        sink.sendRow((TIME, 1))
    assert rt.describeStream(str(tmp_path / name)).rows == 1
    rt.renameStream(str(tmp_path / name), str(tmp_path / "plain"))


UNSEEN = ["Berlin\u200b", "\u202egnorw", "a\xad", "\U000e0041"]


@pytest.mark.parametrize("name", ["x\ny", "\x1b]0;x", "\x9b", "n" * 501, *UNSEEN])
def test_new_names_of_producers_and_readers_are_short_lines(tmp_path: Path, name: str) -> None:
    path = str(tmp_path / "orders")
    for call in (
        lambda: rt.createStream(path, SCHEMA, producers=[name]),
        lambda: rt.createStream(path, SCHEMA) or rt.openSink(path, producer=name),
        lambda: rt.openReader(path, name=name),
    ):
        with pytest.raises(rt.InvalidOptionError, match=r"control character|500 characters") as failed:
            call()
        assert name.isascii() or name not in str(failed.value)
    with opened(path, "n" * 500) as sink:
        sink.sendRow((TIME, 1))


@pytest.mark.parametrize("name", [*NAMES, "n" * 200])
def test_names_of_directories(tmp_path: Path, name: str) -> None:
    goes(str(tmp_path / name), tmp_path / name)
    assert [entry.name for entry in tmp_path.iterdir()] == [name]


def test_ways_to_say_a_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    monkeypatch.chdir(tmp_path)
    ways = {
        f"{tmp_path}/real/../up": "up",
        f"{tmp_path}/link/linked": "real/linked",
        f"{tmp_path}/slash/": "slash",
        f"{tmp_path}//two//slashes": "two/slashes",
        "./relative": "relative",
        f"file://{tmp_path}/scheme": "scheme",
        f"file:{tmp_path}/short": "short",
    }
    for way, place in ways.items():
        goes(way, tmp_path / place)


def test_a_link_to_a_stream_is_the_stream(tmp_path: Path) -> None:
    goes(str(tmp_path / "s"), tmp_path / "s")
    (tmp_path / "link").symlink_to(tmp_path / "s")
    assert rt.describeStream(str(tmp_path / "link")).rows == 1
    with pytest.raises(rt.StreamExistsError):
        rt.createStream(str(tmp_path / "link"), SCHEMA)


def test_a_link_to_a_stream_is_neither_deleted_nor_renamed_in_its_place(tmp_path: Path) -> None:
    goes(str(tmp_path / "s"), tmp_path / "s")
    (tmp_path / "link").symlink_to(tmp_path / "s")
    with pytest.raises(rt.InvalidOptionError, match=f"link is a link to the stream at {tmp_path}/s. Nothing was del"):
        rt.deleteStream(str(tmp_path / "link"))
    with pytest.raises(rt.InvalidOptionError, match=f"link is a link to the stream at {tmp_path}/s. Nothing was ren"):
        rt.renameStream(str(tmp_path / "link"), str(tmp_path / "elsewhere"))
    assert rt.describeStream(str(tmp_path / "link")).rows == 1
    rt.deleteStream(str(tmp_path / "s"))


def test_no_stream_is_in_the_folder_of_another(tmp_path: Path) -> None:
    """It would be deleted with it."""
    goes(str(tmp_path / "s"), tmp_path / "s")
    for place in (tmp_path / "s" / "x" / "y", tmp_path / "s" / "segments" / "inner"):
        for make in (rt.renameStream, rt.copyStream, lambda _, to: rt.createStream(to, SCHEMA)):
            with pytest.raises(rt.StreamExistsError, match="is in the folder of the stream at"):
                make(str(tmp_path / "s"), str(place))
    assert not (tmp_path / "s" / "x").exists()
    rt.createStream(f"{tmp_path}/s/../beside", SCHEMA)


def test_paths_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    paths = [
        *(str(tmp_path / name) for name in ("file/s", "loop/s", "loop", "n" * 300, "a\x00b", "\ud800", "deep/" * 2000)),
        *("kafka://broker:9092/orders", "s3://bucket/x", "http://x/y", "://x", "file://", ""),
    ]
    for path in paths:
        for call in CALLS:
            with pytest.raises(rt.RowtimeError):
                call(path)
    for call in CALLS:
        with pytest.raises((rt.StreamExistsError, rt.StreamNotFoundError)):
            call(str(tmp_path / "dangling"))
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["dangling", "file", "loop"]


@pytest.mark.search
@MANY
@given(ANYTHING)
def test_anything_for_a_path(value: Any) -> None:
    if isinstance(value, str | os.PathLike):
        return
    for call in CALLS:
        with pytest.raises(rt.InvalidOptionError, match="path"):
            call(value)


def test_a_path_object_is_a_path(tmp_path: Path) -> None:
    goes(tmp_path / "s", tmp_path / "s")  # type: ignore[arg-type]


@pytest.mark.search
@MANY
@given(st.text(st.characters()))
def test_the_path_option_of_spark(path: str) -> None:
    try:
        assert Options({"path": path}, READ).path
    except rt.InvalidOptionError as error:
        assert not path or "path" in str(error)
