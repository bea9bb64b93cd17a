"""Cuts in each store: they stay with the log, through removals, copies, restarts and takeovers."""

import pickle
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from spark_rowtime.bounds.topic_cut import LoggedCut, TopicCut
from spark_rowtime.errors import DataLostError, KafkaTopicError, StoreCorruptError
from spark_rowtime.kafka.cuts import CutFloors
from spark_rowtime.store import check_store, copy_store, create_store, cut_folding, open_store
from spark_rowtime.store.base import Store
from spark_rowtime.store.local.seal import seal
from spark_rowtime.store.position import Position
from spark_rowtime.store.settings import StreamSettings
from spark_rowtime.store.snapshot import READS_STREAM, READS_TOPIC, READS_UNKNOWN
from spark_rowtime.store.until import Limit
from tests.sparksession import wait_for
from tests.store.streams import SCHEMA, NewStream, Writer, at

ANY_ORDER = '{"rowsImplyBounds": false}'


def cut(*ends: int, whole: bool = True, **ids: str) -> TopicCut:
    return TopicCut({"orders": dict(enumerate(ends))}, ids, whole)


def floors(store: Store, *offsets: int, seq: int | None = None) -> list[int | None]:
    seq = store.head().seq if seq is None else seq
    return [CutFloors(store).floorAt(seq, {"orders": {0: end}}) for end in offsets]


def test_a_retry_stores_no_cut_twice(new_stream: NewStream) -> None:
    store = new_stream()()
    writer = Writer(store, "a")
    writer.promise((10, cut(5)), (11, cut(8)))
    commit = writer.commit(floor=12)
    store.commit(commit)
    store.commit(commit)
    assert [(c.seq, c.floor, c.cut) for c in store.cuts()] == [(2, None, cut(5)), (3, at(10), cut(8))]
    assert [c.seq for c in store.cuts(2)] == [3]
    assert [c.seq for c in store.cuts(0, 2)] == [2]


def test_the_cut_behind_which_a_producer_rests_is_one_of_the_log(new_stream: NewStream) -> None:
    """It holds the floor in force. A commit that is idle already adds none."""
    store = new_stream()()
    quiet, busy = Writer(store, "quiet"), Writer(store, "busy")
    quiet.promise((10, cut(5)))
    busy.promise((30, cut(0)))
    quiet.send(floor=10, idle=True, behind=cut(8))
    quiet.send(floor=10, idle=True, behind=cut(9))
    assert [(c.floor, c.cut) for c in store.cuts() if c.producer == "quiet"] == [(None, cut(5)), (at(10), cut(8))]
    assert floors(store, 4, 5, 7, 8) == [None, at(10), at(10), at(30)]


def test_a_stream_where_a_producer_rests_behind_a_cut_is_whole(new_place: Callable[[], str]) -> None:
    """For the check."""
    path = new_place()
    create_store(path, SCHEMA, StreamSettings())
    with closing(open_store(path)) as store:
        Writer(store, "quiet").send(floor=10, idle=True, behind=cut(8))
    assert not check_store(path).damage


def test_a_removal_keeps_the_cuts(new_stream: NewStream) -> None:
    """What the bound is at an offset does not depend on what retention has removed."""
    store = new_stream()()
    writer = Writer(store, "a", declaration=ANY_ORDER)
    for number in range(1, 6):
        writer.send([10 * number], floor=None if number == 1 else at_floor(number))
        writer.promise((10 * number + 5, cut(number)))
    writer.send([100], floor=55)
    head = store.head()
    right = floors(store, *range(7))
    assert store.gc(age=0).rows > 0
    assert store.horizon().seq > 4
    assert floors(store, *range(7)) == right
    assert right == [None, *(at(10 * number + 5) for number in range(1, 6)), at(55)]
    assert store.head() == head
    with pytest.raises(DataLostError):
        floors(store, 1, seq=2)


def at_floor(number: int) -> int:
    return 10 * number - 5


