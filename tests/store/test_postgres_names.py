"""Names and locations that somebody has changed in a database are no paths: nothing else is opened, nothing removed."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import spark_rowtime as rt
from spark_rowtime.store import check_store, create_store, open_store
from spark_rowtime.store.settings import StreamSettings
from tests.postgresserver import PostgresServer
from tests.store.streams import SCHEMA, Writer, read
from tests.thief import thief

LARGE = range(10, 5010)
"""The rows of a train that is an object."""


class Changed:
    """A stream with one object in a folder, whose tables somebody changes who may."""

    def __init__(self, server: PostgresServer, name: str, folder: Path) -> None:
        self.path, self.folder, self._server = server.url(f"names/{name}"), folder / "location", server
        create_store(self.path, SCHEMA, StreamSettings(location=f"file://{self.folder}"))
        with open_store(self.path) as store:
            Writer(store, "a").send(LARGE, floor=6000)
            self.number: int = store.number
            (self.objects,) = self.folder.iterdir()
            (self.object,) = store.objects.sizes()

    def change(self, statement: str, *values: Any) -> None:
        with self._server.connect() as connection:
            assert connection.execute(statement, values).rowcount == 1

    def settings(self, **new: Any) -> None:
        (row,) = self._server.execute(f"SELECT settings FROM rowtime.streams WHERE id = {self.number}")
        text = json.dumps({**json.loads(row[0]), **new})
        self.change("UPDATE rowtime.streams SET settings = %s WHERE id = %s", text, self.number)


@pytest.fixture
def changed(postgres: PostgresServer, request: pytest.FixtureRequest, tmp_path: Path) -> Changed:
    return Changed(postgres, request.node.name, tmp_path)


@pytest.mark.parametrize("name", ["../../other.arrow", "../{}", "x/../{}", "{}\n"])
def test_no_file_is_read_that_is_none_of_the_streams_objects(changed: Changed, tmp_path: Path, name: str) -> None:
    """Although its bytes are those that the commit has named."""
    for place in (tmp_path / "other.arrow", changed.folder / changed.object):
        shutil.copy(changed.objects / changed.object, place)
    given = name.format(changed.object)
    changed.change("UPDATE rowtime.objects SET object = %s WHERE stream = %s", given, changed.number)
    with open_store(changed.path) as store, pytest.raises(rt.StoreCorruptError, match="which is no name of one"):
        read(store)
    (damage,) = check_store(changed.path).damage
    assert "which is no name of one" in damage


def test_no_file_is_removed_that_is_none_of_the_streams_objects(
    changed: Changed, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither one that the tables name, nor one that lies among the objects."""
    precious, beside = tmp_path / "precious.arrow", changed.objects / "notes.txt"
    precious.write_text("precious")
    beside.write_text("of somebody else")
    with open_store(changed.path) as store:
        for name in ("../../precious.arrow", str(precious)):
            insert = "INSERT INTO rowtime.unnamed_objects VALUES (%s, %s, 'outdated', 0)"
            changed.change(insert, changed.number, name)
        time = [10**15]
        store.now = lambda: time[0]
        for _ in range(3):
            time[0] += 2 * 86_400_000_000
            store.gc()
    assert precious.exists()
    assert beside.exists()
    assert "names that no object has" in caplog.text


NOTE = "INSERT INTO rowtime.unnamed_objects VALUES (%s, %s, 'copying', 0)"


def test_what_a_copy_is_said_to_have_left_is_removed_only_if_it_is_its_own(
    changed: Changed, postgres: PostgresServer, tmp_path: Path
) -> None:
    """Not the folder of a stream, nor one without a mark, nor one at a place that is no location."""
    other = tmp_path / "home" / "00000000-0000-0000-0000-000000000000"
    other.mkdir(parents=True)
    (other / "precious").write_text("x")
    (mark,) = postgres.execute(f"SELECT object FROM rowtime.unnamed_objects WHERE stream = {changed.number}")[0]
    changed.change("INSERT INTO rowtime.unnamed_objects VALUES (%s, %s, 'owner', 0)", 9001, mark)
    places = [(changed.folder, changed.objects.name), (other.parent, other.name), (tmp_path, "home")]
    for number, (folder, name) in enumerate(places):
        about = json.dumps({"name": "x", "location": f"file://{folder}", "uuid": name})
        changed.change(NOTE, 9001 + number, about)
    with open_store(changed.path) as store:
        store.gc()
        assert read(store) == list(LARGE)
    assert (other / "precious").exists()
    postgres.execute("DELETE FROM rowtime.unnamed_objects WHERE stream > 9000")


STRANGE: dict[str, Callable[[Changed], None]] = {
    "an id that is a path": lambda c: c.change(
        "UPDATE rowtime.streams SET uuid = '../' || uuid WHERE id = %s", c.number
    ),
    "a location of no kind": lambda c: c.settings(location="ftp://evil.example.com/x"),
    "a location with a key": lambda c: c.settings(location="s3://k:s@bucket/x"),
    "a location that leads up": lambda c: c.settings(location=f"file://{c.folder}/%2e%2e"),
    "a location that is a number": lambda c: c.settings(location=7),
    "another bucket's server": lambda c: c.settings(location="abfss://c@evil.example.com/x"),
    "settings of no version": lambda c: c.settings(no_such=1),
    "ancestors that are none": lambda c: c.change("UPDATE rowtime.streams SET ancestors = '7' WHERE id = %s", c.number),
    "ancestors without an end": lambda c: c.change(
        "UPDATE rowtime.streams SET ancestors = repeat('[', 100000) WHERE id = %s", c.number
    ),
    "a schema that is none": lambda c: c.change("UPDATE rowtime.streams SET schema = 'x' WHERE id = %s", c.number),
}


@pytest.mark.parametrize("what", STRANGE)
def test_a_stream_that_was_changed_into_something_strange_does_not_open(changed: Changed, what: str) -> None:
    STRANGE[what](changed)
    for call in (rt.describeStream, rt.openReader, check_store):
        with pytest.raises(rt.StoreCorruptError, match=r"is none|is not valid|Somebody has changed it"):
            call(changed.path)


def test_no_stored_location_leads_signed_requests_to_a_server(
    changed: Changed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the environment does. A stream of an earlier version opens where that names the same server."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s3cret")
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    with thief() as server:
        place = f"127.0.0.1:{server.port}"
        changed.settings(location=f"s3://bucket/x?region=eu-1&endpoint_override={place}&scheme=http")
        for call in (rt.describeStream, rt.openReader, check_store):
            with pytest.raises(rt.StoreUnavailableError, match=r"names a server.*AWS_ENDPOINT_URL"):
                call(changed.path)
        assert server.calls == 0
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{place}")
        with open_store(changed.path) as store:
            assert store.objects.location == "s3://bucket/x?region=eu-1"
        monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
        with pytest.raises(rt.StoreUnavailableError, match="names a server"):
            rt.describeStream(changed.path)
