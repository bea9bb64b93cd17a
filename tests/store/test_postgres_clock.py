"""The clock of the database decides on leases and ages, also when it jumps."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from spark_rowtime.store import check_store, create_store, open_store
from spark_rowtime.store.base import Store
from spark_rowtime.store.settings import StreamSettings
from tests.store.streams import SCHEMA, Writer, infos, read

DAY_SECONDS, LEASE_MICROS = 86_400, 60_000_000
FAKE = (
    "CREATE SCHEMA fake",
    "CREATE TABLE fake.jump (seconds integer)",
    "INSERT INTO fake.jump VALUES (0)",
    "ALTER FUNCTION pg_catalog.clock_timestamp() RENAME TO real_clock_timestamp",
    """CREATE FUNCTION pg_catalog.clock_timestamp() RETURNS timestamptz VOLATILE LANGUAGE sql AS
    'SELECT pg_catalog.real_clock_timestamp() + make_interval(secs => (SELECT seconds FROM fake.jump))'""",
)
"""Replaces the clock of a database: no session of a stream looks for one elsewhere."""


@pytest.fixture(scope="module")
def database(postgres: Any) -> str:
    postgres.execute("CREATE DATABASE clock")
    for statement in FAKE:
        postgres.execute(statement, database="clock")
    return "clock"


@pytest.fixture
def jump(postgres: Any, database: str) -> Callable[[int], None]:
    """``jump(seconds)`` puts the database's clock forward, or back, from what it really is."""

    def to(seconds: int) -> None:
        postgres.execute(f"UPDATE fake.jump SET seconds = {seconds}", database=database)

    to(0)
    return to


@pytest.fixture
def path(postgres: Any, database: str, request: pytest.FixtureRequest) -> str:
    path = str(postgres.url(f"clock/{request.node.name}", database=database))
    create_store(path, SCHEMA, StreamSettings())
    return path


def statuses(store: Store) -> dict[str, str]:
    return {producer.name: producer.status.value for producer in infos(store)}


def test_a_clock_that_jumps_forward_ends_leases(path: str, jump: Callable[[int], None]) -> None:
    """Of those who are silent. Who commits is alive, and its rows land once."""
    with open_store(path) as store, open_store(path) as other:
        writer, silent = Writer(store, "a", lease=LEASE_MICROS), Writer(other, "silent", lease=LEASE_MICROS)
        for second in range(4):
            writer.send([second], floor=second)
        jump(DAY_SECONDS)
        writer.send([4], floor=4)
        assert statuses(store) == {"a": "attached", "silent": "detached"}
        assert other.renew("silent", silent.epoch)
        for second in range(5, 9):
            writer.send([second], floor=second)
        assert statuses(store) == {"a": "attached", "silent": "attached"}
        assert read(store) == list(range(9))
    assert check_store(path).damage == []


def test_while_a_clock_is_behind_what_it_was_no_time_passes(
    path: str, jump: Callable[[int], None], postgres: Any
) -> None:
    """No lease ends, and none lasts for a day longer: the time goes on from where it was."""
    with open_store(path) as store:
        writer = Writer(store, "a", lease=LEASE_MICROS)
        for second in range(4):
            writer.send([second], floor=second)
        jump(-DAY_SECONDS)
        assert not store.expire()
        for second in range(4, 8):
            writer.send([second], floor=second)
        assert statuses(store) == {"a": "attached"}
        jump(2 * LEASE_MICROS // 1_000_000 - DAY_SECONDS)
        assert store.expire()
        assert statuses(store) == {"a": "detached"}
        assert read(store) == list(range(8))
        stream = store.name
    query = "SELECT e.time FROM rowtime.events e JOIN rowtime.heads h USING (stream) WHERE h.name = '{}' ORDER BY e.seq"
    times = [time for (time,) in postgres.execute(query.format(stream), database="clock")]
    assert all(before <= after for before, after in pairwise(times))
    assert times[-1] - times[0] < 1_000_000 * DAY_SECONDS
    assert check_store(path).damage == []
