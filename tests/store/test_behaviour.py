"""What every store does besides the laws: attaching, handing over, waiting, describing itself."""

import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from spark_rowtime.bounds.clock import Status
from spark_rowtime.errors import InvalidOptionError, ProducerFencedError
from spark_rowtime.store import rejection_rules
from spark_rowtime.store.commits import Commit
from spark_rowtime.testing.clock import TestClock
from tests.store.streams import END, NewStream, Writer, at, batch, infos, place, read, seconds


def test_the_worked_example(new_stream: NewStream) -> None:
    """P1 and P2 with boundsBeforeRows=False; times are minutes after 10:00, shifted by 60."""
    store = new_stream(boundsBeforeRows=False)()
    p1 = Writer(store, "P1")
    assert p1.send(floor=60).floor is None
    assert p1.send([60], floor=60).floor == at(60)
    p2 = Writer(store, "P2")
    assert p2.send(floor=65).floor == at(60)
    assert p2.send([65], floor=65).floor == at(60)
    assert p2.send([59], floor=65).rejected[0].rows == batch(59)
    p1.leave()
    assert store.head().floor == at(65)
    p2.leave()
    assert store.head().floor == at(65)
    p3 = Writer(store, "P3")
    assert p3.send([64], floor=64).rejected[0].bound == at(65)


def test_a_holder_that_attaches_again_keeps_its_epoch(new_stream: NewStream) -> None:
    store = new_stream()()
    first = store.attach("a", "me", "{}")
    seq = store.head().seq
    assert store.attach("a", "me", "{}") == first
    assert store.head().seq == seq


def test_a_takeover_carries_the_state_on(new_stream: NewStream) -> None:
    open_stream = new_stream()
    old = Writer(open_stream(), "a", session="old")
    old.send([5], floor=5, checkpoint="page 7", disorder="[5]")
    old.send([6], floor=6, disorder="[6]")

    info = open_stream().attach("a", "new", "{}")
    assert (info.epoch, info.number, info.floor) == (2, 2, at(6))
    assert (info.checkpoint, info.disorder) == ("page 7", "[6]")
    assert (info.accepted, info.status) == (2, Status.ATTACHED)


def test_a_producer_that_left_joins_again_at_the_streams_bound(new_stream: NewStream) -> None:
    store = new_stream()()
    first, other = Writer(store, "a", session="me"), Writer(store, "b")
    first.send(floor=5)
    other.send(floor=50)
    first.leave()
    first.leave()
    assert store.head().floor == at(50)

    again = Writer(store, "a", session="me")
    assert again.epoch == first.epoch + 1
    assert [(p.name, p.status, p.floor) for p in infos(store)] == [
        ("a", Status.ATTACHED, at(50)),
        ("b", Status.ATTACHED, at(50)),
    ]


def test_a_detached_producer_no_longer_holds_the_stream_back(new_stream: NewStream) -> None:
    store = new_stream()()
    Writer(store, "a").send([3], floor=1)
    Writer(store, "b").send(floor=9)
    store.detach("a")
    assert store.head().floor == at(9)
    assert infos(store)[0].status is Status.DETACHED
    store.detach("b")
    assert store.head().floor == at(9)


def test_another_declaration_is_refused(new_stream: NewStream) -> None:
    store = new_stream()()
    Writer(store, "a", declaration='{"kSort": 3}')
    before = infos(store), store.head()
    with pytest.raises(InvalidOptionError, match="declared as"):
        store.attach("a", "other", '{"kSort": 4}')
    assert (infos(store), store.head()) == before


def test_a_producer_that_never_attached_is_named(new_stream: NewStream) -> None:
    store = new_stream()()
    for call in (
        lambda: store.commit(Commit("ghost", 1, 1)),
        lambda: store.leave("ghost", 1),
        lambda: store.detach("ghost"),
    ):
        with pytest.raises(InvalidOptionError, match="ghost"):
            call()
    assert store.head().seq == 0


def test_an_empty_stream(new_stream: NewStream) -> None:
    store = new_stream()()
    assert store.head() == store.at(0) == (0, None, None, 0)
    assert infos(store) == []
    assert store.bounds().num_rows == store.rejected().num_rows == 0
    assert store.snapshot().logged_clock.floor is None
    assert read(store) == []


def test_a_commit_that_moves_nothing_adds_no_event(new_stream: NewStream) -> None:
    store = new_stream()()
    writer = Writer(store, "a")
    writer.send(floor=5)
    before = store.head()
    assert writer.send(floor=5, checkpoint="here").seq == before.seq
    assert store.head() == before
    assert infos(store)[0].checkpoint == "here"


