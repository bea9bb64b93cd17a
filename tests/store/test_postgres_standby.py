"""A standby server: what it has not replayed yet is not lost, and what its replay cancels is asked for again."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from spark_rowtime.errors import DataLostError, StoreUnavailableError
from spark_rowtime.store import create_store, open_store
from spark_rowtime.store.position import EMPTY as NOTHING
from spark_rowtime.store.retention import require_there
from spark_rowtime.store.settings import StreamSettings
from tests.postgresserver import PostgresServer, required_programs
from tests.replica import Replica
from tests.sparksession import wait_for
from tests.store.streams import EMPTY, SCHEMA, Writer, place


@pytest.fixture
def standby() -> Iterator[Replica]:
    """A standby that does not wait for its primary, nor is waited for."""
    programs = required_programs()
    if not (programs / "pg_basebackup").exists():
        pytest.skip(f"{programs} has no pg_basebackup, so there can be no standby")
    primary = PostgresServer(programs)
    standby = None
    try:
        create_store(primary.url("s"), SCHEMA, StreamSettings())
        standby = Replica(programs, primary)
        standby.start()
        yield standby
    finally:
        for server in (standby, primary):
            if server is not None:
                server.remove()


def test_a_standby_that_lags_is_no_older_copy(standby: Replica) -> None:
    with open_store(standby.primary.url("s")) as written, open_store(standby.url("s")) as read:
        writer = Writer(written, "a")
        writer.send([1])
        wait_for(lambda: read.head() == written.head(), "the standby to replay the first row")
        standby.execute("SELECT pg_wal_replay_pause()")
        wait_for(lambda: standby.execute("SELECT pg_get_wal_replay_pause_state()") == [("paused",)], "a pause")
        seq = writer.send([2]).seq
        for call in (lambda: require_there(place(seq), read.head(), read.path), lambda: read.at(seq)):
            with pytest.raises(StoreUnavailableError, match=f"not replayed .*seq {seq} was asked for. Call again"):
                call()
        standby.execute("SELECT pg_wal_replay_resume()")
        wait_for(lambda: read.head() == written.head(), "the standby to replay the rest")
        require_there(place(seq), read.head(), read.path)
        standby.promote()
        with pytest.raises(DataLostError, match="older copy"):
            require_there(place(seq + 1), read.head(), read.path)


def test_no_row_is_skipped_where_a_call_moves_to_a_standby_that_lags(standby: Replica) -> None:
    """Between the look at the log's end and the read of its trains. The path asks for no server that writes."""
    primary, path = standby.primary, standby.url_of_both("s").partition("?")[0]
    with open_store(path) as store, open_store(standby.url("s")) as behind:
        writer = Writer(store, "a")
        writer.send([1])
        wait_for(lambda: behind.head() == store.head(), "the standby to replay the first row")
        standby.execute("SELECT pg_wal_replay_pause()")
        wait_for(lambda: standby.execute("SELECT pg_get_wal_replay_pause_state()") == [("paused",)], "a pause")
        seq = writer.send([2]).seq
        assert store.head().seq == seq
        (piece,) = store.slices(place(seq - 1), place(seq))
        primary.kill()
        for call in (lambda: store.slices(EMPTY, place(seq)), lambda: store.read(piece)):
            with pytest.raises(StoreUnavailableError, match="standby that has not replayed"):
                call()
        assert len(store.slices(EMPTY, place(seq - 1))) == 1


def test_a_read_that_the_replay_of_a_standby_cancels_is_repeated(postgres: PostgresServer) -> None:
    path, attempts = postgres.url("cancelled"), list[Any]()
    create_store(path, SCHEMA, StreamSettings())

    def run(made: psycopg.Connection[Any]) -> int:
        attempts.append(made)
        if len(attempts) == 1:
            made.execute("DO $$ BEGIN RAISE serialization_failure USING MESSAGE = 'conflict with recovery'; END $$")
        return len(attempts)

    with open_store(path) as store:
        connection: Any = store._connection  # type: ignore[attr-defined]
        assert connection.call(run) == 2
        assert store.head() == NOTHING
