"""A process forks while it has streams open: no acknowledged row is lost, no file damaged, and no child hangs."""

import ctypes
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import spark_rowtime as rt
from spark_rowtime.adapter.host_lock import only_host
from spark_rowtime.store import check_store, forks, open_store
from spark_rowtime.store.local.directory import open_local
from spark_rowtime.store.local.folders import SEGMENTS, folder
from spark_rowtime.store.local.segment import open_locked
from tests.patience import wait_long_for_locks
from tests.store import forking
from tests.store.processes import ROOT

pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
PRELUDE = """
import gc, multiprocessing, os, signal, sys, threading
import spark_rowtime as rt
from tests.patience import wait_long_for_locks
from tests.store.forking import *
wait_long_for_locks()
path, notes, *arguments = sys.argv[1:]
"""
OPENED = {
    "a sink": "opened = rt.openSink(path, producer='parent'); send(opened, notes, 'parent')",
    "a reader": "opened = rt.openReader(path, order='arrival')",
}
MEANWHILE = {
    "closes": "opened.close()",
    "goes on": """
if isinstance(opened, rt.StreamSink):
    for n in range(1, ROWS): send(opened, notes, f'parent-{n}', n)
else:
    while opened.read(timeout=0.01): pass
""",
    "exits": "os._exit(0)",
    "is killed": "os.kill(os.getpid(), signal.SIGKILL)",
}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """A stream that waits for a producer, so that no row is late, and a file for notes."""
    wait_long_for_locks(monkeypatch.setitem)
    rt.createStream(str(tmp_path / "s"), forking.DDL, producers=["nobody"])
    return str(tmp_path / "s"), str(tmp_path / "notes")