def test_the_trains_of_one_commit_end_with_the_strongest_true_bound(new_stream: NewStream) -> None:
    store = new_stream()()
    Writer(store, "a").send([1, 2], [2, 5], [7], floor=6)
    table = store.bounds()
    assert table.column("event").to_pylist() == ["joined", "sent", "sent", "sent"]
    assert table.column("rows").to_pylist() == [0, 2, 2, 1]
    assert table.column("producerBound").cast("int64").to_pylist() == [None, at(2), at(6), at(6)]
    assert [store.at(seq).rows for seq in range(5)] == [0, 0, 2, 4, 5]


def test_max_lag(new_stream: NewStream) -> None:
    store = new_stream(maxLag=10_000_000)()
    slow = Writer(store, "slow")
    assert Writer(store, "fast").send(floor=100).floor == at(90)
    assert slow.send([80, 95], floor=95).rejected[0].rows == batch(80)
    assert [(p.name, p.accepted, p.rejected) for p in infos(store)] == [("fast", 0, 0), ("slow", 1, 1)]


def test_wait(new_stream: NewStream) -> None:
    open_stream = new_stream()
    store, other = open_stream(), open_stream()
    assert store.wait(0, 0) is False
    thread = threading.Thread(target=lambda: Writer(other, "a"))
    thread.start()
    assert store.wait(0, 30) is True
    thread.join()
    assert store.wait(0, None) is True
    assert store.wait(1, 0) is False


def test_the_clock_is_a_copy(new_stream: NewStream) -> None:
    store = new_stream()()
    Writer(store, "a").send(floor=5)
    clock = store.snapshot().logged_clock
    clock.producers.clear()
    clock.floor = None
    assert store.snapshot().logged_clock.holder() == "a"
    assert store.snapshot().logged_clock.floor == at(5)


def test_two_handles_see_one_stream(new_stream: NewStream) -> None:
    open_stream = new_stream()
    one, two = open_stream(), open_stream()
    a, b = Writer(one, "a"), Writer(two, "b")
    for second in range(1, 10):
        a.send([second], floor=second)
        assert b.send([second], floor=second).floor == at(second)
    assert one.snapshot().logged_clock == two.snapshot().logged_clock
    assert one.stream == two.stream
    assert len(read(one)) == 18


def test_staged_rows_and_slices_pickle(new_stream: NewStream) -> None:
    open_stream = new_stream()
    writer = Writer(open_stream(), "a")
    commit = pickle.loads(pickle.dumps(writer.commit([1, 2], floor=2)))
    other = open_stream()
    other.commit(commit)
    piece = pickle.loads(pickle.dumps(other.slices(place(0), place(END))[0]))
    assert (piece.seq, piece.producer, piece.rows, piece.least, piece.largest) == (2, "a", 2, at(1), at(2))
    assert piece.size > 0
    assert open_stream().read(piece) == batch(1, 2)


def test_threads_share_a_handle(new_stream: NewStream) -> None:
    store = new_stream()()

    def write(name: str) -> None:
        writer = Writer(store, name)
        for second in range(1, 40):
            writer.send([second], floor=second)
            store.head()

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(write, "abcd"))
    assert sum(p.accepted + p.rejected for p in infos(store)) == 4 * 39
    assert len(read(store)) == store.head().rows


def test_fencing_is_judged_before_the_number(new_stream: NewStream) -> None:
    open_stream = new_stream()
    old = Writer(open_stream(), "a", session="old")
    commit = old.commit([1], floor=1)
    old.store.commit(commit)
    Writer(open_stream(), "a", session="new")
    with pytest.raises(ProducerFencedError):
        old.store.commit(commit)


def test_a_rejection_of_many_bytes(new_stream: NewStream, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite takes a billion bytes in one value."""
    monkeypatch.setattr(rejection_rules, "LARGEST_REJECTION_BYTES", 100)
    store = new_stream()()
    writer = Writer(store, "a")
    writer.send([100], floor=100)
    writer.send(floor=100, late=range(1, 60))
    assert seconds(store.rejected()) == list(range(1, 60))
    assert infos(store)[0].rejected == 59


def test_a_stream_knows_when_its_bound_last_moved(new_stream: NewStream) -> None:
    store = new_stream()()
    clock = TestClock()
    clock.drive(store)
    assert store.snapshot(full=True).moved is None
    a, b = Writer(store, "a"), Writer(store, "b")
    a.send(floor=5)
    assert store.snapshot(full=True).moved is None
    b.send([9], floor=9)
    clock.advance(3_000_000)
    assert 3_000_000 <= (store.snapshot(full=True).moved or 0) < 63_000_000
    b.send([10], floor=10)
    assert 3_000_000 <= (store.snapshot(full=True).moved or 0) < 63_000_000
    a.send(floor=6)
    assert (store.snapshot(full=True).moved or 0) < 3_000_000
