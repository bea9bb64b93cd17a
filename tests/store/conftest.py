"""Every test that takes ``new_stream`` runs over each store; over PostgreSQL if there is a server."""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from spark_rowtime.store import create_store, open_store
from spark_rowtime.store.base import Store
from spark_rowtime.store.local import LocalStore, create_local, open_local
from spark_rowtime.store.memory import STREAMS
from spark_rowtime.store.postgres import connection, inline
from spark_rowtime.store.postgres.background import Background
from spark_rowtime.store.settings import StreamSettings
from tests.patience import wait_long_for_locks, with_minutes_for
from tests.store.roles import make_database
from tests.store.sketch import DictStore
from tests.store.streams import SCHEMA, NewStream

NUMBERS = itertools.count(1)


IN_OBJECTS = {"test_laws", "test_behaviour", "test_gc"}
"""The files whose tests also run over PostgreSQL with a location in which every train is an object."""

SKETCHED = {
    *("test_pages", "test_laws", "test_behaviour", "test_leases", "test_expiry", "test_idle_commits", "test_cuts"),
    *("test_lost_commits", "test_rejects_only", "test_checkpoints", "test_ahead"),
}
"""The files whose tests also run over the store in sketch.py."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """``new_stream`` is each store in turn."""
    if "new_stream" in metafunc.fixturenames:
        module = metafunc.module.__name__.rpartition(".")[2]
        more = [store for store, files in (("location", IN_OBJECTS), ("sketch", SKETCHED)) if module in files]
        metafunc.parametrize("new_stream", ["memory", "local", "postgres", *more], indirect=True)


@pytest.fixture
def new_stream(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[NewStream]:
    """``new_stream(**settings)`` creates a stream and returns a function that opens it again at each call."""
    before, opened = set(STREAMS), []
    server = request.getfixturevalue("postgres") if request.param in ("postgres", "location") else None
    located = {"location": f"file://{tmp_path}/location"} if request.param == "location" else {}
    monkeypatch.setattr(inline, "OBJECT_BYTES", 0)
    monkeypatch.setattr(Background, "start", lambda _, work: work())  # what follows a commit is done when it returns

    def create(**settings: Any) -> Callable[[], Store]:
        number = next(NUMBERS)
        if request.param == "sketch":
            monkeypatch.setattr(DictStore, "gc", lambda *_, **__: pytest.skip("the sketch removes nothing"))
            sketched = DictStore(f"sketch://{number}", SCHEMA, StreamSettings(**settings))
            return lambda: sketched
        paths = {"memory": f"memory://{number}", "local": str(tmp_path / f"stream {number}")}
        path = server.url(f"stream {number}") if server else paths[request.param]
        create_store(path, SCHEMA, StreamSettings(**located, **settings))

        def open_again() -> Store:
            opened.append(open_store(path))
            return opened[-1]

        return open_again

    yield create
    for store in opened:
        store.close()
    for path in set(STREAMS) - before:
        del STREAMS[path]


@pytest.fixture(params=["local", "postgres"])
def new_place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Callable[[], str]:
    """``new_place()`` returns a path at which there is no stream yet, in each store that processes share."""
    if request.param == "postgres":
        server = request.getfixturevalue("postgres")
        return lambda: server.url(f"stream {next(NUMBERS)}")
    return lambda: str(tmp_path_factory.mktemp("streams") / "stream")


@pytest.fixture(scope="module")
def database(postgres: Any, request: pytest.FixtureRequest) -> str:
    """The database DATABASE of the module, with the guide's roles."""
    make_database(postgres, request.module.DATABASE)
    return str(request.module.DATABASE)


@pytest.fixture
def attacker(postgres: Any, database: str) -> Iterator[Any]:
    """A connection of the reader bob."""
    with postgres.connect(user=f"reader_bob_{database}", database=database) as connection:
        yield connection


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients wait minutes for a lock: on a busy machine, who has it may need more than the usual seconds."""
    wait_long_for_locks(monkeypatch.setitem)


@pytest.fixture
def stands_still(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients may stand still within a transaction for minutes: the test ends that."""
    longer = with_minutes_for(connection.SETTINGS, "idle_in_transaction_session_timeout")
    monkeypatch.setattr(connection, "SETTINGS", longer)


@pytest.fixture
def local_path(tmp_path: Path) -> str:
    """The path of an empty local stream."""
    path = str(tmp_path / "orders.rowtime")
    create_local(path, SCHEMA, StreamSettings())
    return path


@pytest.fixture
def open_here(local_path: str) -> Iterator[Callable[..., LocalStore]]:
    """A function that opens the stream at ``local_path`` again at each call."""
    opened: list[LocalStore] = []

    def open_again(**how: Any) -> LocalStore:
        opened.append(open_local(local_path, **how))
        return opened[-1]

    yield open_again
    for store in opened:
        store.close()