def started(script: str, *arguments: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", PRELUDE + textwrap.dedent(script), *arguments]
    return subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def ran(script: str, *arguments: str) -> str:
    process = started(script, *arguments)
    output, _ = process.communicate()
    assert process.returncode == 0
    return output


def require_all(place: tuple[str, str], least: int) -> None:
    """Each acknowledged row is there once, and the stream is whole."""
    path, notes = place
    acknowledged = Path(notes).read_text().split()
    with rt.openReader(path, order="arrival") as reader:
        there = Counter(name for train in reader for name in train.rows.column("name").to_pylist())
    assert check_store(path).damage == []
    assert set(acknowledged) <= set(there)
    assert set(there.values()) == {1}
    assert len(acknowledged) >= least


@pytest.mark.parametrize("meanwhile", MEANWHILE)
@pytest.mark.parametrize("opened", OPENED)
def test_children_of_fork_lose_no_row(place: tuple[str, str], opened: str, meanwhile: str) -> None:
    """Three children write, and so does another process, while the parent closes, goes on or dies."""
    script = f"""
        there, begun = os.pipe()
{textwrap.indent(OPENED[opened], " " * 8)}
        for child in range(3):
            forked(lambda: pour(path, notes, f"child{{child}}", begun=lambda: os.write(begun, b"1")))
        os.close(begun)
        for child in range(3):
            assert os.read(there, 1)
{textwrap.indent(textwrap.dedent(MEANWHILE[meanwhile]), " " * 8)}
        while True:
            try:
                assert os.waitstatus_to_exitcode(os.wait()[1]) == 0
            except ChildProcessError:
                break
        """
    parent = started(script, *place)
    for visit in range(10):
        forking.pour(*place, f"visitor{visit}", rows=1)
    parent.communicate()  # its output ends with the last child that has it
    assert parent.returncode == (-signal.SIGKILL if meanwhile == "is killed" else 0)
    require_all(place, 3 * forking.ROWS + 10)


@pytest.mark.long
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_a_pool_of_each_start_method_may_open_what_the_parent_has_open(place: tuple[str, str], method: str) -> None:
    ran(
        f"""
        opened = rt.openSink(path, producer="parent")
        send(opened, notes, "parent-0")
        with multiprocessing.get_context("{method}").Pool(2) as pool:
            assert pool.starmap(pour, [(path, notes, f"task{{n}}", 10) for n in range(4)]) == [10] * 4
        send(opened, notes, "parent-1")
        opened.close()
        """,
        *place,
    )
    require_all(place, 42)


def test_a_server_that_forks_its_workers(place: tuple[str, str]) -> None:
    """As gunicorn does with ``preload_app``: one that was killed is replaced, while the others and the parent write."""
    ran(
        """
        opened = rt.openSink(path, producer="master", lease="1 minute")
        followed = rt.openReader(path, order="arrival")
        send(opened, notes, "master")
        workers = [forked(lambda n=n: pour(path, notes, f"worker{n}", 30)) for n in range(2)]
        for turn in range(3):
            there, begun = os.pipe()
            victim = forked(lambda: pour(path, notes, f"victim{turn}", 10**6, lambda: os.write(begun, b"1")))
            assert os.read(there, 1)
            os.kill(victim, signal.SIGKILL)
            send(opened, notes, f"master-{turn}", turn)
            ended(victim)
            assert followed.read() is not None
        assert ended(*workers) == [0, 0]
        opened.close()
        """,
        *place,
    )
    require_all(place, 60 + 3 + 4)


def test_a_child_of_a_child(place: tuple[str, str]) -> None:
    ran(
        """
        def middle():
            with rt.openSink(path, producer="middle") as sink:
                send(sink, notes, "middle")
                last = forked(lambda: pour(path, notes, "last"))
                send(sink, notes, "middle-1", 1)
                assert ended(last) == [0]
        opened = rt.openReader(path)
        child = forked(middle)
        opened.close()
        assert ended(child) == [0]
        """,
        *place,
    )
    require_all(place, forking.ROWS + 2)


def test_a_reader_of_the_parent_follows_what_the_child_writes(place: tuple[str, str]) -> None:
    printed = ran(
        """
        reader = rt.openReader(path, order="arrival", follow=True)
        child = forked(lambda: pour(path, notes, "child", 3))
        names = []
        while len(names) < 3:
            names += reader.read(timeout=240).rows.column("name").to_pylist()
        print(names, ended(child))
        """,
        *place,
    )
    assert printed == "['child-0', 'child-1', 'child-2'] [0]\n"


@pytest.fixture
def busy(place: tuple[str, str]) -> Iterator[threading.Event]:
    """A thread is in a write transaction on the stream until the event is set."""
    store, inside, leave = open_store(place[0]), threading.Event(), threading.Event()

    def hold() -> None:
        with store._transaction():
            inside.set()
            leave.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    inside.wait()
    yield leave
    leave.set()
    thread.join()
    store.close()


def test_a_child_refuses_a_stream_that_a_thread_was_writing_to(
    place: tuple[str, str], busy: threading.Event, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At once, and as long as it lives; the child may open others, and so may other processes this one."""
    monkeypatch.setattr(forks, "PATIENCE_SECONDS", 0.05)
    rt.createStream(str(tmp_path / "other"), forking.DDL)

    def refused() -> None:
        for _ in range(2):
            with pytest.raises(rt.ProcessForkedError, match=r"'spawn'\) or 'forkserver'") as error:
                rt.openSink(place[0], producer="child")
            assert error.value.values == {"path": place[0]}
        forking.pour(str(tmp_path / "other"), place[1], "child", 3)

    assert forking.ended(forking.forked(refused)) == [0]
    busy.set()
    forking.pour(*place, "parent", 3)
    assert rt.describeStream(place[0]).rows == 3


def test_a_child_refuses_a_stream_that_the_thread_which_forks_is_writing_to(place: tuple[str, str]) -> None:
    """As a signal's handler that forks. The transaction goes on in the parent."""

    def refused() -> None:
        with pytest.raises(rt.ProcessForkedError):
            rt.describeStream(place[0])

    store = open_store(place[0])
    with store._transaction():
        store._catalog.execute("SELECT 1")
        assert forking.ended(forking.forked(refused)) == [0]
        assert store._catalog.in_transaction
    store.close()


@pytest.fixture
def patient_threads() -> Iterator[None]:
    """No thread asks another one for the interpreter's lock.

    The request would be in a fork that Python does not know of: the child would wait for a thread that it has not.
    """
    interval = sys.getswitchinterval()
    sys.setswitchinterval(3600)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("patient_threads")
@pytest.mark.parametrize("told", [True, False])
def test_a_fork_that_is_not_one_of_python_is_refused(place: tuple[str, str], told: bool) -> None:
    """A server in C forks, and tells Python in the child, or not even there. So no connection is closed before."""
    library = ctypes.PyDLL(None)
    sink = rt.openSink(place[0], producer="parent")
    child = library.fork()
    if not child:
        if told:
            ctypes.pythonapi.PyOS_AfterFork_Child()
        try:
            rt.openSink(place[0], producer="child")
        except rt.ProcessForkedError:
            os._exit(0)
        finally:
            os._exit(1)
    assert forking.ended(child) == [0]
    forking.send(sink, place[1], "parent")
    sink.close()


def test_a_fork_waits_for_calls_of_other_threads(
    place: tuple[str, str], busy: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And a thread that opens a stream meanwhile waits for the fork."""
    monkeypatch.setattr(forks, "PATIENCE_SECONDS", 30)

    def release() -> None:
        with forks._FORKS._changed:
            while forks._FORKS._forking is None:
                forks._FORKS._changed.wait(0.01)
        busy.set()

    releasing = threading.Thread(target=release)
    releasing.start()
    child = forking.forked(lambda: forking.pour(*place, "child", 3))
    releasing.join()
    assert forking.ended(child) == [0]
    assert rt.describeStream(place[0]).rows == 3


def test_a_stream_that_was_deleted_after_a_fork_is_not_created_again(place: tuple[str, str]) -> None:
    """The parent closed its connection for the fork, so nothing kept others from deleting the stream."""
    sink = rt.openSink(place[0], producer="parent")
    forking.send(sink, place[1], "parent")
    assert forking.ended(forking.forked(lambda: rt.deleteStream(place[0], force=True))) == [0]
    with pytest.raises(rt.DataLostError, match="is gone"):
        forking.send(sink, place[1], "parent-1", 1)
    with suppress(rt.RowtimeError):
        sink.abandon()


def test_a_stream_is_in_use_after_a_fork_as_before(place: tuple[str, str]) -> None:
    """Others may not rename it while a sink is open that has not been called since."""
    rename = """
        try:
            rt.renameStream(path, path + "-renamed")
        except rt.StreamBusyError:
            print("refused")
        """
    with rt.openSink(place[0], producer="parent", linger="1 hour") as sink:
        sink.sendRow(("2026-01-05T14:30:00Z", "not flushed"))
        assert ran(rename, *place) == "refused\n"
        assert forking.ended(forking.forked(lambda: None)) == [0]
        assert ran(rename, *place) == "refused\n"
    assert rt.describeStream(place[0]).rows == 1


def test_a_log_that_others_remove_during_a_fork_is_no_sign_of_a_restored_copy(place: tuple[str, str]) -> None:
    """While no connection is open here, the last one elsewhere takes the write-ahead log with it."""
    with open_local(place[0]) as store, open_local(place[0]) as other:
        store._catalog.close_for_fork(time.monotonic() + 1)
        assert store._catalog.is_current()
        other.close()
        assert store.head().seq == 1


def test_a_child_has_no_part_in_the_locks_of_its_parent(place: tuple[str, str]) -> None:
    """Neither of a segment nor of a host: a parent that gets kill -9 leaves them free, although its child lives."""
    parent = started(
        """
        from spark_rowtime.adapter.host_lock import only_host
        opened = rt.openSink(path, producer="parent")
        send(opened, notes, "parent")
        there, ready = os.pipe()
        with only_host(path, "hosted", 0, lambda _: None):
            forked(lambda: (os.write(ready, b"1"), sys.stdin.read()))
            os.read(there, 1)
            os.kill(os.getpid(), signal.SIGKILL)
        """,
        *place,
    )
    assert parent.wait(240) == -signal.SIGKILL
    (segment,) = Path(place[0], SEGMENTS).iterdir()
    with folder(Path(place[0]), SEGMENTS) as segments:
        fd = open_locked(segment.name, segments)
    assert fd is not None
    os.close(fd)
    with only_host(place[0], "hosted", 0, lambda _: None):
        parent.communicate()  # the child ends with its input


def test_nothing_that_a_child_inherits_can_be_used_or_changes_the_stream(place: tuple[str, str]) -> None:
    """Neither at its calls, nor when it is collected, nor when the child exits as programs do."""
    ran(
        """
        sink, reader = rt.openSink(path, producer="parent", linger="1 hour"), rt.openReader(path)
        send(sink, notes, "parent")
        sink.sendRow(("2026-01-05T14:30:00Z", "not flushed"))
        child = os.fork()
        if not child:
            for call in (sink.flush, sink.close, reader.read):
                try:
                    call()
                except rt.SinkClosedError as error:
                    assert f"opened in process {os.getppid()}" in str(error)
                else:
                    os._exit(1)
            reader.close()
            del sink, reader
            gc.collect()
            sys.exit(0)
        assert ended(child) == [0]
        sink.close()
        """,
        *place,
    )
    assert rt.describeStream(place[0]).rows == 2


def test_a_stream_in_memory_is_not_there_in_a_child() -> None:
    """A copy would take rows that nobody sees."""
    rt.createStream("memory://forked", forking.DDL)
    reader = rt.openReader("memory://forked")

    def refused() -> None:
        with pytest.raises(rt.StreamNotFoundError, match="no other process can see it"):
            rt.openSink("memory://forked")
        with pytest.raises(rt.SinkClosedError):
            reader.read(timeout=0)
        rt.createStream("memory://forked", forking.DDL)

    assert forking.ended(forking.forked(refused)) == [0]
    with rt.openSink("memory://forked") as sink:
        sink.sendRow(("2026-01-05T14:30:00Z", "parent"))
    assert reader.read() is not None


def test_a_fork_while_a_thread_imports_pandas_for_its_first_rows(place: tuple[str, str]) -> None:
    """Arrow holds a lock until it has imported pandas. A child that inherited it would wait for ever."""
    ran(
        """
        import spark_rowtime.store.forks
        spark_rowtime.store.forks.PATIENCE_SECONDS = 240
        writing = threading.Thread(target=pour, args=(path, notes, "thread", 2))
        writing.start()
        while "pandas" not in sys.modules: pass
        child = forked(lambda: (signal.alarm(240), pour(path, notes, "child", 2)))
        assert ended(child) == [0]
        writing.join()
        """,
        *place,
    )
    require_all(place, 4)


def test_a_fork_does_not_wait_for_ever_for_an_import_that_waits_for_it(place: tuple[str, str]) -> None:
    """Another module takes its lock before the fork, as ``logging`` does, and the import needs that lock."""
    ran(
        """
        import builtins
        import spark_rowtime.store.forks
        spark_rowtime.store.forks.PATIENCE_SECONDS = 0.5
        lock, asked = threading.Lock(), threading.Event()
        os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)

        imports, over = builtins.__import__, threading.Event()

        def needs_lock(name, *more):
            if name.startswith("pandas."):
                asked.set()
                while not lock.locked() and not over.is_set(): pass
                with lock: pass
            return imports(name, *more)

        builtins.__import__ = needs_lock
        writing = threading.Thread(target=pour, args=(path, notes, "thread", 2))
        writing.start()
        asked.wait()
        child = forked(lambda: None)
        over.set()
        assert ended(child) == [0]
        writing.join()
        """,
        *place,
    )
    require_all(place, 2)
