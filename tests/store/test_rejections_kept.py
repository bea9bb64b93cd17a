"""Rejected rows have a limit; all are counted."""

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace

import pytest

from spark_rowtime.store import check_store, rejection_rules
from spark_rowtime.store.base import Store
from spark_rowtime.store.local import LocalStore
from tests.store.streams import NewStream, Writer, infos, seconds

ROWS, LIMIT = 500, 5_000


def kept(store: Store) -> list[float]:
    return seconds(store.rejected().select(["rowtime"]))


def test_an_adapter_that_retries_a_late_row_does_not_fill_the_disk(new_stream: NewStream) -> None:
    store = new_stream(retainRejected=LIMIT)()
    writer = Writer(store, "a")
    writer.send([10_000], floor=10_000)
    for number in range(ROWS):
        writer.send(floor=10_000, late=[number])
    assert store.rejected().select(["rowtime", "n", "bound"]).nbytes < 3 * LIMIT
    found = kept(store)
    assert 10 < len(found) < 0.95 * ROWS
    assert found == list(range(ROWS - len(found), ROWS)), "the newest"
    assert infos(store)[0].rejected == ROWS
    assert store.snapshot().rejected_removed == ROWS - len(found)
    if isinstance(store, LocalStore):
        assert check_store(store.path).damage == []


def test_a_commit_removes_few_rejections_and_the_next_ones_go_on(
    open_here: Callable[..., LocalStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit of a stream of format 1 may be far below what it has kept until then."""
    store = open_here()
    writer = Writer(store, "a")
    writer.send([10_000], floor=10_000)
    for number in range(50):
        writer.send(floor=10_000, late=[number])
    monkeypatch.setattr(rejection_rules, "MOST_REMOVED", 9)
    store.settings = replace(store.settings, retainRejected=2_000)
    left = []
    for number in range(50, 60):
        writer.send(floor=10_000, late=[number])
        left.append(len(kept(store)))
    assert left[:4] == [41, 32, 23, 14]
    assert left[-1] < 10
    assert check_store(store.path).damage == []


def test_what_a_commit_rejects_itself_is_kept_however_large(new_stream: NewStream) -> None:
    store = new_stream(retainRejected=0)()
    writer = Writer(store, "a")
    writer.send([10], floor=10, late=[1, 2])
    assert kept(store) == [1, 2]
    writer.send(floor=10, late=[3] * 1_000)
    assert kept(store) == [3] * 1_000
    assert store.snapshot().rejected_removed == 2


def test_a_commit_that_is_repeated_gets_its_receipt_again(new_stream: NewStream) -> None:
    store = new_stream(retainRejected=0)()
    one, other = Writer(store, "one"), Writer(store, "other")
    one.send(floor=10)
    other.send(floor=10)
    commit = one.commit([5], floor=11)
    receipt = store.commit(commit)
    assert [seconds(r.rows) for r in receipt.rejected] == [[5]]
    for _ in range(3):
        other.send(floor=10, late=[1])
    assert [seconds(r.rows) for r in store.commit(commit).rejected] == [[5]]


def test_the_limit_is_one_of_the_stream(new_stream: NewStream) -> None:
    open_stream = new_stream(retainRejected=7)
    with closing(open_stream()) as store:
        assert store.settings.retainRejected == 7
