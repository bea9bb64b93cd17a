"""PostgreSQL 14, the oldest server that is supported: what the store does there is what it does in memory.

All tests of the store run there with ``ROWTIME_POSTGRES=$(python -m tests.postgres14) python -m pytest tests/store``.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from spark_rowtime.store import check_store, copy_store, create_store, list_stores, open_store, rename_store
from spark_rowtime.store.memory import MemoryStore
from spark_rowtime.store.postgres import inline
from spark_rowtime.store.settings import StreamSettings
from spark_rowtime.types.alteration import columns_to_add
from tests.crash.writers import story
from tests.postgres14 import server_of_14
from tests.postgresserver import PostgresServer
from tests.store.streams import SCHEMA, Writer
from tests.store.visible import visible

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    yield from server_of_14()


@pytest.mark.parametrize("located", [False, True])
def test_a_story_is_the_same_on_the_oldest_server(
    server: PostgresServer, tmp_path: Path, located: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two producers, a reader, a lease, rejections and ``gc``; with ``located``, each train is an object."""
    monkeypatch.setattr(inline, "OBJECT_BYTES", 0)
    settings = StreamSettings(location=f"file://{tmp_path}/rows" if located else None)
    path, model = server.url(f"story/{located}"), MemoryStore("memory://story", SCHEMA, StreamSettings(), now=lambda: 0)
    create_store(path, SCHEMA, settings)
    store = open_store(path)
    store.now = lambda: 0
    with open_store(path) as other:
        other.now = lambda: 0
        for _ in zip(story(model), story(store), strict=True):
            assert visible(other) == visible(model)
        other.alter(columns_to_add("coupon STRING"))
    assert check_store(path).damage == []


def test_copies_names_and_the_list_on_the_oldest_server(server: PostgresServer, tmp_path: Path) -> None:
    path = server.url("names/one")
    create_store(path, SCHEMA, StreamSettings())
    with open_store(path) as store:
        writer = Writer(store, "a")
        for second in range(1, 5):
            writer.send([second], floor=second, late=[second - 1])
        writer.leave()
        shown = visible(store)
    rename_store(path, server.url("names/two"))
    copy_store(server.url("names/two"), str(tmp_path / "here"))
    copy_store(str(tmp_path / "here"), server.url("names/three"))
    assert list_stores(server.url("names/")) == [server.url("names/three"), server.url("names/two")]
    with open_store(server.url("names/three")) as copy:
        assert visible(copy) == shown
    assert server.execute("SHOW server_version_num")[0][0].startswith("14")
