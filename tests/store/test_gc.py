"""Retention: what gc removes, what it never removes, and what is said of what is gone."""

import weakref

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_rowtime.errors import DataLostError, InvalidOptionError
from spark_rowtime.reader.reader import RowReader
from spark_rowtime.reader.release import Release
from spark_rowtime.store.base import Store
from spark_rowtime.store.memory import MemoryStore
from spark_rowtime.store.position import Position
from spark_rowtime.store.settings import StreamSettings
from tests.store.streams import EMPTY, SCHEMA, SECOND, WHOLE, NewStream, Writer, at, infos, place, read, seconds

ARRIVAL, SORTED = Release("arrival"), Release("rowtime")


def left(store: Store) -> list[float]:
    """The times of all rows that are left, in the order of the log."""
    return read(store, ARRIVAL.earliest(store))


def sorted_rows(store: Store) -> list[float]:
    """What a new reader in the order of rowtimes gets."""
    return [t for train in RowReader(store, SORTED) for t in seconds(train.rows)]


def test_what_is_released_and_old_enough_goes(new_stream: NewStream) -> None:
    open_stream = new_stream()
    store = open_stream()
    store.now = lambda: 100
    writer = Writer(store, "a")
    writer.send([1, 2], floor=2)
    writer.send([3], floor=3)
    store.now = lambda: 200
    writer.send([4], [5], floor=5)

    assert store.gc() == (collected := store.gc(age=101)), "neither settings nor anything that is old"
    assert (collected.rows, collected.kept_for, collected.forgotten) == (0, None, 0)
    assert store.horizon() == (0, None, None, 0)
    assert store.gc(age=100).rows == 3
    assert store.horizon() == store.at(3) == (3, at(3), at(3), 3)
    assert left(store) == left(open_stream()) == [4, 5]
    assert sorted_rows(open_stream()) == [4, 5]


def test_what_stays_as_it_was(new_stream: NewStream) -> None:
    open_stream = new_stream()
    store = open_stream()
    writer = Writer(store, "a")
    writer.send([1, 2], floor=2, late=[1], checkpoint="c", disorder="d")
    commit = writer.commit([3], floor=3)
    receipt = store.commit(commit)
    Writer(store, "b")
    before = (
        store.head(),
        store.snapshot().logged_clock,
        infos(store),
        store.rejected(),
        store.bounds().slice(2).to_pylist(),
    )

    assert store.gc(age=0).rows == 3
    for handle in (store, open_stream()):
        same = (
            handle.head(),
            handle.snapshot().logged_clock,
            infos(handle),
            handle.rejected(),
            handle.bounds().to_pylist(),
        )
        assert same == before
        assert handle.commit(commit) == receipt
    writer.send([4], floor=4)
    assert (left(store), store.head().rows) == ([4], 4)


def test_what_is_not_released_stays(new_stream: NewStream) -> None:
    """So that a reader in the order of rowtimes may still come; not even ``force`` removes it."""
    store = new_stream()()
    Writer(store, "slow").send(floor=2)
    fast = Writer(store, "fast")
    fast.send([1, 2], [2, 9], [1], floor=9)
    fast.send([2, 2], floor=9)
    for force in (False, True):
        collected = store.gc(age=0, force=force)
        assert "bound" in str(collected.kept_for)
    assert left(store) == [2, 9, 2, 2]
    store.detach("slow")
    assert (store.gc(age=0).kept_for, left(store)) == (None, [])


def test_a_stream_without_a_bound_keeps_everything(new_stream: NewStream) -> None:
    store = new_stream()()
    Writer(store, "a").send([1], floor=None)
    assert "bound" in str(store.gc(age=0).kept_for)
    assert left(store) == [1]


