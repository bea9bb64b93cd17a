"""A store that has forgotten commits which it had acknowledged is noticed by the next commit, of whatever kind."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import spark_rowtime as rt
from spark_rowtime.bounds.key_parts import KeyChanges
from spark_rowtime.bounds.topic_cut import CutBound, TopicCut
from spark_rowtime.errors import DataLostError
from spark_rowtime.store.base import Store
from spark_rowtime.store.commits import Commit
from spark_rowtime.types.timestamps import END
from tests.store.streams import NewStream, Writer, at, infos, read

CUT = TopicCut({"orders": {0: 5}}, {"orders": "id"})
KINDS: dict[str, Callable[[Writer], Commit]] = {
    "rows": lambda writer: writer.commit([7], floor=7),
    "trains": lambda writer: writer.commit([7], [8], floor=8),
    "bound": lambda writer: writer.commit(floor=7),
    "nothing new": lambda writer: writer.commit(floor=1, checkpoint="c"),
    "late rows": lambda writer: writer.commit(floor=1, late=[0]),
    "cut": lambda writer: replace(writer.commit(floor=7), bounds=(CutBound(at(7) or 0, CUT),)),
    "keys": lambda writer: writer.commit([7], floor=7, keys=KeyChanges(False, b"")),
    "query status": lambda writer: writer.commit([7], floor=7, query_status="{}"),
    "end": lambda writer: replace(writer.commit(), floor=END),
}


def seen(store: Store) -> Any:
    return store.head(), infos(store), store.rejections_end(), store.has_cuts(), store.snapshot().statuses, read(store)


@pytest.mark.parametrize("kind", KINDS)
def test_a_number_that_leaves_a_gap_is_refused(new_stream: NewStream, kind: str) -> None:
    store = new_stream()()
    writer, silent = Writer(store, "a"), Writer(store, "silent", lease=1)
    writer.send([1], floor=1)
    commit, before = KINDS[kind](writer), seen(store)
    for number in (3, 4, 40):
        with pytest.raises(DataLostError, match="lacks commits that it had acknowledged") as raised:
            store.commit(replace(commit, number=number))
        assert (raised.value.values["asked"], raised.value.values["last"]) == (number, 1)
        assert seen(store) == before
    assert silent.number == 0


@pytest.mark.parametrize("kind", KINDS)
def test_a_number_below_the_last_is_refused(new_stream: NewStream, kind: str) -> None:
    """Another sink went on after a restore to a time before this one opened, and has its epoch."""
    store = new_stream()()
    writer = Writer(store, "a")
    for second in (1, 2, 3):
        writer.send([second], floor=second)
    commit, before = KINDS[kind](writer), seen(store)
    with pytest.raises(DataLostError, match="that the sink never made"):
        store.commit(replace(commit, number=2))
    assert seen(store) == before
    assert store.commit(commit) == store.commit(commit)


def backup(postgres: Any, database: str, name: str) -> None:
    """Keeps the database as it is now under another name."""
    clients = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{database}'"
    postgres.execute(clients, "postgres")
    postgres.copy(database, name)


def restore(postgres: Any, database: str, name: str) -> None:
    postgres.execute(f"DROP DATABASE {database} WITH (FORCE)", "postgres")
    postgres.execute(f"ALTER DATABASE {name} RENAME TO {database}", "postgres")


def row(sink: Any, minute: int) -> None:
    sink.sendRow((f"2026-01-05T10:{minute:02}:00Z", minute))


def bound(sink: Any, minute: int) -> None:
    sink.sendRowtimeBound(f"2026-01-05T10:{minute:02}:00Z", cut={"orders": {0: 10 * minute}})


@pytest.mark.parametrize(
    ("how", "send"),
    [({}, row), ({"inOrderPer": "n"}, row), ({"rowsImplyBounds": False}, bound)],
    ids=["rows", "keys", "cuts"],
)
def test_a_live_sink_of_a_database_that_was_restored(
    postgres: Any, request: pytest.FixtureRequest, how: dict[str, Any], send: Callable[[Any, int], None]
) -> None:
    """Its first commit after the restore says so, and nothing is acknowledged from then on."""
    name = f"live_{request.node.callspec.id}"
    postgres.execute(f"CREATE DATABASE {name}", "postgres")
    path = postgres.url("orders", database=name)
    rt.createStream(path, "rowtime TIMESTAMP NOT NULL, n BIGINT")
    sink = rt.openSink(path, producer="feed", lease=None, **how)
    send(sink, 1)
    sink.flush()
    backup(postgres, name, f"{name}_backup")
    for minute in (2, 3):
        send(sink, minute)
        sink.flush()
    restore(postgres, name, f"{name}_backup")
    before = rt.describeStream(path)
    for minute in (4, 5):
        with pytest.raises(DataLostError, match="commits that it had acknowledged"):
            send(sink, minute)
            sink.flush()
    after = rt.describeStream(path)
    assert (after.rows, after.bound) == (before.rows, before.bound)
    with pytest.raises(DataLostError):
        sink.abandon()