def test_a_new_holder_below_what_the_old_one_promised(new_stream: NewStream) -> None:
    """Rows of the new holder lie behind the last cut of the old one; both are yet to be read."""
    store = new_stream()()
    other, old = Writer(store, "other"), Writer(store, "a")
    other.send(floor=9)
    old.promise((10, cut(1)), (20, cut(2)), (25, cut(3)))
    store.detach("a")
    new = Writer(store, "a", session="new")
    new.promise((12, cut(4)), (40, cut(5)))
    other.send(floor=50)
    assert floors(store, 0, 1, 2, 3, 4, 5) == [None, at(9), at(9), at(9), at(12), at(40)]


def test_parts_of_cuts_and_the_last_whole_one(new_stream: NewStream) -> None:
    store = new_stream()()
    writer = Writer(store, "a")
    writer.promise((1, cut(1, 1)))
    writer.promise((2, cut(2, 2)), (3, cut(3, whole=False)), (4, None), (5, cut(4, whole=False)))
    assert [c.floor for c in store.last_cuts("a")] == [at(1), at(2), at(4), at(4)]
    assert store.last_cuts("b") == []


def test_a_producer_leaves_behind_its_last_row(new_stream: NewStream) -> None:
    store = new_stream()()
    stays, leaves = Writer(store, "stays"), Writer(store, "leaves")
    stays.send(floor=50)
    leaves.promise((10, cut(3)))
    leaves.leave(cut(6))
    assert floors(store, 0, 3, 5, 6) == [None, at(10), at(10), at(50)]


def test_two_ids_of_one_topic_are_an_error(new_stream: NewStream) -> None:
    store = new_stream()()
    Writer(store, "a").promise((10, cut(3, orders="one")))
    assert floors(store, 3) == [at(10)]
    Writer(store, "b").promise((11, cut(1, orders="two")))
    with pytest.raises(KafkaTopicError, match="deleted and created again"):
        floors(store, 3)


def test_many_cuts_are_read_in_portions(new_stream: NewStream, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cut_folding, "PORTION_CUTS", 2)
    store = new_stream()()
    Writer(store, "a").promise(*((number, cut(number)) for number in range(1, 6)))
    assert [c.floor for c in store.cuts()] == [None, at(1), at(2), at(3), at(4)]
    assert [c.floor for c in store.cuts(3, 5)] == [at(2), at(3)]


@pytest.mark.parametrize("to", ["local", "other"])
def test_a_copy_has_the_cuts(new_place: Callable[[], str], tmp_path: Path, to: str) -> None:
    path, copy = new_place(), str(tmp_path / "copy") if to == "local" else new_place()
    create_store(path, SCHEMA, StreamSettings())
    with open_store(path) as store:
        writer = Writer(store, "a", declaration=ANY_ORDER)
        writer.send([1], floor=1)
        writer.promise((2, cut(1)))
        writer.send([9], floor=2)
        writer.promise((10, cut(3, 4, orders="one")), (11, None), (12, cut(5)))
        store.gc(age=0)
        copy_store(path, copy)
        with open_store(copy) as copied:
            assert list(copied.cuts()) == list(store.cuts())
            assert copied.last_cuts("a") == store.last_cuts("a")
            assert floors(copied, 0, 1, 3, 5) == floors(store, 0, 1, 3, 5)
    assert not check_store(copy).damage


@pytest.mark.parametrize("change", ["SET producer = 'b'", "SET seq = 1", "SET cut = '{}'"])
def test_a_check_finds_cuts_that_are_not_those_of_their_events(
    new_place: Callable[[], str], request: pytest.FixtureRequest, change: str
) -> None:
    path = new_place()
    create_store(path, SCHEMA, StreamSettings())
    with open_store(path) as store:
        Writer(store, "a").promise((2, cut(1)))
        change_cuts(path, store, request, change)
    assert check_store(path).damage


