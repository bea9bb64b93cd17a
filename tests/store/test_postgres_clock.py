"""The clock of the database decides on leases and ages, also when it jumps. The path injects it."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from spark_rowtime.store import check_store, create_store, open_store
from spark_rowtime.store.base import Store, StreamSettings
from tests.store.streams import SCHEMA, Writer, read

DAY_SECONDS, LEASE_MICROS = 86_400, 60_000_000
FAKE = (
    "CREATE SCHEMA IF NOT EXISTS fake",
    "CREATE TABLE IF NOT EXISTS fake.jump (seconds integer)",
    "DELETE FROM fake.jump",
    "INSERT INTO fake.jump VALUES (0)",
    """CREATE OR REPLACE FUNCTION fake.clock_timestamp() RETURNS timestamptz VOLATILE LANGUAGE sql AS
    'SELECT pg_catalog.clock_timestamp() + make_interval(secs => (SELECT seconds FROM fake.jump))'""",
)
INJECTED = "?options=-csearch_path%3Dfake,pg_catalog"
"""The schema ``fake`` comes before the system's, so its clock is found first."""


@pytest.fixture
def jump(postgres: Any) -> Callable[[int], None]:
    """``jump(seconds)`` puts the database's clock forward, or back, from what it really is."""
    for statement in FAKE:
        postgres.execute(statement)
    return lambda seconds: postgres.execute(f"UPDATE fake.jump SET seconds = {seconds}")


@pytest.fixture
def path(postgres: Any, request: pytest.FixtureRequest) -> str:
    path = postgres.url(f"clock/{request.node.name}") + INJECTED
    create_store(path, SCHEMA, StreamSettings())
    return path


def statuses(store: Store) -> dict[str, str]:
    return {producer.name: producer.status.value for producer in store.producers()}


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
    times = [time for (time,) in postgres.execute(query.format(stream))]
    assert all(before <= after for before, after in pairwise(times))
    assert times[-1] - times[0] < 1_000_000 * DAY_SECONDS
    assert check_store(path).damage == []
