"""What only the store in PostgreSQL has: tables that are created once, trains in parts, bytes that are read ahead."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from spark_rowtime.errors import DataLostError, StoreCorruptError
from spark_rowtime.store import check_store, create_store, delete_store, list_stores, open_store, rename_store
from spark_rowtime.store.postgres import prefetch, trains
from spark_rowtime.store.settings import StreamSettings
from tests.postgresserver import PostgresServer
from tests.store.streams import EMPTY, SCHEMA, WHOLE, Writer, place, read, seconds

CLIENTS = 6


@pytest.fixture
def path(postgres: PostgresServer, request: pytest.FixtureRequest) -> str:
    """An empty stream."""
    path = postgres.url(f"store/{request.node.name}")
    create_store(path, SCHEMA, StreamSettings())
    return path


@pytest.mark.usefixtures("patient")
def test_clients_that_create_the_first_streams_at_once(postgres: PostgresServer) -> None:
    postgres.execute("CREATE DATABASE race", database="postgres")
    paths = [postgres.url(f"s{n % 3}", database="race") for n in range(CLIENTS)]

    def create(path: str) -> str:
        try:
            create_store(path, SCHEMA, StreamSettings())
        except Exception as error:
            return type(error).__name__
        return "created"

    with ThreadPoolExecutor(CLIENTS) as threads:
        outcomes = list(threads.map(create, paths))
    assert sorted(outcomes) == ["StreamExistsError"] * 3 + ["created"] * 3
    assert list_stores(postgres.url(database="race")) == sorted(set(paths))


def test_a_long_train_is_stored_in_parts(path: str, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trains, "PART_BYTES", 100)
    with open_store(path) as store:
        Writer(store, "a").send(range(1, 200), [200], floor=200)
        parts = postgres.execute(f"SELECT seq, count(*) FROM rowtime.trains WHERE stream = {store.number} GROUP BY 1")
        assert dict(parts)[2] > 10
        assert read(store) == list(range(1, 201))
        assert check_store(path).damage == []


def test_trains_are_read_ahead_and_in_any_order(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prefetch, "PREFETCH_TRAINS", 7)
    asked: list[int] = []
    with open_store(path) as store:
        writer = Writer(store, "a")
        for second in range(1, 31):
            writer.send([second], floor=second)
        carry = store.carry
        monkeypatch.setattr(store, "carry", lambda pieces: (asked.append(len(pieces)), carry(pieces))[1])
        assert read(store) == list(range(1, 31))
        assert asked == [7, 7, 7, 7, 2], "five round trips for thirty trains"
        pieces = store.slices(EMPTY, WHOLE)
        assert [seconds(store.read(piece)) for piece in (*reversed(pieces), pieces[3], pieces[3])] == [
            *([n] for n in range(30, 0, -1)), [4], [4],
        ]  # fmt: skip
        store.gc(age=0)
        with pytest.raises(DataLostError):
            store.read(pieces[3])


def test_threads_that_read_one_store(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What one has read ahead is forgotten when the other one asks, at whatever moment; no train is taken for lost."""
    with open_store(path) as store:
        writer = Writer(store, "a")
        for second in range(1, 6):
            writer.send([second], floor=second)
        keep = store._prefetch.keep
        monkeypatch.setattr(store._prefetch, "keep", lambda pieces: (keep(pieces), store.slices(EMPTY, WHOLE)))
        assert read(store) == list(range(1, 6))


def test_damage_is_found(path: str, postgres: PostgresServer) -> None:
    with open_store(path) as store:
        writer = Writer(store, "a")
        writer.send([1], floor=1)
        writer.send([2], floor=2, late=[1])
        stream = store.number
    harm: dict[str, Any] = {
        f"UPDATE rowtime.trains SET bytes = set_byte(bytes, 200, 7) WHERE stream = {stream} AND seq = 2": "checksum",
        f"DELETE FROM rowtime.trains WHERE stream = {stream} AND seq = 3": "train 3 of",
        f"UPDATE rowtime.events SET stream_floor = 5 WHERE stream = {stream} AND seq = 2": "the bound at seq 2",
        f"DELETE FROM rowtime.rejected WHERE stream = {stream}": "rejected rows are kept",
        f"UPDATE rowtime.heads SET seq = 9 WHERE stream = {stream}": "ends at seq",
    }
    for statement, what in harm.items():
        assert not any(what in line for line in check_store(path).damage)
        postgres.execute(statement)
        assert any(what in line for line in check_store(path).damage), check_store(path).damage
    with open_store(path) as store, pytest.raises(StoreCorruptError, match="checksum"):
        store.read(store.slices(EMPTY, place(2))[0])


@pytest.mark.parametrize("byte", [0, -8], ids=["its beginning", "its end"])
def test_a_rejected_row_that_is_damaged_is_named(path: str, postgres: PostgresServer, byte: int) -> None:
    with open_store(path) as store:
        Writer(store, "a").send([2], floor=2, late=[1])
        (rows,) = postgres.execute(f"SELECT id, rows FROM rowtime.rejected WHERE stream = {store.number}")[0][1:]
        cut = rows[:byte] if byte < 0 else rows[:byte] + bytes([rows[byte] ^ 0x41]) + rows[byte + 1 :]
        postgres.execute(f"UPDATE rowtime.rejected SET rows = '\\x{cut.hex()}' WHERE stream = {store.number}")
        with pytest.raises(StoreCorruptError, match="rejection 1 cannot be read"):
            store.rejected()
    assert any("rejection 1 cannot be read" in line for line in check_store(path).damage)


def test_who_had_the_stream_open_is_told_that_it_is_gone(path: str) -> None:
    one, two = open_store(path), open_store(path)
    writer = Writer(one, "a")
    writer.send([1], floor=1)
    writer.leave()
    rename_store(path, f"{path}-renamed")
    create_store(path, SCHEMA, StreamSettings())
    for call in (two.head, one.snapshot, one.summary, lambda: one.keep("r", EMPTY), lambda: one.attach("a", "x", "{}")):
        with pytest.raises(DataLostError, match="deleted or renamed while it was open"):
            call()
    with open_store(f"{path}-renamed") as renamed:
        assert read(renamed) == [1]
        delete_store(f"{path}-renamed", None)
        with pytest.raises(DataLostError):
            renamed.head()
    one.close()
    two.close()
