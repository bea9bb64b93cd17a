"""Statuses: what queries report about themselves is kept, replaced and removed, and changes nothing else."""

from pathlib import Path

import pytest

import spark_rowtime as rt
from spark_rowtime.errors import StoreCorruptError
from spark_rowtime.store import check_store, open_store
from spark_rowtime.store.base import Store
from spark_rowtime.store.snapshot import FORGET_STATUS_MICROS, HOST, READER, WRITER
from spark_rowtime.testing.clock import TestClock
from tests.store.streams import NewStream, Writer, infos


def shown(store: Store) -> list[tuple[str, str, str]]:
    return [(a.role, a.name, a.content) for a in store.snapshot().statuses]


def test_a_commit_brings_the_status_of_its_producer(new_stream: NewStream) -> None:
    open_stream = new_stream()
    writer = Writer(open_stream(), "spark-1")
    assert shown(open_stream()) == []
    writer.send([1], floor=1, query_status='{"batch": 0}')
    writer.send([2], floor=2)
    assert shown(open_stream()) == [(WRITER, "spark-1", '{"batch": 0}')]
    commit = writer.commit([3], floor=3, query_status='{"batch": 2}')
    for _ in "ab":  # a retry changes nothing
        writer.store.commit(commit)
    assert shown(open_stream()) == [(WRITER, "spark-1", '{"batch": 2}')]


def test_a_fenced_commit_leaves_the_status(new_stream: NewStream) -> None:
    store = new_stream()()
    old = Writer(store, "spark-1", session="old")
    Writer(store, "spark-1", session="new").send([1], query_status="new")
    with pytest.raises(rt.ProducerFencedError):
        old.send([2], query_status="old")
    assert shown(store) == [(WRITER, "spark-1", "new")]


def test_a_report_replaces_the_last_one_and_leaves_the_log(new_stream: NewStream) -> None:
    open_stream = new_stream()
    store = open_stream()
    before = store.head(), store.rejections_end(), infos(store), store.snapshot().readers
    store.put_status(READER, "q", "one")
    store.put_status(READER, "q", "größe 漢字")
    store.put_status(HOST, "q", "three")
    assert shown(open_stream()) == [(HOST, "q", "three"), (READER, "q", "größe 漢字")]
    assert before == (store.head(), store.rejections_end(), infos(store), store.snapshot().readers)


def test_reports_are_as_old_as_they_are_and_go_after_a_week(new_stream: NewStream) -> None:
    store, clock = new_stream()(), TestClock()
    clock.drive(store)
    Writer(store, "spark-1").send([1], query_status="{}")
    store.put_status(READER, "old", "{}")
    clock.advance(5_000_000)
    assert all(5_000_000 <= a.unseen < 65_000_000 for a in store.snapshot().statuses)
    clock.advance(FORGET_STATUS_MICROS)
    store.put_status(READER, "new", "{}")
    assert [a.name for a in store.snapshot().statuses] == ["new", "spark-1"]


def test_a_copy_has_the_statuses_of_writers_alone(new_stream: NewStream, tmp_path: Path) -> None:
    store = new_stream()()
    Writer(store, "spark-1").send([1], query_status="{}")
    store.put_status(READER, "q", "{}")
    to = "memory://copied" if store.path.startswith("memory://") else str(tmp_path / "copy")
    rt.copyStream(store.path, to)
    with open_store(to) as copy:
        assert shown(copy) == [(WRITER, "spark-1", "{}")]


def test_damage_in_a_status_is_found(new_stream: NewStream) -> None:
    import sqlite3

    store = new_stream()()
    if "://" in store.path:
        pytest.skip("only a directory has files")
    store.put_status(READER, "q", "{}")
    with sqlite3.connect(Path(store.path) / "catalog.db") as catalog:
        catalog.execute("UPDATE accounts SET content = '{ }'")
    with pytest.raises(StoreCorruptError, match="table accounts"):
        store.snapshot()
    assert any("table accounts" in damage for damage in check_store(store.path).damage)