def change_cuts(path: str, store: Store, request: pytest.FixtureRequest, change: str) -> None:
    if path.startswith("postgresql:"):
        server = request.getfixturevalue("postgres")
        (number,) = server.execute(f"SELECT id FROM rowtime.streams WHERE uuid = '{store.stream}'")[0]
        server.execute(f"UPDATE rowtime.topic_cuts {change} WHERE stream = {number}")
        return
    with closing(sqlite3.connect(f"{path}/catalog.db", isolation_level=None)) as db:
        db.execute(f"UPDATE topic_cuts {change}")
        seq, producer, hold, text, number, _ = db.execute("SELECT * FROM topic_cuts").fetchone()
        db.execute("UPDATE topic_cuts SET seal = ?", (seal((seq, producer, hold, text, number)),))


def test_each_part_of_the_log_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where an earlier position is asked for in between, and where an error has ended the reading."""
    create_store("memory://cuts-read-once", SCHEMA, StreamSettings())
    store, asked = open_store("memory://cuts-read-once"), list[tuple[int, int | None]]()
    Writer(store, "a").promise((10, cut(5)), (11, cut(8)))
    cuts, floors_then = store.cuts, CutFloors(store)

    def read(after: int = 0, upto: int | None = None) -> Iterator[Any]:
        asked.append((after, upto))
        yield from cuts(after, upto)

    monkeypatch.setattr(store, "cuts", read)
    for seq in (2, 3, 1, 2, 3, 3):
        floors_then.floorAt(seq, {"orders": {0: 5}})
    assert [after for after, _ in asked] == [0, 2]
    Writer(store, "b")  # an event without a cut
    for _ in range(2):
        floors_then.floorAt(4, {})
    assert asked.pop()[0] == 3
    assert len(asked) == 2
    Writer(store, "a").promise((12, cut(9)), (13, cut(9, orders="one")))
    Writer(store, "b").promise((14, cut(9, orders="two")))
    for _ in range(2):
        with pytest.raises(KafkaTopicError):
            floors_then.floorAt(store.head().seq, {})
    assert asked[2][0] == 4
    assert asked[3][0] >= 5, "the cuts before the error are there"


def test_a_producers_cut_that_is_gone_is_noticed(local_path: str) -> None:
    with open_store(local_path) as store:
        Writer(store, "a").promise((10, cut(5)), (11, cut(8, whole=False)), (12, cut(9, whole=False)))
        assert len(store.last_cuts("a")) == 3
        with closing(sqlite3.connect(f"{local_path}/catalog.db", isolation_level=None)) as db:
            db.execute("DELETE FROM topic_cuts WHERE seq = 3")
        with pytest.raises(StoreCorruptError):
            store.last_cuts("a")
        with pytest.raises(StoreCorruptError):
            list(store.cuts())


def test_what_registered_queries_have_passed_is_folded(new_stream: NewStream, monkeypatch: pytest.MonkeyPatch) -> None:
    """For them nothing changes; a query that begins below gets its first bound at the last of these cuts."""
    monkeypatch.setattr(cut_folding, "PORTION_CUTS", 5)
    store = new_stream()()
    one, other = Writer(store, "a"), Writer(store, "b")
    for number in range(1, 9):
        one.promise((number, TopicCut({"orders": {0: number}})))
        other.promise((number, TopicCut({"orders": {1: number}}, whole=number % 4 == 0)))
    ends = [{"orders": {0: zero, 1: one}} for zero in range(9) for one in range(9)]
    seq, before = store.head().seq, [CutFloors(store).floorAt(store.head().seq, offsets) for offsets in ends]
    store.gc()
    assert len(list(store.cuts())) == 16, "no query is registered"
    reached = CutFloors(store).passedAt(seq, {"orders": {0: 4, 1: 3}})
    first = next(c for c in store.cuts() if c.producer == "b" and c.cut == TopicCut({"orders": {1: 4}}))
    assert reached == first.seq - 1
    store.keep("query", Position(reached, None, None), READS_TOPIC)
    store.keep("other", Position(reached + 4, None, None), READS_TOPIC)
    store.gc()
    now = [CutFloors(store).floorAt(seq, offsets) for offsets in ends]
    assert [(c.producer, c.floor) for c in store.cuts()][:2] == [("b", None), ("a", None)]
    assert len(list(store.cuts())) == 2 + 4 + 5
    for offsets, was, is_now in zip(ends, before, now, strict=True):
        passed = offsets["orders"][0] >= 4 and offsets["orders"][1] >= 3
        assert is_now == was if passed else (is_now or 0) <= (was or 0)
    assert now[0] is None
    store.gc()
    assert [CutFloors(store).floorAt(seq, offsets) for offsets in ends] == now
    assert [c.cut.offsets["orders"] for c in store.last_cuts("b")] == [{1: 8}]
    one.promise((20, TopicCut({"orders": {0: 20}})))
    other.promise((20, TopicCut({"orders": {1: 20}}, whole=False)))
    assert [c.cut.offsets["orders"] for c in store.last_cuts("b")] == [{1: 8}, {1: 20}]
    for name in ("query", "other"):
        store.keep(name, Position(store.head().seq, None, None), READS_TOPIC)
    store.gc()
    assert [(c.producer, c.cut.offsets) for c in store.cuts()] == [
        ("a", {"orders": {0: 20}}),
        ("b", {"orders": {1: 20}}),
    ]
    assert [c.cut.offsets["orders"] for c in store.last_cuts("b")] == [{1: 20}]
    other.promise((30, TopicCut({"orders": {1: 30}}, whole=False)))
    assert len(store.last_cuts("b")) == 2
    assert floors(store, 20) == [None]


def test_cuts_of_more_producers_than_a_portion_has_are_folded(
    new_stream: NewStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also again, where each of them has one that is folded already."""
    monkeypatch.setattr(cut_folding, "PORTION_CUTS", 2)
    store = new_stream()()
    writers = [Writer(store, f"p{number}") for number in range(5)]
    for end in range(1, 7):
        for number, writer in enumerate(writers):
            writer.promise((end, TopicCut({"orders": {number: end}})))
        if end % 3 == 0:
            store.keep("query", Position(store.head().seq, None, None), READS_TOPIC)
            store.gc()
            assert len(list(store.cuts())) == len(writers)


