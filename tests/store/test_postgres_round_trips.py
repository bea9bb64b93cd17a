"""What the server is asked, and how often: no session, no look, no object and no lock more than needed."""

import resource
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from inspect import signature
from pathlib import Path
from typing import Any

import pytest

import spark_rowtime as rt
from spark_rowtime.store import check_store, create_store, open_shared_store, open_store, rename_store
from spark_rowtime.store.postgres.connection import CLIENT, SERVER_GONE_SECONDS, WAIT_SECONDS
from spark_rowtime.store.settings import StreamSettings
from spark_rowtime.types.timestamps import to_interval, wall_clock
from tests.postgresserver import PostgresServer
from tests.store.gate import REFUSING, SILENT, Gate
from tests.store.standstill import Standstill
from tests.store.streams import SCHEMA, Writer, at, infos, lock_gate, place, read

SECOND = 1_000_000
DAY = 86_400 * SECOND
_END_OF_STILL = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE state = 'idle in transaction'"


@pytest.fixture
def path(postgres: PostgresServer, request: pytest.FixtureRequest) -> str:
    """An empty stream."""
    path = postgres.url(f"trips/{request.node.name}")
    create_store(path, SCHEMA, StreamSettings())
    return path


@pytest.fixture
def far(postgres: PostgresServer) -> Iterator[Gate]:
    """A gate before the server."""
    far = Gate(postgres.port)
    yield far
    far.close()


def session(store: Any) -> int:
    """The process that serves the store's connection."""
    row = store._connection.one("SELECT pg_backend_pid()")
    return int(row[0])


READ_ONLY = {"a standby": "?options=-cdefault_transaction_read_only%3Don", "no right": ""}


@pytest.mark.parametrize("kind", READ_ONLY)
def test_who_may_only_read_keeps_its_session_while_a_lease_has_ended(
    postgres: PostgresServer, path: str, kind: str
) -> None:
    user = "trips_reader"
    if not postgres.execute(f"SELECT 1 FROM pg_roles WHERE rolname = '{user}'"):
        for statement in (
            f"CREATE ROLE {user} LOGIN",
            f"GRANT USAGE ON SCHEMA rowtime TO {user}",
            f"GRANT SELECT ON ALL TABLES IN SCHEMA rowtime TO {user}",
        ):
            postgres.execute(statement)
    with open_store(path) as store:
        Writer(store, "a", lease=1).send([1])
    name = path.rpartition("/rowtime/")[2]
    with open_store(postgres.url(name, user=user) + READ_ONLY[kind]) as reader:
        before = session(reader)
        assert len(reader.snapshot().due) == 1
        assert [reader.expire() for _ in range(5)] == [False] * 5
        with pytest.raises(rt.StoreUnavailableError):
            reader.keep("r", place(1))
        assert (read(reader), session(reader)) == ([1], before)


def test_a_reader_goes_on_while_another_client_has_the_lock(postgres: PostgresServer, path: str) -> None:
    """A lease has ended. Whoever holds the lock keeps the producers from renewing, so the end is not noted now."""
    with open_store(path) as store, postgres.connect() as other, rt.openReader(path, order="arrival") as reader:
        Writer(store, "a", lease=1).send([1])
        lock_gate(other, store.number)
        assert [train.rows.num_rows for train in reader] == [1]
        assert [producer.status for producer in infos(store)] == ["attached"]
        other.execute("ROLLBACK")
        assert store.expire()


def test_a_sink_that_lingers_looks_once_a_second(path: str) -> None:
    """It looks whether the stream still waits for its producer, which the commit does, too."""
    calls: list[Any] = []
    with rt.openSink(path, producer="a", linger="1 hour", lateness="1 day") as sink:
        now, call = [0], sink._store._connection.call
        sink._scheduler.lease._now = lambda: now[0]
        sink.sendRows([("2026-01-05T10:00:00Z", 0)])
        sink._store._connection.call = lambda function, **how: (calls.append(function), call(function, **how))[1]
        for n in range(200):
            now[0] += SECOND // 50
            sink.sendRows([("2026-01-05T10:00:00Z", n)])
        del sink._store._connection.call
    assert 0 < len(calls) <= 4
    assert check_store(path).rows == 201