def test_what_a_registered_reader_needs_stays(new_stream: NewStream) -> None:
    open_stream = new_stream()
    store = open_stream()
    writer = Writer(store, "a")
    for second in range(1, 6):
        writer.send([second], floor=second)
    store.keep("by arrival", place(3))
    store.keep("by rowtime", place(6, cut=2))
    assert store.gc(age=0).kept_for == "reader 'by rowtime' needs it"
    assert left(store) == [2, 3, 4, 5]
    store.keep("by rowtime", place(6, cut=6))
    assert store.gc(age=0).kept_for == "reader 'by arrival' needs it"
    assert left(store) == [3, 4, 5]
    assert [(r.name, r.position) for r in open_stream().snapshot().readers] == [
        ("by arrival", place(3)),
        ("by rowtime", place(6, cut=6)),
    ]
    store.forget("by arrival")
    assert store.gc(age=0).kept_for is None
    assert left(store) == []
    with pytest.raises(
        InvalidOptionError, match="No reader 'by arrival' is registered; the registered readers are: 'by rowtime'"
    ):
        store.forget("by arrival")


def test_a_reader_is_named_before_the_bound(new_stream: NewStream) -> None:
    """Both hold the same train back; the reader can do something about it."""
    store = new_stream()()
    writer = Writer(store, "a")
    writer.send([1], floor=1)
    writer.send([5], floor=2)
    store.keep("behind", place(2))
    assert store.gc(age=0).kept_for == "reader 'behind' needs it"
    store.forget("behind")
    assert store.gc(age=0).kept_for == "the bound has not released it"


def test_force_takes_from_registered_readers(new_stream: NewStream) -> None:
    store = new_stream()()
    Writer(store, "a").send([1], [2], floor=2)
    store.keep("query", EMPTY)
    assert store.gc(age=0).rows == 0
    assert store.gc(age=0, force=True).rows == 2
    with pytest.raises(DataLostError):
        store.slices(store.snapshot().readers[0].position, place(9))


def test_by_size(new_stream: NewStream) -> None:
    store = new_stream()()
    Writer(store, "a").send([1], [2], [3], floor=3)
    size = sum(piece.size for piece in store.slices(EMPTY, place(9)))
    assert store.gc(size=size).rows == 0
    assert store.gc(size=size - 1).rows == 1
    assert store.gc(size=0).rows == 2


def test_a_position_that_is_gone(new_stream: NewStream) -> None:
    store = new_stream()()
    Writer(store, "other")
    writer = Writer(store, "a")
    writer.send([9, 2, 30], floor=None)
    writer.send([40], floor=40)
    writer.send([50], floor=50)
    whole, partly = [place(4), place(3, cut=31), place(5)], [EMPTY, place(2), place(3, cut=30), place(4, cut=5)]
    writer.send([41], floor=41)
    store.detach("other")
    store.keep("reader", place(3, cut=31))
    assert store.gc(age=0).rows == 3
    assert store.horizon().seq == 3
    for position in whole:
        store.slices(position, place(99))
    for position in partly:
        with pytest.raises(
            DataLostError, match=r"gc has removed the 3 rows up to seq 3, with rowtimes up to .*earliest"
        ):
            store.slices(position, place(99))
    with pytest.raises(DataLostError, match="the log at seq 2"):
        store.at(2)
    assert store.at(0).seq == 0


TRAINS = st.lists(
    st.tuples(st.sampled_from("ab"), st.lists(st.integers(0, 9), max_size=4), st.integers(0, 4)),
    min_size=1,
    max_size=12,
)


@given(
    trains=TRAINS, collect_at=st.integers(0, 12), limit=st.sampled_from([None, 1, 3]), hold=st.sampled_from([None, 3])
)
def test_after_a_gc_the_rest_is_read_as_before(
    trains: list[tuple[str, list[int], int]], collect_at: int, limit: int | None, hold: int | None
) -> None:
    """Law: a new reader gets each row that is left once, sorted, and none below a bound that it was told before."""
    store = MemoryStore("memory://model", SCHEMA, StreamSettings())
    writers = {name: Writer(store, name) for name in "ab"}
    floors = dict.fromkeys("ab", 0)
    for number, (name, times, step) in enumerate(trains):
        if number == collect_at:
            store.gc(age=0)
        floor = floors[name]
        floors[name] += step
        writers[name].send(*[[floor + t for t in times]] if times else [], floor=floor)
    for writer in writers.values():
        writer.send(floor=1000)
    how = Release("rowtime", None if hold is None else hold * SECOND, None, limit)
    rest = left(store)
    steps = [(seconds(train.rows), train.bound) for train in RowReader(store, how)]
    out = [t for times, _ in steps for t in times]
    assert sorted(out) == sorted(rest)
    bound = None
    for times, told in steps:
        assert bound is None or all((at(t) or 0) >= bound for t in times)
        bound = told.floor if told else bound
    assert out == sorted(out)


