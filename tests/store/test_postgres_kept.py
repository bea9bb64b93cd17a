"""The store that a process keeps open which opens a stream for each batch."""

import gc
import os
import signal
import time
from collections.abc import Callable, Iterator

import pytest

import spark_rowtime.store as stores
from spark_rowtime.errors import SinkClosedError
from spark_rowtime.store import create_store, delete_store, open_kept_store, open_store
from spark_rowtime.store.settings import StreamSettings
from tests.postgresserver import PostgresServer
from tests.store.forking import ended, forked
from tests.store.streams import SCHEMA


@pytest.fixture
def path(postgres: PostgresServer, request: pytest.FixtureRequest) -> Iterator[str]:
    path = postgres.url(f"kept/{request.node.name}")
    create_store(path, SCHEMA, StreamSettings())
    yield path
    _forget()


def _forget() -> None:
    while stores._KEPT:
        stores._KEPT.pop().close()


def clients(postgres: PostgresServer) -> set[int]:
    """The server's processes that serve clients of the project."""
    where = "application_name = 'rowtime' AND datname = 'rowtime'"
    return {pid for (pid,) in postgres.execute(f"SELECT pid FROM pg_stat_activity WHERE {where}")}


def until(done: Callable[[], bool], seconds: float = 30) -> bool:
    """Asks until it is done; False if it is not within this time."""
    deadline = time.monotonic() + seconds
    while not done():
        if time.monotonic() > deadline:
            return False
    return True


def test_a_stream_that_is_opened_again_has_the_connection_of_before(path: str, postgres: PostgresServer) -> None:
    others = clients(postgres)
    with open_kept_store(path) as store:
        assert store.head().seq == 0
        first = clients(postgres) - others
    with open_kept_store(path) as store:
        assert store.head().seq == 0
        assert clients(postgres) - others == first
    assert len(first) == 1


def test_only_the_last_stream_is_kept(path: str, postgres: PostgresServer) -> None:
    create_store(f"{path}/other", SCHEMA, StreamSettings())
    for name in (path, f"{path}/other", path):
        with open_kept_store(name) as store:
            assert store.path == name
        assert [kept.path for kept in stores._KEPT] == [name]


def test_a_stream_that_was_created_again_is_opened_again(path: str) -> None:
    with open_kept_store(path) as store:
        before = store.stream
    delete_store(path, None)
    create_store(path, SCHEMA, StreamSettings())
    with open_kept_store(path) as store:
        assert store.stream != before
        assert store.head().seq == 0


def test_a_connection_that_was_lost_is_made_again(path: str, postgres: PostgresServer) -> None:
    others = clients(postgres)
    with open_kept_store(path):
        pass
    for pid in clients(postgres) - others:
        postgres.execute(f"SELECT pg_terminate_backend({pid})")
    with open_kept_store(path) as store:
        assert store.head().seq == 0


def test_a_forked_child_connects_by_itself(path: str, postgres: PostgresServer) -> None:
    with open_kept_store(path):
        pass
    child = os.fork()
    if not child:
        try:
            with open_kept_store(path) as store:
                os._exit(store.head().seq)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    with open_kept_store(path) as store:
        assert store.head().seq == 0


def test_a_child_has_no_part_in_the_connection_of_its_parent(path: str, postgres: PostgresServer) -> None:
    """The server sees the end of a parent that gets kill -9, although its child lives; so no lock of it stays."""
    others, (there, ready) = clients(postgres), os.pipe()
    parent = forked(lambda: _open_and_fork(path, ready))
    os.close(ready)
    (child,) = (int(pid) for pid in os.read(there, 100).split())
    assert clients(postgres) - others
    os.kill(parent, signal.SIGKILL)
    assert ended(parent) == [-signal.SIGKILL]
    assert until(lambda: not clients(postgres) - others)
    os.kill(child, signal.SIGKILL)
    os.close(there)


def _open_and_fork(path: str, ready: int) -> None:
    store = open_store(path)
    assert store.head().seq == 0
    child = forked(signal.pause)
    os.write(ready, str(child).encode())
    signal.pause()


def test_an_inherited_connection_that_a_child_frees_takes_nothing_from_it(path: str) -> None:
    """Its descriptor was closed at the fork, and another file may have the number by then."""
    inherited = [open_store(path)]
    assert inherited[0].head().seq == 0

    def free() -> None:
        own = open_store(path)
        assert own.head().seq == 0
        with pytest.raises(SinkClosedError):
            inherited[0].head()
        inherited.pop().close()
        gc.collect()
        assert own.head().seq == 0
        own.close()

    assert ended(forked(free)) == [0]
    assert inherited.pop().head().seq == 0
