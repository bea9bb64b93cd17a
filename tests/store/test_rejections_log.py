"""The log of rejections: numbers without gaps, what was removed, and whose bound it was."""

from dataclasses import replace

import pytest

from spark_rowtime.bounds.origin import PRODUCER, STREAM, BoundOrigin
from spark_rowtime.errors import LateRowError
from spark_rowtime.store import rejection_rules
from spark_rowtime.store.admission import whose_bound
from spark_rowtime.store.base import Store
from tests.store.streams import NewStream, Writer, at, seconds

ANY_ORDER = '{"rowsImplyBounds": false}'


def numbers(store: Store, after: int = 0, upto: int | None = None) -> list[int]:
    return [rejection.number for rejection in store.rejections(after, upto)]


def test_the_rejections_between_two_numbers(new_stream: NewStream, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rejection_rules, "PORTION_REJECTIONS", 2)
    store = new_stream()()
    assert (store.rejections_end(), numbers(store)) == (0, [])
    writer = Writer(store, "a")
    for second in range(5):
        writer.send(floor=10, late=[second])
    assert store.rejections_end() == 5
    assert numbers(store) == [1, 2, 3, 4, 5]
    assert numbers(store, 1, 4) == [2, 3, 4]
    assert [seconds(r.rejected.rows) for r in store.rejections(3)] == [[3], [4]]


def test_a_number_is_never_used_again(new_stream: NewStream) -> None:
    """A reader's position is a number."""
    store = new_stream(retainRejected=0)()
    writer = Writer(store, "a")
    for second in range(4):
        writer.send(floor=10, late=[second])
        assert numbers(store) == [second + 1]
    assert store.snapshot().rejected_removed == 3


def test_who_raised_the_streams_bound(new_stream: NewStream) -> None:
    store = new_stream()()
    berlin, oslo = Writer(store, "Berlin", declaration=ANY_ORDER), Writer(store, "Oslo", declaration=ANY_ORDER)
    assert store.raised(at(1) or 0) is None
    berlin.send([10], floor=10)
    oslo.send([5], floor=5)
    assert store.raised(at(5) or 0) == BoundOrigin(STREAM, "Oslo", "sent")
    assert store.raised(at(6) or 0) is None
    oslo.leave()
    assert store.raised(at(6) or 0) == store.raised(at(10) or 0) == BoundOrigin(STREAM, "Oslo", "left")
    assert whose_bound(store, "Berlin", at(11) or 0) == BoundOrigin(PRODUCER, "Berlin")
    assert whose_bound(store, "Oslo", at(5) or 0) == BoundOrigin(PRODUCER, "Oslo"), "it has promised it itself"
    assert whose_bound(store, "Paris", at(5) or 0) == BoundOrigin(STREAM, "Oslo", "sent")


def test_the_event_that_raised_the_bound_may_be_removed(new_stream: NewStream) -> None:
    store = new_stream(retainAge=0)()
    writer = Writer(store, "a")
    writer.send([10], floor=11)
    writer.send([20], floor=21)
    writer.send(floor=30)
    store.gc(age=0)
    assert store.horizon().seq == 3
    assert store.raised(at(11) or 0) == BoundOrigin(STREAM)
    assert store.raised(at(30) or 0) == BoundOrigin(STREAM, "a", "sent")


def test_rows_that_the_commit_rejects_have_the_origin_also_when_it_is_repeated(new_stream: NewStream) -> None:
    store = new_stream()()
    berlin, oslo = Writer(store, "Berlin"), Writer(store, "Oslo")
    commit = oslo.commit([3])
    store.detach("Oslo")
    berlin.send([10], floor=10)
    first = store.commit(commit)
    assert [r.origin for r in first.rejected] == [BoundOrigin(STREAM, "Berlin", "sent")]
    assert store.commit(commit).rejected[0].origin == first.rejected[0].origin
    with pytest.raises(LateRowError, match="the stream's since producer 'Berlin' sent rows or a bound") as caught:
        store.commit(replace(oslo.commit([4]), all_or_nothing=True))
    assert caught.value.values["boundBy"] == "Berlin"
