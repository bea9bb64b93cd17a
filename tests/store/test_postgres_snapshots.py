"""A transaction of somebody else that stays open: the server keeps old versions of rows, which commits do not walk."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from click.testing import CliRunner

import spark_rowtime as rt
from spark_rowtime.cli import main
from spark_rowtime.store import check_store, copy_store, create_store, open_store
from spark_rowtime.store.base import Store
from spark_rowtime.store.postgres import eras, snapshot
from spark_rowtime.store.postgres.connection import SETTINGS
from spark_rowtime.store.postgres.inline import CarriedTrains
from spark_rowtime.store.postgres.one_trip_commit import call
from spark_rowtime.store.settings import StreamSettings
from tests.postgresserver import PostgresServer
from tests.store.streams import SCHEMA, Writer, at, read

COMMITS = 1500
_BLOCKS = (
    "SELECT sum(pg_stat_get_xact_blocks_fetched(oid)) FROM pg_class WHERE relname IN "
    "('heads', 'producers', 'heads_pkey', 'producers_pkey', 'floors')"
)


def blocks(connection: Any, store: Store, writer: Writer) -> int:
    """How many blocks of the rows that change, and of their indexes, the server looks at for a commit.

    Where the server's clock is behind in the process of the connection, it makes none; then it is asked again.
    """
    while (found := _blocks(connection, store, writer)) is None:
        pass
    return found


def _blocks(connection: Any, store: Store, writer: Writer) -> int | None:
    commit = writer.commit([9_999], floor=9_999)
    writer.number -= 1
    with connection.transaction(force_rollback=True):
        (before,) = connection.execute(_BLOCKS).fetchone()
        landed = connection.execute(
            *call(commit, store.number, store.name, store.settings, None, None), binary=True
        ).fetchone()
        (after,) = connection.execute(_BLOCKS).fetchone()
    return None if landed[0] is None else int(after - before)


@pytest.fixture
def store(postgres: PostgresServer, request: pytest.FixtureRequest) -> Iterator[Store]:
    path = postgres.url(request.node.name)
    create_store(path, SCHEMA, StreamSettings())
    with open_store(path) as store:
        yield store


@pytest.mark.long
def test_a_commit_does_not_walk_the_versions_that_a_snapshot_keeps(postgres: PostgresServer, store: Store) -> None:
    """What it looks at is limited by an era, however many commits there were since the snapshot began."""
    writers, second = [Writer(store, name) for name in "abc"], 0
    with postgres.connect() as other, postgres.connect() as measuring:
        measuring.execute(SETTINGS)
        other.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        assert other.execute("SELECT count(*) FROM rowtime.heads").fetchone()[0]
        looked_at = []
        for second in range(1, COMMITS + 1):
            writers[second % 3].send([second], floor=second)
            if second % 100 == 0:
                looked_at.append(blocks(measuring, store, writers[(second + 1) % 3]))
        assert max(looked_at[-5:]) < 2 * max(looked_at[:5]), looked_at
        ((versions,),) = postgres.execute(f"SELECT count(*) FROM rowtime.producers WHERE stream = {store.number}")
        assert versions == 3
    assert read(store) == list(range(1, COMMITS + 1))
    assert store.head().floor == min(store.producer(name).floor for name in "abc")
    assert check_store(store.path).damage == []


def test_each_producer_that_counts_has_the_era_of_the_head(
    postgres: PostgresServer, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Through commits of both ways, newcomers, those who leave and come back, and leases that end."""
    monkeypatch.setattr(eras, "ERA_COMMITS", 4)
    monkeypatch.setattr(eras, "ERA_PRODUCERS", 1)
    strangers = (
        "SELECT p.name FROM rowtime.producers p, rowtime.heads h WHERE h.stream = p.stream AND p.era <> h.era AND "
        f"p.status IN ('attached', 'idle', 'expected') AND p.stream = {store.number}"
    )
    writers = {name: Writer(store, name) for name in "abcd"}
    for second in range(1, 60):
        name = "abcd"[second % 4]
        if second % 7 == 0:
            store.close_producer(name)
            writers[name] = Writer(store, name, session=str(second))
        elif second % 11 == 0:
            store.detach(name)
            store.renew(name, writers[name].epoch, sends=True)
        writers[name].send([second], [second], floor=second)  # two trains: not the server's function
        assert postgres.execute(strangers) == []
    ((era,),) = postgres.execute(f"SELECT era FROM rowtime.heads WHERE stream = {store.number}")
    assert era > 40
    assert check_store(store.path).damage == []


def test_a_client_that_knows_no_eras_brings_no_producer_back(postgres: PostgresServer, store: Store) -> None:
    """One of an older version, that was connected when the tables were upgraded: the bound would not wait for it."""
    gone, stays = Writer(store, "gone"), Writer(store, "stays")
    gone.leave()
    brings_back = f"UPDATE rowtime.producers SET status = 'attached' WHERE stream = {store.number} AND name = 'gone'"
    for second in range(1, eras.ERA_COMMITS + 1):
        stays.send([second], floor=second)
    with pytest.raises(psycopg.errors.RaiseException, match="newer version of spark-rowtime"):
        postgres.execute(brings_back)
    Writer(store, "gone", session="again")
    stays.send([100], floor=100)
    assert store.head().floor == at(eras.ERA_COMMITS)
    assert check_store(store.path).damage == []


def test_commits_go_on_while_all_tables_are_published(postgres: PostgresServer, store: Store) -> None:
    """As by logical replication of the database: the server then updates no table without a key."""
    writer = Writer(store, "a")
    postgres.execute("CREATE PUBLICATION everything FOR ALL TABLES")
    try:
        for second in range(1, eras.ERA_COMMITS + 2):
            writer.send([second], floor=second)
        store.close_producer("a")
        assert store.gc(age=0).rows == eras.ERA_COMMITS + 1
    finally:
        postgres.execute("DROP PUBLICATION everything")
    assert check_store(store.path).damage == []


def test_describe_names_a_transaction_that_is_open_for_long(
    postgres: PostgresServer, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    with postgres.connect(application_name="somebody's dump") as other:
        other.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        other.execute("SELECT 1 FROM rowtime.heads")
        assert not any("somebody" in text for text in rt.describeStream(store.path).openTransactions)
        monkeypatch.setattr(snapshot, "OPEN_MICROS", 0)
        said = CliRunner().invoke(main, ["describe", store.path]).output
        assert re.search(r"warning   a transaction in the database has been open for \d+ s", said)
        assert f"pg_terminate_backend({other.info.backend_pid})" in said
    assert not any("somebody" in text for text in rt.describeStream(store.path).openTransactions)


def test_a_copy_and_a_check_keep_no_snapshot_while_they_read(
    postgres: PostgresServer, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each query has one of its own. What is committed meanwhile is not in the copy."""
    writer, kept = Writer(store, "a"), list[int]()
    writer.send([1], [2], [3], floor=3)
    look = CarriedTrains.read

    def looking(*arguments: Any) -> Any:
        ((snapshots,),) = postgres.execute("SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in%'")
        kept.append(snapshots)
        writer.send([4 + len(kept)], floor=4 + len(kept))
        return look(*arguments)

    monkeypatch.setattr(CarriedTrains, "read", looking)
    copy_store(store.path, str(tmp_path / "copy"))
    report = check_store(store.path)
    monkeypatch.undo()
    assert (set(kept), report.damage, report.rows) == ({0}, [], 6)
    assert check_store(str(tmp_path / "copy")).damage == []
    with open_store(str(tmp_path / "copy")) as copy:
        assert read(copy) == [1, 2, 3]
