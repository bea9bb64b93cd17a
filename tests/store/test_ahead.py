"""maxAhead in each store: nothing lands that is too far ahead of the store's clock, whatever the caller looked at."""

from dataclasses import replace
from typing import Any

import pytest

from spark_rowtime.bounds.disorder import declared
from spark_rowtime.bounds.topic_cut import CutBound, TopicCut
from spark_rowtime.errors import RowtimeAheadError
from spark_rowtime.producer.sink import StreamSink
from spark_rowtime.store.base import Store
from spark_rowtime.types.timestamps import END
from tests.store.streams import SCHEMA, SECOND, START, NewStream, Writer, at, batch, infos, read, seconds

YEAR_9999 = 250_000_000_000 - START // SECOND
"""In the seconds of these tests."""


@pytest.fixture
def store(new_stream: NewStream) -> Store:
    """A stream that takes what is up to ten seconds ahead; its clock stands at 0."""
    store = new_stream(maxAhead=10 * SECOND)()
    store.now = lambda: START
    return store


def rejected(store: Store) -> list[Any]:
    return [(r.rejected.reason, r.rejected.bound, seconds(r.rejected.rows)) for r in store.rejections()]


def test_ahead(store: Store) -> None:
    """Rows are rejected, and what is not ahead lands; a repetition gives the same receipt."""
    writer = Writer(store, "a")
    commit = writer.commit([5, YEAR_9999, 10], [11], [3, 4], floor=3)
    receipt = store.commit(commit)
    assert [(r.reason, r.bound, seconds(r.rows)) for r in receipt.rejected] == rejected(store)
    assert rejected(store) == [("ahead", at(10), [YEAR_9999]), ("ahead", at(10), [11])]
    assert read(store) == [5, 10, 3, 4]
    again = store.commit(commit)
    assert (again.seq, again.floor, len(again.rejected)) == (receipt.seq, at(3), 2)
    assert (infos(store)[0].accepted, infos(store)[0].rejected) == (4, 2)


@pytest.mark.parametrize("trains", [[], [[5]], [[YEAR_9999]]], ids=["alone", "with a row", "implied by a row"])
def test_a_bound_too_far_ahead_is_refused_with_all_that_comes_with_it(store: Store, trains: list[Any]) -> None:
    writer, other = Writer(store, "a"), Writer(store, "b")
    other.send(floor=2)
    before = store.head(), infos(store)
    for floor in (10.5, YEAR_9999):
        with pytest.raises(RowtimeAheadError, match=r"of producer 'a' lies .* ahead of the clock") as caught:
            writer.send(*trains, floor=floor)
        assert caught.value.values == {"path": store.path, "producer": "a", "rowtime": at(floor), "ceiling": at(10)}
    assert (store.head(), infos(store), read(store), rejected(store)) == (*before, [], [])
    store.now = lambda: START + SECOND  # now it is 10 s ahead
    writer.send(floor=11)
    assert store.head().floor == at(2)


def test_a_bound_with_a_cut_is_refused_too(store: Store) -> None:
    writer, cut = Writer(store, "a"), TopicCut({"orders": {0: 3}})
    bounds = (CutBound(at(5) or 0, cut), CutBound(at(YEAR_9999) or 0, cut))
    with pytest.raises(RowtimeAheadError):
        store.commit(replace(writer.commit(floor=YEAR_9999), bounds=bounds))
    assert (store.head().floor, store.has_cuts()) == (None, False)


def test_the_end_of_time_is_not_ahead(store: Store) -> None:
    Writer(store, "a").complete([5], [YEAR_9999])
    assert (store.head().floor, read(store), rejected(store)) == (END, [5], [("ahead", at(10), [YEAR_9999])])


def test_a_batch_that_lands_whole_or_not_at_all_does_not_land(store: Store) -> None:
    writer = Writer(store, "a")
    with pytest.raises(RowtimeAheadError, match="The row at 9892-"):
        writer.send([5], [YEAR_9999, 12], all_or_nothing=True)
    assert (read(store), rejected(store)) == ([], [])


def test_what_was_promised_before_stays_promised(store: Store) -> None:
    """The clock was put back: the bound may be said again, and what lies beyond is rejected until it is there again."""
    writer = Writer(store, "a")
    writer.send([10], floor=10)
    store.now = lambda: START - 3 * SECOND
    writer.send([8], floor=10)
    with pytest.raises(RowtimeAheadError):
        writer.send(floor=10.5)
    store.now = lambda: START
    writer.send([10], floor=10)
    assert (read(store), rejected(store)) == ([10, 10], [("ahead", at(7), [8])])


def test_a_row_can_be_late_or_ahead_in_one_train(store: Store) -> None:
    Writer(store, "b").send(floor=4)
    writer = Writer(store, "a")
    store.detach("b")
    writer.send(floor=4)
    receipt = writer.send([3, 12, 7])
    assert read(store) == [7]
    assert [(r.reason, r.bound, seconds(r.rows)) for r in receipt.rejected] == [
        ("late", at(4), [3]),
        ("ahead", at(10), [12]),
    ]


@pytest.mark.parametrize("order", [{}, {"rowsImplyBounds": False}, {"lateness": "1 second"}], ids=str)
def test_a_sink_whose_clock_is_wrong_cannot_move_the_stream(store: Store, order: dict[str, Any]) -> None:
    """The attacker, or a machine of the year 9999: its sink takes everything, and its commits move nothing."""
    liar = StreamSink(store, "liar", declared(SCHEMA, **order), now=lambda: END, linger=0, onLate="reject")
    with pytest.raises(RowtimeAheadError, match="'liar'"):
        liar.sendRows(batch(YEAR_9999))
        liar.sendRowtimeBound(batch(YEAR_9999).column(0)[0])
        liar.flush()
    honest = Writer(store, "honest")
    store.close_producer("liar")
    honest.send([1, 2], floor=2)
    assert (store.head().floor, read(store)) == (at(2), [1, 2])
