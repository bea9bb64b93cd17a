"""Adapters: found by name, hosted, restarted from their checkpoint, one host at a time."""

import json
import logging
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partialmethod
from pathlib import Path
from typing import Any

import pytest
from sample_feed import Minutes, Unready

import spark_rowtime as rt
from spark_rowtime.adapter.adapter import host
from spark_rowtime.adapter.host_lock import only_host
from spark_rowtime.adapter.loading import load
from spark_rowtime.adapter.process import AdapterProcess
from spark_rowtime.bounds.clock import Status
from spark_rowtime.store import open_store
from spark_rowtime.store.snapshot import HOST
from tests.landed import landed

SCHEMA = "rowtime TIMESTAMP NOT NULL, n BIGINT"


@pytest.fixture
def stream(tmp_path: Path) -> str:
    return f"memory://{tmp_path}"


def producer(path: str) -> Any:
    (only,) = rt.describeStream(path).producers
    return only


class Failing:
    """Sends n = 0, 1, 2 with a checkpoint each, then fails while there is something in ``errors``."""

    schema = SCHEMA
    errors: list[BaseException] = []
    instances: list["Failing"] = []

    def __init__(self) -> None:
        self.instances.append(self)

    def run(self, sink: Any) -> None:
        for n in range(int(sink.checkpoint or 0), 6):
            sink.sendRow((f"2006-09-11T10:0{n}:00Z", n))
            if self.errors and n % 3 == 2:
                raise self.errors.pop(0)
            sink.flush(checkpoint=str(n + 1))


def failing(*errors: BaseException) -> type[Failing]:
    return type("Failing", (Failing,), {"errors": list(errors), "instances": []})


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("sample_feed", "names no class. Write module:Class"),
        (":Minutes", "names no class. Write module:Class"),
        ("no_such_module:Feed", "there is no module 'no_such_module', neither in /"),
        ("sample_feed.deeper:Feed", "there is no module 'sample_feed.deeper'"),
        ("sample_feed:Nobody", "the module sample_feed has nothing of that name"),
        ("sample_feed:MINUTES", "the module sample_feed has a int of that name"),
        ("sample_feed:NoFeed", "is not an adapter: the class has no run. It needs schema, and either"),
        ("sample_feed:Notebook", "the class has no schema and no run"),
    ],
)
def test_what_is_no_adapter_says_why(spec: str, said: str) -> None:
    with pytest.raises(rt.InvalidOptionError) as caught:
        load(spec)
    assert said in str(caught.value)


def test_the_current_directory_is_importable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [p for p in sys.path if p])
    (tmp_path / "feed_in_cwd.py").write_text("from sample_feed import Minutes as Mine")
    assert load("feed_in_cwd:Mine") is Minutes


@pytest.mark.parametrize(
    ("code", "said"),
    [("import no_such_library", "No module named 'no_such_library'. Install"), ("1 / 0", "ZeroDivisionError")],
)
def test_a_module_that_cannot_be_imported_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, said: str
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "bad_feed.py").write_text(code)
    with pytest.raises(rt.InvalidOptionError, match=said):
        load("bad_feed:Feed")


def test_host_creates_the_stream_and_leaves_it_complete(stream: str) -> None:
    host("sample_feed:Minutes", stream)
    assert landed(stream) == [0, 1, 2, 3, 4]
    assert (producer(stream).name, producer(stream).status) == ("sample_feed:Minutes", Status.LEFT)
    assert rt.describeStream(stream).bound == rt.RowtimeBound("2006-09-11T11:00:00Z")


def test_a_stream_of_another_schema_is_refused(stream: str) -> None:
    rt.createStream(stream, "rowtime TIMESTAMP NOT NULL, other STRING")
    with pytest.raises(rt.SchemaMismatchError, match="other string"):
        host(Minutes, stream)


def test_an_adapter_that_fails_is_restarted_from_its_checkpoint(stream: str, caplog: pytest.LogCaptureFixture) -> None:
    known = rt.KafkaTopicError("two", topic="orders")
    adapter, waited = failing(ValueError("one"), known, ValueError("three")), []
    with caplog.at_level(logging.WARNING):
        host(adapter, stream, delays=[1, 2, 4], wait=waited.append)
    assert landed(stream) == [0, 1, 2, 3, 4, 5], "rows after the last checkpoint are not doubled"
    assert len(adapter.instances) == 4
    assert waited == [1, 2, 4]
    assert [r.exc_info[1].args[0] for r in caplog.records if r.exc_info] == ["one", "three"]
    assert caplog.messages[1].endswith("restarting it in 2 s. two"), "an error of ours needs no traceback"
    assert producer(stream).epoch == 4