def test_what_an_attempt_has_staged_the_next_one_commits(path: str, tmp_path: Path) -> None:
    """The first of two trains fits into the location, the second does not."""
    path += " in objects"
    rt.createStream(path, "rowtime TIMESTAMP NOT NULL, text STRING", location=str(tmp_path))
    with rt.openSink(path, producer="a", linger="1 hour", maxTrainRows=1) as sink:
        with largest_file(200_000):
            sink.sendRows([(f"2026-01-05T10:0{minute}:00Z", "a" * minute * 100_000) for minute in (1, 4)])
            for _ in range(5):
                with pytest.raises(rt.StoreUnavailableError, match="cannot be used just now"):
                    sink.flush()
            assert len(sink._store.objects.sizes()) == 1
        sink.flush()
        assert len(sink._store.objects.sizes()) == 2
    assert check_store(path).damage == []
    with rt.openReader(path, order="arrival") as reader:
        assert [row["rowtime"].minute for train in reader for row in train.rows.to_pylist()] == [1, 4]


def test_what_was_staged_and_removed_after_a_day_is_staged_anew(path: str, tmp_path: Path) -> None:
    path += " in objects"
    rt.createStream(path, "rowtime TIMESTAMP NOT NULL, text STRING", location=str(tmp_path))
    with rt.openSink(path, producer="a", linger="1 hour", maxTrainRows=1, lease=None) as sink:
        with largest_file(200_000):
            sink.sendRows([(f"2026-01-05T10:0{minute}:00Z", "a" * minute * 100_000) for minute in (1, 4)])
        with open_store(path) as collector:
            time = [wall_clock()]
            collector.now = lambda: time[0]
            assert collector.gc().files == 0
            time[0] += 2 * DAY
            assert collector.gc().files == 1
        with pytest.raises(rt.StoreUnavailableError, match="send its rows again"):
            sink.flush()
        sink.flush()
    assert check_store(path).damage == []
    with rt.openReader(path, order="arrival") as reader:
        assert [row["rowtime"].minute for train in reader for row in train.rows.to_pylist()] == [1, 4]


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """Limits the files that this process can write."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_producer_that_joins_again_has_what_it_promised(path: str) -> None:
    """Its row is written twice in one transaction: as it joins at the stream's bound, and with its own bound."""
    with open_store(path) as store:
        writer, other = Writer(store, "a", lease=1), Writer(store, "b")
        other.send([5], floor=5)
        writer.send([5], floor=30)
        assert store.expire()
        assert store.renew("a", writer.epoch)
        own = store.producer("a")
        assert own is not None
        assert (own.floor, store.head().floor) == (at(30), at(5))


@pytest.mark.usefixtures("patient", "stands_still")
def test_a_reader_registers_before_or_after_a_removal_not_within(postgres: PostgresServer, path: str) -> None:
    proxy = Standstill(postgres.port)
    name = path.rpartition("/rowtime/")[2]
    with open_store(path) as store, open_store(postgres.url(name, port=proxy.port) + Standstill.OPTIONS) as collector:
        writer = Writer(store, "a")
        for second in range(1, 4):
            writer.send([second], floor=second + 1)
        proxy.watch(within=b"DELETE FROM rowtime.trains")  # it has read who needs what, and removes what nobody needs
        with ThreadPoolExecutor(2) as threads:
            removal = threads.submit(lambda: collector.gc(age=0))
            assert proxy.stopped.wait(240)
            registration = threads.submit(lambda: store.keep("reader", place(2)))
            assert waits(postgres, registration)
            postgres.execute(_END_OF_STILL)  # as the server does itself after some seconds
            registration.result()
            proxy.go_on()
            removal.result()
        assert read(store, place(2)) == [2, 3]
    proxy.close()


