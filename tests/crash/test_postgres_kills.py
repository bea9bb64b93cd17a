"""Streams in PostgreSQL: the connection is cut at each message, the server is killed, and writers go on.

A few times in CI, ROWTIME_KILLS times by the command of tests/crash/test_writer_kills.py.
"""

import random
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import spark_rowtime as rt
from spark_rowtime.store import check_store, create_store, open_store
from spark_rowtime.store.base import Store
from spark_rowtime.store.memory import MemoryStore
from spark_rowtime.store.postgres.store import PostgresStore
from spark_rowtime.store.settings import StreamSettings
from spark_rowtime.testing.killed_process import kill_points
from tests.crash import feeds
from tests.crash.checks import check_log, numbers
from tests.crash.cutting_proxy import CuttingProxy
from tests.crash.tally import Tally
from tests.crash.victims import Victim, how_many
from tests.crash.writers import again, story
from tests.postgresserver import PostgresServer, required_programs
from tests.store.streams import SCHEMA, Writer, infos, place, read, without_times

CUTS, KILLS, WRITERS, ROWS = 12, 3, 3, 60


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    """A server of this test's own, since it is killed."""
    server = PostgresServer(required_programs())
    yield server
    server.remove()


@pytest.fixture
def proxy(postgres: PostgresServer) -> Iterator[CuttingProxy]:
    proxy = CuttingProxy(postgres.port)
    yield proxy
    proxy.close()


def everything(store: Store) -> Any:
    """What is visible of a stream, apart from the wall clock."""
    rows = read(store, place(store.horizon().seq))
    events, rejected = store.bounds().to_pylist(), without_times(store.rejected()).to_pylist()
    return store.head(), store.horizon(), infos(store), events, rejected, rows, store.snapshot().logged_clock


def lived(store: Store, other: Store) -> Any:
    """What is visible after the story, and after a process that repeats all of it; ``other`` sees the same stream."""
    steps = [everything(other) for _ in story(store)]
    again(other)
    return steps


@pytest.mark.long
def test_the_connection_is_cut_at_each_message(
    postgres: PostgresServer, proxy: CuttingProxy, tally: Callable[[str], Tally]
) -> None:
    """Before the server gets it, or before its answer arrives: the commit is ambiguous then. Nobody notices."""
    line, path = tally("connection to PostgreSQL cut"), "cut/whole"
    right = lived(*twins(postgres, proxy, path))
    model = MemoryStore("memory://model", SCHEMA, StreamSettings())
    assert right[-1] == lived(model, model)[-1]
    stores = twins(postgres, proxy, "cut/counted")
    proxy.count = 0
    lived(*stores)
    messages = proxy.count
    assert messages > 30
    for at, delivered in kill_points(messages, how_many(CUTS)):
        path = f"cut/{at}"
        stores = twins(postgres, proxy, path)
        proxy.count, proxy.cut_at, proxy.delivered = 0, at, delivered
        assert lived(*stores) == right, (at, delivered)
        proxy.cut_at = 0
        line.fault()
        assert check_store(postgres.url(path)).damage == []


def test_the_connection_is_cut_in_commits_of_one_trip(
    postgres: PostgresServer, proxy: CuttingProxy, tally: Callable[[str], Tally]
) -> None:
    """Each is one call of the database's function. The store repeats it, and finds out whether it had landed."""
    line, sent = tally("connection to PostgreSQL cut"), [float(n) for n in range(8)]
    for at, delivered in [(cut, late) for cut in range(1, 6) for late in (False, True)]:
        path = f"cut/plain/{at}/{delivered}"
        store, beside = twins(postgres, proxy, path)
        writer = Writer(store, "a")
        for second in sent[:3]:
            writer.send([second], floor=second)
        proxy.count, proxy.cut_at, proxy.delivered = 0, at, delivered
        receipts = [writer.send([second], floor=second) for second in sent[3:]]
        proxy.cut_at = 0
        line.fault()
        assert proxy.count > len(receipts), at
        assert [receipt.seq for receipt in receipts] == [5, 6, 7, 8, 9]
        assert read(beside) == sent
        line.account(read(beside), sent, sent)
        assert check_store(postgres.url(path)).damage == []
        store.close()
        beside.close()