def test_an_adapter_that_comes_no_further_is_given_up(stream: str) -> None:
    adapter, waited = failing(*[ValueError(f"no {n}") for n in range(9)]), []
    with pytest.raises(rt.RowtimeError, match=r"after 2 restarts .*ValueError: no 2.*checkpoints: '.*' at '2'"):
        host(adapter, stream, delays=[1, 2], wait=waited.append)
    assert waited == [1, 2]
    assert producer(stream).status is Status.ATTACHED, "it holds the clock until it is mended"


def test_what_a_stream_records_of_a_failure_has_no_argument(stream: str) -> None:
    """Nor a part of a URL, also where the end of the error is cut off."""

    class Fetch:
        schema = SCHEMA

        def __init__(self, url: str, settings: dict[str, str]) -> None:
            self.url, self.settings = url, settings

        def run(self, sink: Any) -> None:
            sink.flush(checkpoint="0")
            raise ConnectionError(f"no answer: /feed?token=hunter2 as {self.settings['password']}{' ' * 260}{self.url}")

    arguments = {"url": "http://127.0.0.1:9/feed?token=hunter2", "settings": {"password": "open sesame"}}
    with pytest.raises(rt.RowtimeError):
        host(Fetch, stream, arguments=arguments, delays=[], wait=lambda _: None)
    with open_store(stream) as store:
        (told,) = [status.content for status in store.snapshot().statuses if status.role == HOST]
    assert json.loads(told)["error"].startswith("ConnectionError: no answer: *** as ***")
    assert "hunter" not in told


def test_an_error_with_half_a_character_is_a_failure_like_others(orders: str) -> None:
    rt.createStream(orders, SCHEMA)
    adapter = failing(ValueError("no shop \ud83d"))
    host(adapter, orders, delays=[1], wait=lambda _: None)
    assert landed(orders) == [0, 1, 2, 3, 4, 5]


def test_a_run_that_would_do_nothing_is_refused(stream: str) -> None:
    class Yields(Minutes):
        def run(self, sink: Any) -> Any:
            yield sink

    class Waits(Minutes):
        async def run(self, sink: Any) -> None:  # type: ignore[override]
            sink.flush()

    class Wrapped(Waits):
        run = partialmethod(Waits.run)  # type: ignore[assignment]

    class Several:
        schema = SCHEMA

        async def runProducers(self, sinks: Any) -> None:
            sinks.open("a")

    for adapter in (Yields, Waits, Wrapped, Several):
        with pytest.raises(rt.InvalidOptionError, match="has a yield, or is async"):
            host(adapter, stream)


def test_the_delays_start_again_where_it_came_further(stream: str) -> None:
    class Step(Minutes):
        def run(self, sink: Any) -> None:
            n = int(sink.checkpoint or 0)
            sink.sendRow((f"2006-09-11T10:0{n}:00Z", n))
            sink.flush(checkpoint=str(n + 1))
            if n < 5:
                raise ValueError(n)

    waited: list[float] = []
    host(Step, stream, delays=[1, 2], wait=waited.append)
    assert waited == [1] * 5