def test_only_queries_beside_topics_count(new_stream: NewStream) -> None:
    """A reader of the stream neither keeps cuts nor lets them go; one of an earlier version may be a query."""
    store = new_stream()()
    Writer(store, "a").promise(*((number, cut(number)) for number in range(1, 9)))
    store.keep("reader", Position(1 << 40, None, None))
    store.keep("old", Position(6, None, None), READS_UNKNOWN)
    store.gc()
    assert len(list(store.cuts())) == 8
    store.keep("query", Position(9, None, None), READS_TOPIC)
    store.keep("reader", Position(2, None, None))
    store.gc()
    assert [c.seq for c in store.cuts()] == [6, 7, 8, 9]
    store.keep("old", Position(8, None, None), READS_TOPIC)
    store.gc()
    assert [c.seq for c in store.cuts()] == [8, 9]
    found = {one.name: one.reads for one in store.snapshot().readers}
    assert found == {"reader": READS_STREAM, "query": READS_TOPIC, "old": READS_TOPIC}


@pytest.mark.long
def test_as_of_an_event_before_a_fold_the_bound_is_weaker_too(new_stream: NewStream) -> None:
    """A query that has asked for an event, and reads the cuts up to there when they are folded, misses none of them."""
    store = new_stream()()
    one, other = Writer(store, "a"), Writer(store, "b")
    for number in range(1, 9):
        one.promise((number, TopicCut({"orders": {0: number}})))
        other.promise((number, TopicCut({"orders": {1: number}})))
    ends = [{"orders": {0: zero, 1: one}} for zero in range(9) for one in range(9)]
    seqs = range(store.head().seq + 1)
    before = [[CutFloors(store).floorAt(seq, offsets) or 0 for offsets in ends] for seq in seqs]
    begun = CutFloors(store)
    begun.floorAt(6, ends[0])
    store.keep("query", Position(13, None, None), READS_TOPIC)
    store.gc()
    for seq, were in zip(seqs, before, strict=True):
        now = [CutFloors(store).floorAt(seq, offsets) or 0 for offsets in ends]
        assert all(is_now <= was for is_now, was in zip(now, were, strict=True)), seq
        assert now[-1] == were[-1], "all cuts are reached"
        assert CutFloors(store).passedAt(seq, ends[0]) <= seq
    with pytest.raises(DataLostError, match="after event 6 were folded"):
        begun.floorAt(8, ends[0])


