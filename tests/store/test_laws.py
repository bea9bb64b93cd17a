"""The laws of a store, one test each. Law 8, about crashes, is in test_local_crash.py."""

from dataclasses import replace
from itertools import chain, pairwise

import pytest

from spark_rowtime.bounds.clock import Status
from spark_rowtime.errors import LateRowError, ProducerFencedError
from tests.store.streams import EMPTY, NewStream, Writer, at, batch, infos, place, read, seconds


def test_law_1_a_bound_never_falls(new_stream: NewStream) -> None:
    store = new_stream()()
    first = Writer(store, "first")
    floors = [first.send(floor=10).floor]
    second = Writer(store, "second")
    floors += [second.send([20], floor=20).floor, first.send(floor=15).floor]
    store.detach("first")
    floors += [store.head().floor, second.send(floor=19).floor]
    second.leave()
    third = Writer(store, "third")
    floors += [store.head().floor, third.send([30], floor=None).floor]

    assert floors == [at(t) for t in (10, 10, 15, 20, 20, 20, 20)]
    assert [store.at(seq).floor for seq in range(1, store.head().seq + 1)] == sorted(
        (store.at(seq).floor for seq in range(1, store.head().seq + 1)), key=lambda f: f or 0
    )


def test_law_2_no_row_lands_below_the_bound_that_was_in_force(new_stream: NewStream) -> None:
    store = new_stream()()
    slow = Writer(store, "slow")
    Writer(store, "fast").send(floor=10)
    slow.send(floor=10)

    receipt = slow.send([9, 10, 8, 11], [12], [7], floor=12)

    assert read(store) == [10, 11, 12]
    assert [(r.reason, r.bound, seconds(r.rows)) for r in receipt.rejected] == [
        ("late", at(10), [9, 8]),
        ("late", at(10), [7]),
    ]


def test_law_2_a_commit_that_is_to_land_whole_does_so_or_not_at_all(new_stream: NewStream) -> None:
    open_stream = new_stream()
    store, slow = open_stream(), Writer(open_stream(), "slow")
    Writer(store, "fast").send(floor=10)
    slow.send([12], floor=12)
    store.detach("fast")
    before = store.head(), infos(store), store.rejected().num_rows
    commit = replace(slow.commit([13, 11], [14], floor=14), all_or_nothing=True)

    with pytest.raises(LateRowError, match=r"1 row\(s\) of producer 'slow' lie below .* Nothing was committed"):
        slow.store.commit(commit)
    assert (store.head(), infos(store), store.rejected().num_rows) == before
    assert store.commit(replace(commit, all_or_nothing=False)).rejected
    assert read(store) == [12, 13, 14]


def test_law_3_a_train_is_all_or_nothing(new_stream: NewStream) -> None:
    open_stream = new_stream()
    store, reader = open_stream(), open_stream()
    writer = Writer(store, "a")

    commit = writer.commit([1, 2, 3], [4], floor=4)
    assert read(reader) == []
    assert reader.head().rows == 0

    store.commit(commit)
    assert read(reader) == [1, 2, 3, 4]
    assert reader.head() == (3, at(4), at(4), 4)


def test_law_4_a_retry_changes_nothing(new_stream: NewStream) -> None:
    open_stream = new_stream()
    writer = Writer(open_stream(), "a")
    writer.send(floor=5)
    commit = writer.commit([3, 6], floor=6, late=[1, 2], checkpoint="c")
    receipt = writer.store.commit(commit)
    before = (writer.store.head(), infos(writer.store), writer.store.rejected())

    again = open_stream()
    assert again.commit(commit) == receipt
    assert (again.head(), infos(again), again.rejected()) == before
    assert read(again) == [6]


def test_law_5_a_fenced_producer_cannot_append(new_stream: NewStream) -> None:
    open_stream = new_stream()
    old = Writer(open_stream(), "a", session="old")
    old.send([1], floor=1)
    new = Writer(open_stream(), "a", session="new")
    before = new.store.head()

    with pytest.raises(ProducerFencedError, match="epoch 1, the stream has epoch 2"):
        old.send([2], floor=2)
    with pytest.raises(ProducerFencedError):
        old.leave()

    assert new.store.head() == before
    assert infos(new.store)[0].status is Status.ATTACHED
    new.send([3], floor=3)
    assert read(old.store) == [1, 3]


def test_law_6_the_rows_between_two_positions_are_always_the_same(new_stream: NewStream) -> None:
    open_stream = new_stream()
    store = open_stream()
    ordered, wild = Writer(store, "ordered"), Writer(store, "wild")
    wild.send([9, 2, 30], floor=None)
    ordered.send([1, 2, 3], [3, 8], floor=8)
    wild.send([5, 4], floor=4)
    path = [EMPTY, place(3, 2), place(5, 4), place(5, 9), place(6, 9), place(store.head().seq, 31)]

    def steps() -> list[list[float]]:
        return [read(open_stream(), a, b) for a, b in pairwise(path)]

    before = steps()
    assert before == [[], [2, 1, 2, 3, 3], [8], [5, 4], [9, 30]]
    assert sorted(chain.from_iterable(before)) == sorted(read(store))

    ordered.send([8, 40], floor=40)
    wild.leave()
    ordered.leave()
    assert steps() == before


def test_law_7_a_bound_without_rows_is_visible(new_stream: NewStream) -> None:
    open_stream = new_stream()
    reader = open_stream()
    Writer(open_stream(), "a").send(floor=7)

    head = reader.head()
    assert head == (2, at(7), None, 0)
    assert reader.slices(EMPTY, place(head.seq)) == []
    assert reader.bounds().column("bound").cast("int64").to_pylist() == [None, at(7)]


def test_law_9_rejected_rows_are_kept_with_reason_bound_producer_and_time(new_stream: NewStream) -> None:
    open_stream = new_stream()
    store = open_stream()
    writer, store.now = Writer(store, "a"), lambda: at(77) or 0
    writer.send([10], floor=10, late=[1, 2])
    writer.send([9], floor=11)

    table = open_stream().rejected()
    origin = ["boundOf", "boundBy", "boundEvent"]
    assert table.column_names == ["producer", "reason", "bound", *origin, "rejectedAt", "rowtime", "n"]
    assert [tuple(row.values()) for row in table.select(origin).to_pylist()] == [
        (None, None, None),
        (None, None, None),
        ("stream", "a", "sent"),
    ]
    assert table.column("rejectedAt").cast("int64").to_pylist() == [at(77)] * 3
    assert table.column("producer").to_pylist() == ["a", "a", "a"]
    assert table.column("reason").to_pylist() == ["late", "late", "late"]
    assert table.column("bound").cast("int64").to_pylist() == [at(10)] * 3
    assert table.select(["rowtime", "n"]).slice(0, 2).to_batches()[0] == batch(1, 2)
    info = infos(open_stream())[0]
    assert (info.accepted, info.rejected) == (1, 3)