def test_an_interrupt_ends_it_at_once(stream: str) -> None:
    adapter = failing(KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        host(adapter, stream, wait=pytest.fail)
    assert landed(stream) == [0, 1]
    assert producer(stream).status is Status.ATTACHED


def test_what_fails_before_the_first_run_is_not_repeated(stream: str) -> None:
    with pytest.raises(ConnectionError):
        host(Unready, stream, wait=pytest.fail)
    with pytest.raises(rt.InvalidOptionError, match="onLate"):
        host(Minutes, stream, wait=pytest.fail, onLate="maybe")


@pytest.mark.parametrize(
    "error",
    [
        TypeError("'int' is not iterable"),
        AttributeError("no sendRowz"),
        NameError("rwo"),
        ImportError("no module requests"),
        rt.InvalidOptionError("'noon' is not a time"),
        NotImplementedError(),
    ],
)
def test_an_error_in_its_program_ends_it_at_once(stream: str, error: Exception) -> None:
    with pytest.raises(type(error)) as caught:
        host(failing(error), stream, wait=pytest.fail)
    assert caught.value is error
    assert f"is not restarted: a {type(error).__name__} is taken for an error in its program" in error.__notes__[0]
    assert landed(stream) == [0, 1]
    assert producer(stream).status is Status.ATTACHED, "it holds the clock until it is mended"


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"latenes": "1 hour"}, rt.UnknownOptionError, "names 'latenes', which .* Did you mean 'lateness'"),
        ({"producer": "me"}, rt.UnknownOptionError, "names 'producer'"),
        ({"lateness": "an hour"}, rt.InvalidOptionError, "lateness of 'rowtime'='an hour' is not an interval"),
        ("lateness", rt.InvalidOptionError, "must be a dict of keywords for openSink, .* not 'lateness'"),
    ],
)
def test_wrong_sink_options_are_refused_before_anything_is_made(
    stream: str, options: Any, error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        host(type("Mistaken", (Minutes,), {"sinkOptions": options}), stream, wait=pytest.fail)


def test_a_stream_that_is_not_there_is_created_only_where_it_is_wanted(stream: str) -> None:
    with pytest.raises(rt.StreamNotFoundError):
        host(Minutes, stream, create=False)
    host(Minutes, stream)
    host(Minutes, stream, create=False)


@pytest.mark.parametrize("disguise", [False, True])
def test_a_fenced_adapter_ends_and_is_not_restarted(stream: str, disguise: bool) -> None:
    class Fenced(Minutes):
        def run(self, sink: Any) -> None:
            rt.openSink(stream, producer=sink.producer)
            try:
                super().run(sink)
            except rt.ProducerFencedError as error:
                raise (RuntimeError("something went wrong") if disguise else error) from None

    with pytest.raises(rt.ProducerFencedError):
        host(Fenced, stream, wait=pytest.fail)
    assert producer(stream).epoch == 2
    assert landed(stream) == []


def test_an_adapter_that_is_taken_over_while_it_waits_does_not_fence_back(stream: str) -> None:
    def take_over(_: float) -> None:
        rt.openSink(stream, producer="mine")

    with pytest.raises(rt.ProducerFencedError, match="epoch 1 here, now 2"):
        host(failing(ValueError()), stream, producer="mine", delays=[1], wait=take_over)


def test_an_adapter_that_cannot_start_again_is_given_up(stream: str) -> None:
    class Once(failing(ValueError("at first"))):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            if len(self.instances) > 1:
                raise OSError("no feed")

    with pytest.raises(rt.RowtimeError, match=r"after 3 restarts .*OSError: no feed"):
        host(Once, stream, delays=[1, 2, 3], wait=lambda _: None)


def test_sink_options_come_from_the_adapter_and_from_the_host(stream: str) -> None:
    class Backwards:
        schema = SCHEMA
        sinkOptions = {"rowsImplyBounds": False}

        def run(self, sink: Any) -> None:
            for n in (3, 2, 1):
                sink.sendRow((f"2006-09-11T10:0{n}:00Z", n))

    host(Backwards, stream, producer="mine")
    assert (landed(stream), producer(stream).name) == ([3, 2, 1], "mine")
    with pytest.raises(rt.InvalidOptionError, match="was declared as"):
        host(Backwards, stream, producer="mine", rowsImplyBounds=True)


def test_an_adapter_of_a_fleet(stream: str) -> None:
    """Its rows are in order per value."""

    class Fleet:
        schema = SCHEMA
        sinkOptions = {"inOrderPer": "n", "onLate": "reject"}

        def run(self, sink: Any) -> None:
            sink.sendRows([("2006-09-11T10:05:00Z", 1), ("2006-09-11T10:02:00Z", 2)])
            sink.sendRow(("2006-09-11T10:03:00Z", 2))

    host(Fleet, stream, producer="mine")
    assert (landed(stream), producer(stream).bound) == ([1, 2, 2], rt.RowtimeBound("2006-09-11T10:03:00Z"))
    host(Fleet, stream, producer="mine")
    assert (landed(stream), producer(stream).rejected) == ([1, 2, 2, 1], 2), "it had left: the stream is at 10:05"


def test_a_second_host_of_one_adapter_is_refused(tmp_path: Path) -> None:
    path = str(tmp_path / "orders.rowtime")

    class Host(Minutes):
        def run(self, sink: Any) -> None:
            with pytest.raises(rt.StoreUnavailableError, match=f"hosted on .* by process {os.getpid()}"):
                host("sample_feed:Minutes", path)
            waited: list[float] = []
            with pytest.raises(rt.StoreUnavailableError):
                host("sample_feed:Minutes", path, patience=1, wait=waited.append)
            assert sum(waited) == pytest.approx(1, abs=0.11)
            host("sample_feed:Minutes", path, producer="of another name")
            super().run(sink)

    host(Host, path, producer="sample_feed:Minutes")
    host("sample_feed:Minutes", path)
    assert [p.accepted for p in rt.describeStream(path).producers] == [5, 5]


@pytest.fixture
def orders(tmp_path: Path) -> str:
    return str(tmp_path / "orders.rowtime")


@pytest.fixture
def spawned(orders: str) -> Iterator[Any]:
    started: list[AdapterProcess] = []

    def start(spec: str) -> AdapterProcess:
        rt.createStream(orders, SCHEMA, existOk=True)
        started.append(AdapterProcess(spec, orders))
        return started[-1]

    yield start
    for process in started:
        process.stop()


def test_a_process_hosts_an_adapter_until_it_is_stopped(orders: str, spawned: Any) -> None:
    rt.createStream(orders, SCHEMA)
    process = spawned("sample_feed:Endless")
    with rt.openReader(orders) as reader:
        assert reader.read(timeout=240) is not None
    process.check()
    with pytest.raises(rt.StoreUnavailableError, match=f"by process {process.pid}"):
        host("sample_feed:Endless", orders)
    process.stop(grace=240)
    assert process._process.returncode == 128 + signal.SIGTERM, "it went in order, it was not killed"
    assert (producer(orders).accepted, producer(orders).status) == (1, Status.ATTACHED)


def test_a_process_ends_although_a_thread_of_its_adapter_goes_on(orders: str, spawned: Any) -> None:
    process = spawned("sample_feed:Threaded")
    with rt.openReader(orders) as reader:
        assert reader.read(timeout=240) is not None
    process._process.stdin.close()
    assert process._process.wait(240) == 128 + signal.SIGKILL


def test_a_process_whose_feed_has_ended_is_fine(orders: str, spawned: Any) -> None:
    process = spawned("sample_feed:Minutes")
    assert process._process.wait(240) == 0
    process.check()
    assert landed(orders) == [0, 1, 2, 3, 4]


def test_a_process_that_dies_says_its_last_words(
    orders: str, spawned: Any, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spark_rowtime.adapter.process._PRINT_SECONDS", 240)
    process = spawned("sample_feed:Unready")
    process._process.wait(240)
    with pytest.raises(rt.RowtimeError, match=r"(?s)ended with code 1.*ConnectionError: no feed at port 0"):
        process.check()
    assert "looking for the feed" in capfd.readouterr().err


def test_a_process_ends_when_its_parent_is_killed(orders: str) -> None:
    rt.createStream(orders, SCHEMA)
    code = (
        "import sys; from spark_rowtime.adapter.process import AdapterProcess\n"
        f"print(AdapterProcess('sample_feed:Endless', {orders!r}).pid, flush=True); sys.stdin.read()"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", code], stdin=pipe, stdout=pipe, text=True, env=environment) as parent:
        child = os.pidfd_open(int(parent.stdout.readline()))
        with rt.openReader(orders) as reader:
            assert reader.read(timeout=240) is not None
        parent.kill()
        waiting = select.poll()  # select itself takes no descriptor above 1024
        waiting.register(child, select.POLLIN)
        assert waiting.poll(240_000), "the adapter outlived its parent"
    os.close(child)
    host(Minutes, orders, producer="sample_feed:Endless")


@pytest.mark.parametrize("form", ["{}", "file:{}", "file://{}"])
def test_a_stream_is_hosted_under_any_form_of_its_path(tmp_path: Path, form: str) -> None:
    path = form.format(tmp_path / "s.rowtime")
    rt.createStream(path, "rowtime TIMESTAMP NOT NULL")
    with only_host(path, "feed", 0, lambda _: None):
        assert list((tmp_path / "s.rowtime").glob("host-*.lock"))


def _only_folder(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Makes ``folder`` the one that all users share."""
    monkeypatch.setattr("spark_rowtime.adapter.host_lock.SHARED", str(folder))
    monkeypatch.setattr("tempfile.tempdir", str(folder))


@pytest.mark.parametrize("other", ["{}?connect_timeout=9", "{}?application_name=other"])
def test_a_stream_in_a_database_has_one_lock_however_its_path_is_written(postgres: Any, other: str) -> None:
    path = postgres.url("host-lock", user="rowtime")
    rt.createStream(path, SCHEMA, existOk=True)
    for second in (other.format(path), path.replace("127.0.0.1", "localhost")):
        with (
            only_host(path, "feed", 0, lambda _: None),
            pytest.raises(rt.StoreUnavailableError, match="already hosted on"),
            only_host(second, "feed", 0, lambda _: None),
        ):
            pass
    with only_host(path, "feed", 0, lambda _: None), only_host(path, "another", 0, lambda _: None):
        pass


def test_hosts_with_other_folders_for_temporary_files_have_one_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with only_host("memory://orders", "feed", 0, lambda _: None):
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
        with (
            pytest.raises(rt.StoreUnavailableError, match="already hosted on"),
            only_host("memory://orders", "feed", 0, lambda _: None),
        ):
            pass


def test_where_somebody_has_taken_the_shared_folder_the_lock_is_in_that_of_tmpdir(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("shared", "own"):
        (tmp_path / name).mkdir()
    (tmp_path / "shared" / f"rowtime-{os.getuid()}").write_text("")
    monkeypatch.setattr("spark_rowtime.adapter.host_lock.SHARED", str(tmp_path / "shared"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "own"))
    with only_host("memory://orders", "feed", 0, lambda _: None):
        assert len(list((tmp_path / "own" / f"rowtime-{os.getuid()}").iterdir())) == 1


@pytest.mark.parametrize("trap", ["a link", "of everybody", "a file"])
def test_the_locks_of_streams_without_a_folder_are_where_nobody_else_can_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trap: str
) -> None:
    """Somebody who shares the folder for temporary files must not hold the lock, nor have another file emptied."""
    _only_folder(monkeypatch, tmp_path)
    own, theirs = tmp_path / f"rowtime-{os.getuid()}", tmp_path / "theirs"
    theirs.mkdir(mode=0o700)
    with only_host("memory://orders", "feed", 0, lambda _: None):
        (lock,) = own.iterdir()
        assert (own.stat().st_mode & 0o777, lock.stat().st_mode & 0o777) == (0o700, 0o600)
    lock.unlink()
    own.rmdir()
    if trap == "a link":
        own.symlink_to(theirs)
    elif trap == "of everybody":
        own.mkdir()
        own.chmod(0o777)
    else:
        own.write_text("")
    with (
        pytest.raises(rt.StoreUnavailableError, match="this user alone"),
        only_host("memory://orders", "feed", 0, lambda _: None),
    ):
        pass
    assert list(theirs.iterdir()) == []


def test_a_lock_that_is_a_link_is_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _only_folder(monkeypatch, tmp_path)
    with only_host("memory://orders", "feed", 0, lambda _: None):
        (lock,) = (tmp_path / f"rowtime-{os.getuid()}").iterdir()
    lock.unlink()
    (tmp_path / "notes").write_text("mine")
    lock.symlink_to(tmp_path / "notes")
    with pytest.raises(rt.StoreUnavailableError), only_host("memory://orders", "feed", 0, lambda _: None):
        pass
    assert (tmp_path / "notes").read_text() == "mine"


def test_a_lock_on_a_full_disk_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _only_folder(monkeypatch, tmp_path)
    monkeypatch.setattr(os, "pwrite", lambda *_: os.write(full, b"1"))
    full = os.open("/dev/full", os.O_WRONLY)
    with (
        pytest.raises(rt.StoreUnavailableError, match=r"cannot be used: .*No space left"),
        only_host("memory://orders", "feed", 0, lambda _: None),
    ):
        pass
    os.close(full)
    monkeypatch.undo()
    _only_folder(monkeypatch, tmp_path)
    with only_host("memory://orders", "feed", 0, lambda _: None):
        pass