def test_a_query_that_falls_behind_cuts_that_it_had_passed_is_told(new_stream: NewStream) -> None:
    """As with an older checkpoint. A query that begins has passed nothing."""
    store = new_stream()()
    Writer(store, "a").promise(*((number, cut(number)) for number in range(1, 9)))
    CutFloors(store).requireUnfolded(9, {"orders": {0: 2}}, 6)
    store.keep("query", Position(6, None, None), READS_TOPIC)
    store.gc()
    for seq in (3, 9):
        CutFloors(store).requireUnfolded(seq, {"orders": {0: 5}}, 6)
        CutFloors(store).requireUnfolded(seq, {"orders": {0: 2}}, 5)
        with pytest.raises(DataLostError, match="older checkpoint") as caught:
            CutFloors(store).requireUnfolded(seq, {"orders": {0: 4}}, 6)
        assert pickle.loads(pickle.dumps(caught.value)).values["producer"] == "a"


def test_commits_of_bounds_fold_cuts(new_stream: NewStream, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody has to call gc, whatever process commits: the cost is what the registered queries lag behind."""
    monkeypatch.setattr(cut_folding, "FOLD_EVENTS", 10)
    store = new_stream()()
    store.gc()  # a store without retention is skipped
    writer = Writer(store, "a")
    writer.promise(*((number, cut(number)) for number in range(30)))
    store.keep("query", Position(store.head().seq, None, None), READS_TOPIC)
    writer.promise((30, cut(30)))
    assert len(list(store.cuts())) == 31, "they are not an hour old"
    monkeypatch.setattr(cut_folding, "FOLD_AGE_MICROS", -1)
    for number in range(31, 100):
        writer.promise((number, cut(number)))
        store.keep("query", Position(max(store.head().seq - 3, 0), None, None), READS_TOPIC)
        few = 60 if number < 45 else 20
        wait_for(lambda few=few: len(list(store.cuts())) <= few, "the cuts to be folded, maybe in the background")
    assert floors(store, 0, 98, 99) == [None, at(98), at(99)]


def test_a_folded_stream_is_whole(new_place: Callable[[], str], tmp_path: Path) -> None:
    """For the check, and for copies."""
    path, copy = new_place(), str(tmp_path / "copy")
    create_store(path, SCHEMA, StreamSettings())
    with open_store(path) as store:
        Writer(store, "a").promise((10, cut(5)), (11, cut(8)), (12, cut(9)))
        store.keep("query", Position(3, None, None), READS_TOPIC)
        store.gc()
        assert [c.seq for c in store.cuts()] == [3, 4]
    assert not check_store(path).damage
    copy_store(path, copy)
    with open_store(copy) as copied, open_store(path) as store:
        assert list(copied.cuts()) == list(store.cuts())
        Writer(copied, "a", session="x").promise((13, cut(10)))
        assert len(list(copied.cuts())) == 3
    assert not check_store(copy).damage
    with pytest.raises(DataLostError, match="up to event 3 were folded"):
        copy_store(path, str(tmp_path / "earlier"), until=Limit(seq=2))
    copy_store(path, str(tmp_path / "later"), until=Limit(seq=3))


def test_events_of_bounds_that_were_folded_go_too(new_stream: NewStream, monkeypatch: pytest.MonkeyPatch) -> None:
    """A day later, up to the first rows and to what a registered reader needs. The clock goes on as it was."""
    monkeypatch.setattr(cut_folding, "FOLD_EVENTS", 10)
    monkeypatch.setattr(cut_folding, "FOLD_AGE_MICROS", -1)
    store = new_stream()()
    store.gc()  # a store without retention is skipped
    writer = Writer(store, "a", declaration=ANY_ORDER)
    for number in range(1, 40):
        writer.promise((number, cut(number)))
    store.keep("query", Position(30, None, None), READS_TOPIC)
    writer.promise((40, cut(40)))
    assert store.horizon().seq == 0, "they are young"
    monkeypatch.setattr(cut_folding, "KEPT_MICROS", -1)
    for number in range(41, 50):
        writer.promise((number, cut(number)))
    wait_for(lambda: store.horizon().seq == 30, "the events of bounds to be removed, maybe in the background")
    assert store.horizon() == (30, at(29), None, 0)
    store.keep("reads rows", Position(35, None, None))
    assert floors(store, 0, 29, 30, 48, 49) == [None, at(29), at(30), at(48), at(49)]
    assert [c.seq for c in store.cuts()][:2] == [30, 31]
    writer.send([60], floor=49)
    store.keep("query", Position(store.head().seq, None, None), READS_TOPIC)
    writer.promise(*((number, cut(number)) for number in range(60, 90)))
    wait_for(lambda: store.horizon().seq == 35, "the events before what a reader has read")
    store.forget("reads rows")
    writer.promise(*((number, cut(number)) for number in range(90, 100)))
    wait_for(lambda: store.horizon().seq == 50, "the events before the first row")
    store.keep("query", Position(store.head().seq, None, None), READS_TOPIC)
    writer.promise(*((number, cut(number)) for number in range(100, 120)))
    assert store.horizon().seq == 50, "rows go by the stream's retention"
    assert store.gc(age=0).rows == 1


def test_where_only_the_first_event_may_go_nothing_does(new_stream: NewStream, monkeypatch: pytest.MonkeyPatch) -> None:
    """A query that was abandoned just after its start keeps all the others. No commit waits for it."""
    monkeypatch.setattr(cut_folding, "FOLD_EVENTS", 10)
    monkeypatch.setattr(cut_folding, "FOLD_AGE_MICROS", -1)
    monkeypatch.setattr(cut_folding, "KEPT_MICROS", -1)
    store = new_stream()()
    store.gc()
    writer = Writer(store, "a", declaration=ANY_ORDER)
    writer.promise((1, cut(1)))
    store.keep("query", Position(1, None, None), READS_TOPIC)
    for number in range(2, 30):
        writer.promise((number, cut(number)))
    assert store.head().floor == at(29)
    store.keep("query", Position(20, None, None), READS_TOPIC)
    for number in range(30, 40):
        writer.promise((number, cut(number)))
    wait_for(lambda: store.horizon().seq == 20, "the events that the query has read to be removed")


def test_who_has_read_cuts_in_part_does_not_go_on_with_what_they_became(new_stream: NewStream) -> None:
    """Its bound would fall. A registered query never gets there; a reader that begins reads again."""
    store = new_stream()()
    writer = Writer(store, "a")
    writer.promise((10, cut(1)), (11, cut(2)))
    begun = CutFloors(store)
    assert begun.floorAt(3, {"orders": {0: 2}}) == at(11)
    writer.promise((12, cut(3)), (13, cut(4)))
    store.keep("query", Position(4, None, None), READS_TOPIC)
    store.gc()
    with pytest.raises(DataLostError, match="after event 3 were folded"):
        begun.floorAt(5, {"orders": {0: 2}})
    assert floors(store, 2, 3, 4) == [None, at(12), at(13)]
    begins = CutFloors(store)
    cuts, folded_meanwhile = list(store.cuts()), [LoggedCut(2, "a", None, cut(1)), *store.cuts()]
    answers = iter([folded_meanwhile, cuts])
    store.cuts = lambda *_: iter(next(answers))  # type: ignore[method-assign]
    assert begins.floorAt(5, {"orders": {0: 3}}) == at(12)