def waits(postgres: PostgresServer, call: "Future[Any]") -> bool:
    """Whether the call comes to wait for a lock before it returns."""
    with postgres.connect() as connection:
        while not call.done():
            if connection.execute("SELECT 1 FROM pg_locks WHERE NOT granted").fetchone():
                return True
    return False


def test_a_database_that_does_not_answer_keeps_no_sink_of_another_one_waiting(far: Gate, path: str) -> None:
    far.turn(SILENT)
    with ThreadPoolExecutor(1) as thread:
        dead = thread.submit(
            open_shared_store, f"postgresql://rowtime@127.0.0.1:{far.port}/rowtime/dead?connect_timeout=240"
        )
        assert far.asked.wait(240)
        with rt.openSink(path, producer="a") as sink:
            sink.sendRow(("2026-01-05T10:00:00Z", 1))
            sink.flush()
            was_waiting = not dead.done()
        far.turn(REFUSING)
        assert was_waiting
        assert isinstance(dead.exception(), rt.StoreUnavailableError)


def test_a_server_that_vanished_is_noticed_before_a_lease_ends() -> None:
    lease = to_interval(signature(rt.openSink).parameters["lease"].default, "lease") // SECOND
    assert CLIENT["tcp_user_timeout"] == SERVER_GONE_SECONDS * 1000
    alive = CLIENT["keepalives_idle"] + CLIENT["keepalives_interval"] * CLIENT["keepalives_count"]
    assert max(alive, SERVER_GONE_SECONDS) + WAIT_SECONDS < lease


_PREPARED = "SELECT name, statement, generic_plans + custom_plans FROM pg_prepared_statements WHERE from_sql"


def test_a_session_parses_each_statement_of_its_transactions_once(postgres: PostgresServer) -> None:
    path = postgres.url("prepared")
    create_store(path, SCHEMA, StreamSettings(maxLag=DAY))  # the server decides no commit alone
    with open_store(path) as store:
        writer: Any = Writer(store, "a")
        for second in (1, 2):
            writer.send([second])
        before = store._connection.rows((_PREPARED, ()))[0]
        for second in range(3, 13):
            writer.send([second])
        after = store._connection.rows((_PREPARED, ()))[0]
    assert [row[:2] for row in after] == [row[:2] for row in before]
    assert not any("EXECUTE" in statement for _, statement, _ in after)  # no values, which would be kept
    assert sum(row[2] for row in after) >= sum(row[2] for row in before) + 10 * 7


def test_a_session_goes_on_with_its_statements_after_one_has_failed(postgres: PostgresServer, path: str) -> None:
    with open_store(path) as store, postgres.connect() as other:
        server = session(store)
        store._connection.rows(("SET lock_timeout = '1ms'", ()))
        lock_gate(other, store.number)
        for _ in range(3):
            with pytest.raises(rt.StoreUnavailableError, match="locked"):
                store.attach("a", "holder", "{}")
        other.execute("ROLLBACK")
        store.attach("a", "holder", "{}")
        assert session(store) == server


def test_after_a_refusal_the_session_has_what_it_is_asked_for(path: str) -> None:
    """With the transaction that was refused, psycopg drops all statements that the session has prepared."""
    with open_store(path) as store:
        for turn in range(8):
            store.head()
            store.producer("a")
            store.attach("a", f"holder {turn}", "{}")
        with pytest.raises(rt.InvalidOptionError):
            store.attach("a", "holder", "another declaration")
        for turn in range(3):
            assert store.attach("a", f"next holder {turn}", "{}").epoch == 9 + turn


def test_after_an_error_within_a_snapshot_the_session_has_what_it_is_asked_for(path: str) -> None:
    """psycopg ends that transaction by itself, and drops all statements that the session has prepared."""
    with open_store(path) as store:
        for turn in range(8):
            store.producer("a")
            store.attach("a", f"holder {turn}", "{}")
        store.detach("a")
        rename_store(path, f"{path} renamed")
        with pytest.raises(rt.DataLostError):
            store.snapshot()
        with pytest.raises(rt.DataLostError):
            store.attach("a", "holder", "{}")
