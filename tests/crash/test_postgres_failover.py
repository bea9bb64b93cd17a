"""Failover: the PostgreSQL server dies while producers commit, and its standby takes over. Nothing is lost."""

from collections.abc import Callable, Iterator

import pytest

import spark_rowtime as rt
from spark_rowtime.store import check_store, open_store
from tests.crash import feeds
from tests.crash.checks import check_log, numbers
from tests.crash.tally import Tally
from tests.crash.victims import Victim
from tests.postgresserver import PostgresServer, required_programs
from tests.replica import PRIMARY, Replica

WRITERS, ROWS = 2, 60


@pytest.fixture
def servers() -> Iterator[tuple[PostgresServer, Replica]]:
    """A server, and its standby, which has each commit before the commit returns."""
    place = required_programs()
    if not (place / "pg_basebackup").exists() or not (place / "pg_ctl").exists():
        pytest.skip(f"{place} has no pg_basebackup or pg_ctl, so there can be no standby")
    primary = PostgresServer(place)
    standby = None
    try:
        standby = Replica(place, primary)
        standby.start()
        primary.stop()
        primary.start(**PRIMARY)
        yield primary, standby
    finally:
        for server in (standby, primary):
            if server is not None:
                server.remove()


def test_a_standby_takes_over_while_producers_commit(
    servers: tuple[PostgresServer, Replica], tally: Callable[[str], Tally]
) -> None:
    """The path names both servers. Sinks and a reader that are open go on, without a new path."""
    (primary, standby), line = servers, tally("failover of the PostgreSQL server to its standby")
    path, names = standby.url_of_both("moved"), [f"p{n}" for n in range(WRITERS)]
    rt.createStream(path, feeds.DDL, producers=names)
    with rt.openReader(path, order="arrival", follow=True) as reader:
        writers = [Victim(feeds.persist, path, name, ROWS) for name in names]
        assert all(writer.listen(240, ROWS // 2) for writer in writers)
        seen = [n for n in _rows(reader) if n is not None]
        primary.kill()
        line.fault()
        with pytest.raises(rt.StoreUnavailableError, match="cannot be used just now"):
            reader.read(timeout=0)
        standby.promote()
        assert [writer.end() for writer in writers] == [(list(range(ROWS)), 0)] * WRITERS
        while len(seen) < WRITERS * ROWS:
            seen += _rows(reader)
    assert sorted(seen) == sorted([*range(ROWS)] * WRITERS)
    with open_store(standby.url("moved")) as store:
        for name in names:
            assert numbers(store, name) == list(range(ROWS))
            line.account(numbers(store, name), range(ROWS), range(ROWS))
        check_log(store)
    assert check_store(path).damage == []


def _rows(reader: rt.RowReader) -> list[int]:
    train = feeds.patiently(lambda: reader.read(timeout=240))
    return [] if train is None else train.rows.column("n").to_pylist()