def twins(postgres: PostgresServer, proxy: CuttingProxy, name: str) -> tuple[Store, Store]:
    """A new stream, opened through the proxy and beside it."""
    create_store(postgres.url(name), SCHEMA, StreamSettings())
    return open_store(postgres.url(name, port=proxy.port)), open_store(postgres.url(name))


def test_the_server_is_killed_again_and_again_while_producers_commit(
    server: PostgresServer, tally: Callable[[str], Tally]
) -> None:
    """Each acknowledged row is there once, and so is each row of a commit that was not answered."""
    line, path, dice = tally("kill -9 of the PostgreSQL server"), server.url("killed"), random.Random(7)
    names, rows = [f"p{n}" for n in range(WRITERS)], max(ROWS, 20 * how_many(KILLS))
    rt.createStream(path, feeds.DDL, producers=names)
    writers = [Victim(feeds.persist, path, name, rows) for name in names]
    for turn in range(how_many(KILLS)):
        for writer in writers:
            assert writer.listen(240, min(rows * (turn + 1) // (how_many(KILLS) + 1), rows))
        writers[0].listen(dice.uniform(0, 0.02))
        server.kill()
        line.fault()
        server.start()
    assert [writer.end() for writer in writers] == [(list(range(rows)), 0)] * WRITERS
    with open_store(path) as store:
        for name in names:
            assert numbers(store, name) == list(range(rows))
            line.account(numbers(store, name), range(rows), range(rows))
        check_log(store)
    assert check_store(path).damage == []


def test_while_the_server_is_away_a_sink_keeps_its_rows(server: PostgresServer) -> None:
    path = server.url("away")
    rt.createStream(path, feeds.DDL)
    sink, reader = rt.openSink(path, producer="shop", linger="1 hour"), rt.openReader(path, order="arrival")
    sink.sendRow((feeds.moment(1), 1))
    sink.flush()
    sink.sendRow((feeds.moment(2), 2))
    server.stop()
    for call in (sink.flush, sink.flush, reader.read, lambda: rt.openReader(path)):
        with pytest.raises(rt.StoreUnavailableError, match="cannot be used just now"):
            call()
    sink.sendRow((feeds.moment(3), 3))
    server.start()
    sink.flush()
    assert [train.rows.column("n").to_pylist() for train in reader] == [[1, 2, 3]]
    sink.close()
    reader.close()


def test_the_time_in_which_the_server_is_away_is_not_counted(server: PostgresServer) -> None:
    """So no lease ends because nobody could renew it. The clock of the database is put back and forward by its head."""
    path, day, began = server.url("clock"), 86_400_000_000, time.monotonic()
    rt.createStream(path, feeds.DDL)
    with open_store(path) as store:
        assert isinstance(store, PostgresStore)
        store.attach("shop", "holder", "{}", 600_000_000)
        server.stop()
        server.start()
        server.execute(f"UPDATE rowtime.heads SET ahead = ahead - {day}, stamp = stamp - {day}, due = due - {day}")
        server.execute(f"UPDATE rowtime.producers SET seen = seen - {day}, sent = sent - {day}")
        assert not store.snapshot().due
        assert not store.expire()
        server.execute(f"UPDATE rowtime.heads SET ahead = ahead - {day}")  # as if the clock had been put back
        assert not store.snapshot().due
        assert not store.expire()
        assert store.snapshot().seen["shop"].unseen < (time.monotonic() - began) * 1_000_000
        server.execute(f"UPDATE rowtime.heads SET ahead = ahead + {day}")  # as if it had been put forward
        assert store.expire()
