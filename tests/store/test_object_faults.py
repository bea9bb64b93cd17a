"""An object store that refuses, or does not answer: calls raise, nothing is lost, and others are not kept waiting."""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import spark_rowtime as rt
from spark_rowtime.store import check_store, create_store, open_store
from spark_rowtime.store.postgres import file_system, inline
from spark_rowtime.store.postgres.objects import InObject, Objects
from spark_rowtime.store.settings import StreamSettings
from tests.conftest import set_s3_environment
from tests.postgresserver import PostgresServer
from tests.s3server import BUCKET, KEY, SECRET, S3Server
from tests.store.gate import OPEN, REFUSING, SILENT, Gate
from tests.store.streams import SCHEMA as SCHEMA_OF_NUMBERS
from tests.store.streams import Writer, at, seconds
from tests.store.streams import read as numbers
from tests.streams import QUIET

SCHEMA = "rowtime TIMESTAMP NOT NULL, text STRING"
TEXT = "a" * 50_000
"""Two rows with this text are an object, one is none."""
TIMEOUT_SECONDS = 5
"""How long a request takes that the test lets fail since nobody answers."""
PATIENT_SECONDS = 240
"""Longer than the server of the tests stands still on a busy machine, and than what others do meanwhile."""
LONGEST_SECONDS = 120
"""A call gives up in this time."""


def limit(monkeypatch: pytest.MonkeyPatch, seconds: int) -> None:
    """A request may take so long, also of a store that is open."""
    monkeypatch.setattr(file_system, "S3_TIMEOUT_SECONDS", seconds)
    file_system._file_system.cache_clear()