def test_a_reader_starts_at_what_is_left(new_stream: NewStream) -> None:
    """A time before it is refused: rows from then on are gone, and nobody would notice."""
    open_stream = new_stream()
    writer = Writer(open_stream(), "a")
    for second in range(1, 6):
        writer.send([second], floor=second)
    reader = RowReader(open_stream(), SORTED)
    assert seconds(reader.read().rows) == [1, 2, 3, 4, 5]  # type: ignore[union-attr]
    stale = RowReader(open_stream(), SORTED)
    store = open_stream()
    store.keep("x", place(4))
    assert store.gc(age=0).rows == 3

    assert sorted_rows(open_stream()) == [4, 5]
    with pytest.raises(DataLostError):
        stale.read()
    with pytest.raises(DataLostError, match=r"the rows from .* on"):
        Release("rowtime", since=at(3)).earliest(store)
    assert Release("rowtime", since=at(4)).earliest(store) == Position(4, at(3 + 1e-6), None)
    writer.send([6], floor=6)
    assert seconds(reader.read().rows) == [6]  # type: ignore[union-attr]


@pytest.mark.parametrize("how", [ARRIVAL, SORTED, Release("arrival", hold=0), Release("rowtime", max_rows=1)])
def test_a_gc_of_everything(new_stream: NewStream, how: Release) -> None:
    open_stream = new_stream()
    store = open_stream()
    writer = Writer(store, "a")
    writer.send([1, 2], floor=2)
    assert store.gc(age=0).rows == 2
    assert left(store) == []
    positions = [how.earliest(store), how.latest(store)]
    writer.send([3], floor=3)
    for position in positions:
        to = how.step(store, position)
        assert [t for p in how.slices(store, position, to) for t in seconds(how.rows(store, p, position, to))] == [3]
    assert store.gc(age=0).rows == 1
    assert open_stream().head() == store.head() == (3, at(3), at(3), 3)


def test_automatically_by_age(new_stream: NewStream) -> None:
    store = new_stream(retainAge=800)()
    store.now = lambda: 0
    writer = Writer(store, "a")
    writer.send([1], floor=1)
    store.now = lambda: 700
    writer.send([2], floor=2)
    assert left(store) == [1, 2]
    store.now = lambda: 900
    writer.send([3], floor=3)
    assert left(store) == [2, 3]


def test_automatically_by_size(new_stream: NewStream) -> None:
    """The local store looks when a segment is begun, each an eighth of the size."""
    store = new_stream(retainBytes=100_000)()
    writer = Writer(store, "a")
    most = 0
    for number in range(1, 200):
        writer.send([number] * 100, floor=number)
        most = max(most, sum(piece.size for piece in store.slices(ARRIVAL.earliest(store), place(9999))))
    assert 80_000 < most < 100_000 * 9 / 8 + 3000
    assert store.head().rows == 19_900


def test_a_stream_in_memory_frees_what_it_removes() -> None:
    store = MemoryStore("memory://freed", SCHEMA, StreamSettings())
    writer = Writer(store, "a")
    writer.send([1], floor=1)
    writer.send([2], floor=2)
    removed, kept = (weakref.ref(store.read(piece)) for piece in store.slices(EMPTY, WHOLE))
    assert store.gc(size=16).rows == 1, "a row has two numbers"
    assert removed() is None
    assert kept() is not None


def test_rows_that_go_while_a_reader_of_memory_looks_for_them_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader never gets a part of what was asked for: another thread may remove rows between any two steps."""
    store, kept = MemoryStore("memory://", SCHEMA, StreamSettings()), MemoryStore._kept
    writer = Writer(store, "a")
    writer.send([1], floor=1)
    writer.send([2], floor=2)

    def removed_before(self: MemoryStore) -> object:
        monkeypatch.setattr(MemoryStore, "_kept", kept)
        store.gc(size=0)
        return kept(self)

    monkeypatch.setattr(MemoryStore, "_kept", removed_before)
    with pytest.raises(DataLostError):
        store.slices(EMPTY, WHOLE)