@pytest.fixture
def gate(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    set_s3_environment(monkeypatch)
    monkeypatch.setattr(file_system, "S3_ATTEMPTS", 1)
    limit(monkeypatch, PATIENT_SECONDS)
    gate = Gate(int(s3.endpoint.rpartition(":")[2]))
    yield gate
    gate.close()
    file_system._file_system.cache_clear()


@pytest.fixture
def path(
    postgres: PostgresServer,
    gate: Gate,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> str:
    """A stream whose location is behind the gate."""
    path = postgres.url(f"faults/{request.node.name}")
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{gate.port}")
    rt.createStream(path, SCHEMA, location=f"s3://{BUCKET}/{tmp_path.name}", retainBytes=400_000)
    return path


def pair(minute: int) -> list[tuple[str, str]]:
    return [(f"2026-01-05T10:{minute:02d}:0{second}Z", TEXT) for second in range(2)]


def read(path: str) -> list[int]:
    """The minutes of the rows, in the order of the log."""
    with rt.openReader(path, order="arrival") as reader:
        return [row["rowtime"].minute for train in reader for row in train.rows.to_pylist()]


@pytest.mark.parametrize("mode", [REFUSING, SILENT])
def test_a_sink_keeps_its_rows_until_the_location_is_back(
    path: str, gate: Gate, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    with rt.openSink(path, producer="a", linger=QUIET) as sink:
        sink.sendRows(pair(1))
        sink.flush()
        sink.sendRows(pair(2))
        limit(monkeypatch, TIMEOUT_SECONDS)
        gate.turn(mode)
        started = time.monotonic()
        with pytest.raises(rt.StoreUnavailableError, match=r"s3://rows/.*\.arrow, where the stream") as caught:
            sink.flush()
        assert time.monotonic() - started < LONGEST_SECONDS
        assert not any(secret in str(caught.value) + str(caught.value.values) for secret in (SECRET, KEY))
        limit(monkeypatch, PATIENT_SECONDS)
        gate.turn(OPEN)
        sink.sendRows(pair(3))
        sink.flush()
    assert read(path) == [1, 1, 2, 2, 3, 3]
    assert check_store(path).damage == []


def test_a_writer_that_waits_for_the_location_keeps_nobody_waiting(path: str, gate: Gate) -> None:
    """The rows are written before the transaction, so no lock is held meanwhile."""
    with (
        rt.openSink(path, producer="slow", linger=QUIET) as slow,
        rt.openSink(path, producer="b", linger=QUIET) as sink,
    ):
        slow.sendRow(("2026-01-05T10:00:00Z", "small"))
        slow.flush()
        slow.sendRows(pair(1))
        gate.turn(SILENT)
        with ThreadPoolExecutor(1) as thread:
            waiting = thread.submit(slow.flush)
            assert gate.asked.wait(LONGEST_SECONDS)
            for minute in range(2, 6):
                sink.sendRow((f"2026-01-05T10:{minute:02d}:00Z", "small"))
                sink.flush()
            landed, was_waiting = rt.describeStream(path).rows, not waiting.done()
            gate.turn(REFUSING)
            assert isinstance(waiting.exception(), rt.StoreUnavailableError)
        assert (landed, was_waiting) == (5, True)
        gate.turn(OPEN)
        slow.flush()
    assert sorted(read(path)) == [0, 1, 1, 2, 3, 4, 5]


def test_rows_in_an_object_that_have_become_late_keep_nobody_waiting(
    path: str, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are read, and what fits is written again, without the lock."""
    monkeypatch.setattr(inline, "OBJECT_BYTES", 0)
    place = f"{path} of numbers"
    with open_store(path) as there:
        create_store(place, SCHEMA_OF_NUMBERS, StreamSettings(location=there.settings.location))
    with open_store(place) as store, open_store(place) as beside:
        slow, other = Writer(store, "slow"), Writer(beside, "other")
        commit = slow.commit([10, 60], [20], floor=10)
        beside.detach("slow")
        promise = other.send(floor=50)
        gate.turn(SILENT)
        with ThreadPoolExecutor(1) as thread:
            waiting = thread.submit(store.commit, commit)
            assert gate.asked.wait(LONGEST_SECONDS)
            landed, was_waiting = other.send(floor=55), not waiting.done()
            gate.turn(REFUSING)
            assert isinstance(waiting.exception(), rt.StoreUnavailableError)
        assert (landed.seq, was_waiting) == (promise.seq + 1, True)
        gate.turn(OPEN)
        receipt = store.commit(commit)
        assert [seconds(late.rows) for late in receipt.rejected] == [[10], [20]]
        assert [late.bound for late in receipt.rejected] == [at(55)] * 2
        assert numbers(store) == [60]
        assert store.commit(commit) == receipt
    assert check_store(place).damage == []


def test_a_reader_goes_on_where_it_was(path: str, gate: Gate) -> None:
    sink, reader = rt.openSink(path, producer="a", linger=QUIET), rt.openReader(path, order="arrival", name="r")
    with sink, reader:
        found = []
        for minutes in ((1, 2), (3, 4, 5)):
            for minute in minutes:
                sink.sendRows(pair(minute))
                sink.flush()
            if minutes[0] == 3:
                gate.turn(REFUSING)
                with pytest.raises(rt.StoreUnavailableError, match="cannot be used just now"):
                    list(reader)
                gate.turn(OPEN)
            found += [row["rowtime"].minute for train in reader for row in train.rows.to_pylist()]
        assert found == [1, 1, 2, 2, 3, 3, 4, 4, 5, 5]


def test_a_call_that_commits_nothing_does_not_say_so(path: str, gate: Gate) -> None:
    with rt.openSink(path, producer="a", linger=QUIET) as sink:
        sink.sendRows(pair(1))
    gate.turn(REFUSING)
    for call in (lambda: read(path), lambda: rt.deleteStream(path, force=True)):
        with pytest.raises(rt.StoreUnavailableError, match=r"Call again once the location can be used") as caught:
            call()
        assert "committed" not in str(caught.value)


def test_a_deletion_that_cannot_remove_objects_says_who_will(
    path: str, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = f"{path} and another"
    rt.createStream(other, SCHEMA)
    with open_store(path) as store:
        objects = store.objects
    with monkeypatch.context() as patched:
        remove_all = Objects.remove_all

        def refused(objects: Objects) -> None:
            gate.turn(REFUSING)
            remove_all(objects)

        patched.setattr(Objects, "remove_all", refused)
        with pytest.raises(
            rt.StoreUnavailableError, match=r"was deleted, but not its objects: .* The next `rowtime gc`"
        ) as caught:
            rt.deleteStream(path)
        assert not any(wrong in str(caught.value) for wrong in ("committed", "all again"))
    with open_store(other) as store:
        store.gc()
        gate.turn(OPEN)
        assert objects._has_folder()
        store.gc()
        assert not objects._has_folder()


@pytest.mark.long
@pytest.mark.parametrize("mode", [REFUSING, SILENT])
def test_retention_that_cannot_remove_objects_lets_commits_land(
    path: str, gate: Gate, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    """No flush waits for it. The log is cut; the objects are removed once the location is back."""
    took = []
    with caplog.at_level(logging.WARNING), rt.openSink(path, producer="a", linger=QUIET) as sink:
        for minute in range(1, 5):
            sink.sendRows(pair(minute))
            sink.flush()
        limit(monkeypatch, TIMEOUT_SECONDS)
        gate.turn(mode)
        for minute in range(5, 40):
            sink.sendRow((f"2026-01-05T10:{minute:02d}:00Z", TEXT))
            started = time.monotonic()
            sink.flush()
            took.append(time.monotonic() - started)
    assert sorted(took)[-2] < TIMEOUT_SECONDS  # a busy machine may hold up one of them
    assert "Old rows or cuts of" in caplog.text
    assert SECRET not in caplog.text
    with open_store(path) as store:
        assert store.horizon().rows > (8 if mode == REFUSING else 1)  # one removal goes on at a time
        limit(monkeypatch, PATIENT_SECONDS)
        gate.turn(OPEN)
        assert len(store.objects.sizes()) == 4
        assert store.gc().files == 4
        assert store.objects.sizes() == {}
    assert read(path)[-1] == 39
    assert check_store(path).damage == []


class Portal(BaseHTTPRequestHandler):
    """Answers each request with a page, as what stands in the way to an object store does."""

    protocol_version, page = "HTTP/1.1", b"<html>Please sign in</html>"

    def answer(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.send_response(200)
        self.send_header("Content-Length", str(len(self.page)))
        self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(self.page)

    do_GET = do_PUT = do_HEAD = do_POST = answer

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def portal(monkeypatch: pytest.MonkeyPatch, gate: Gate) -> Iterator[Callable[[], None]]:
    """A function after which the portal is where the object store was."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Portal) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield lambda: monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.server_port}")
        server.shutdown()


def test_what_something_else_than_an_object_store_takes_is_not_written(path: str, portal: Callable[[], None]) -> None:
    """Neither the objects of a new stream, nor those of a task of Spark, which does not read the owner's mark."""
    with open_store(path) as store:
        objects = store.objects
    message = pa.record_batch([pa.array(["x"] * 10_000)], names=["text"])
    objects.write(message.schema, message.serialize())
    portal()
    for call in (
        lambda: rt.createStream(f"{path} anew", SCHEMA, location=objects.location),
        lambda: objects.write(message.schema, message.serialize()),
    ):
        with pytest.raises(rt.StoreUnavailableError, match=rf"{len(Portal.page)} bytes there instead of"):
            call()
    with pytest.raises(rt.StreamNotFoundError):
        rt.describeStream(f"{path} anew")


MANY, FAILS_AT = 600, 400
"""So many objects, and each one of so many that are read fails."""


@pytest.fixture
def many(
    postgres: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> str:
    """A stream with many objects, each with one row. Not all of them can be read in turn."""
    path = postgres.url(f"faults/{request.node.name}")
    rt.createStream(path, SCHEMA, location=str(tmp_path / "objects"))
    with open_store(path) as store:
        columns = [pa.array([1_700_000_000_000_000]).cast(pa.timestamp("us", "UTC")), pa.array([TEXT + TEXT])]
        rows = pa.record_batch(columns, schema=store.schema)
        writer = Writer(store, "a")
        trains = tuple(store.stage(rows) for _ in range(MANY))
        store.commit(replace(writer.commit(floor=700_000_001), trains=trains))
    read_object, asked = Objects.read, count(1)

    def fails(objects: Objects, place: InObject, train: str) -> pa.Buffer:
        if next(asked) % FAILS_AT == 0:
            raise rt.StoreUnavailableError("refused")
        return read_object(objects, place, train)

    monkeypatch.setattr(Objects, "read", fails)
    return path


@pytest.mark.parametrize("order", ["arrival", "rowtime"])
def test_a_reader_that_catches_up_keeps_what_it_has_read_when_a_request_fails(many: str, order: str) -> None:
    rows = 0
    with rt.openReader(many, order=order) as reader:
        for _ in range(2):
            with suppress(rt.StoreUnavailableError):
                for train in reader:
                    rows += train.rows.num_rows
    assert rows == MANY


def test_a_reader_in_order_of_arrival_that_is_opened_again_gets_on(many: str) -> None:
    position, rows = "earliest", 0
    for _ in range(2):
        with rt.openReader(many, order="arrival", start=position) as reader, suppress(rt.StoreUnavailableError):
            for train in reader:
                rows, position = rows + train.rows.num_rows, reader.position
    assert rows == MANY
