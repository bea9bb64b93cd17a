"""A copy up to an event is the stream as it was there, without what is not known of producers that committed since."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_rowtime.bounds.clock import Status
from spark_rowtime.bounds.key_parts import KeyChanges
from spark_rowtime.bounds.topic_cut import TopicCut
from spark_rowtime.errors import DataLostError, InvalidOptionError
from spark_rowtime.store import check_store, copy_store, open_store
from spark_rowtime.store.base import Store
from spark_rowtime.store.memory import STREAMS, MemoryStore
from spark_rowtime.store.record import ProducerRecord
from spark_rowtime.store.settings import StreamSettings
from spark_rowtime.store.snapshot import FORGET_MICROS, WRITER
from spark_rowtime.store.until import Limit
from tests.store.streams import END_OF_TIME, SCHEMA, SECOND, NewStream, Writer, at, infos, place, read, seconds
from tests.store.test_copy import beside

FAR = 1 << 30
NOW = Limit(time=at(1000))


@pytest.fixture
def copied(tmp_path: Path) -> Callable[..., Any]:
    """Copies a store up to a limit. Returns the copy, which is whole, and who is without a checkpoint there."""

    def copy(store: Store, limit: Limit) -> tuple[Store, list[str]]:
        to = beside(store.path, tmp_path)
        unknown = copy_store(store.path, to, until=limit)
        if not store.path.startswith("memory://"):
            report = check_store(to)
            assert (report.damage, report.remarks) == ([], [])
        return open_store(to), unknown

    return copy


def test_a_bound_of_the_far_future_is_left_out(new_stream: NewStream, copied: Any) -> None:
    store = new_stream()()
    quiet, busy, wrong = (Writer(store, name) for name in ("quiet", "busy", "wrong"))
    quiet.send([1], floor=1, checkpoint="quiet 1", query_status="{}")
    busy.send([2], floor=2, checkpoint="busy 1", query_status="{}")
    wrong.send([3], floor=3)
    before = store.head()
    wrong.send(floor=FAR)
    busy.send([4], floor=4, checkpoint="busy 2", keys=KeyChanges(True, b"4"))

    copy, unknown = copied(store, NOW)
    assert unknown == ["busy", "wrong"]
    assert (copy.head(), read(copy)) == (before, [1, 2, 3])
    assert copy.ancestors[store.stream] == before.seq
    known = {info.name: info for info in infos(copy)}
    assert known["quiet"] == store.producer("quiet")
    assert [(known[name].floor, known[name].accepted, known[name].status) for name in unknown] == [
        (at(2), 1, "attached"),
        (at(3), 1, "attached"),
    ]
    assert [(known[name].number, known[name].checkpoint, known[name].disorder) for name in unknown] == [
        (0, None, "")
    ] * 2
    assert copy.keys("busy") == []
    assert [(one.role, one.name) for one in copy.snapshot().statuses] == [(WRITER, "quiet")]

    quiet = Writer(copy, "quiet")
    quiet.send([5], floor=5)
    again = Writer(copy, "busy")
    assert again.number == 0
    again.send([6], floor=6)
    Writer(copy, "wrong").send([7], floor=7)
    assert (read(copy), copy.head().floor) == ([1, 2, 3, 5, 6, 7], at(5))


def test_a_copy_of_a_copy_has_no_more_of_the_first_than_itself(
    new_stream: NewStream, copied: Any, tmp_path: Path
) -> None:
    """Or a position in the first one, beyond the limit, would be one among the new rows."""
    store = new_stream()()
    writer = Writer(store, "a")
    for number in range(1, 9):
        writer.send([number], floor=number)
    second, _ = copied(store, NOW)
    third = beside(second.path, tmp_path / "third")
    copy_store(second.path, third, until=Limit(seq=4))
    assert dict(open_store(third).ancestors) == {store.stream: 4, second.stream: 4}


def test_a_row_of_the_far_future_is_left_out(new_stream: NewStream, copied: Any) -> None:
    store = new_stream()()
    writer = Writer(store, "a")
    writer.send([1], [FAR], floor=1)
    copy, unknown = copied(store, NOW)
    assert (read(copy), copy.head().largest, unknown) == ([1], at(1), ["a"])


def test_the_end_of_a_stream_is_beyond_a_time_and_that_of_a_producer_is_not(new_stream: NewStream, copied: Any) -> None:
    store = new_stream()()
    ended, last = Writer(store, "ended"), Writer(store, "last")
    ended.complete([1])
    last.send([2], floor=2)
    last.complete([3])
    assert store.head().floor == END_OF_TIME
    copy, unknown = copied(store, NOW)
    assert (read(copy), unknown) == ([1, 2], ["last"])
    assert {info.name: (info.status, info.floor) for info in infos(copy)} == {
        "ended": (Status.COMPLETE, END_OF_TIME),
        "last": (Status.ATTACHED, at(2)),
    }


def test_nothing_is_left_out_of_a_stream_without_anything_beyond(new_stream: NewStream, copied: Any) -> None:
    store = new_stream()()
    writer = Writer(store, "a")
    writer.send([1], floor=1, checkpoint="1", late=[0])
    store.keep("r", place(1, 1))
    copy, unknown = copied(store, NOW)
    assert (unknown, infos(copy), copy.head(), read(copy)) == ([], infos(store), store.head(), [1])
    assert [reader.position for reader in copy.snapshot().readers] == [place(1, 1)]


def test_who_came_later_is_not_there_but_its_rejected_rows_are(new_stream: NewStream, copied: Any) -> None:
    store = new_stream()()
    first = Writer(store, "first")
    first.send([1], floor=1)
    end = store.head().seq
    Writer(store, "later").send([5], floor=5)
    Writer(store, "rejects").send([6], floor=6, late=[0])
    copy, unknown = copied(store, Limit(seq=end))
    assert [(one.name, one.status, one.accepted, one.rejected) for one in infos(copy)] == [
        ("first", "attached", 1, 0),
        ("rejects", "left", 0, 1),
    ]
    assert unknown == ["rejects"]
    assert [seconds(one.rejected.rows) for one in copy.rejections()] == [[0]]
    assert copy.snapshot().rejected == 1


def test_a_producer_that_was_forgotten_since_is_waited_for(new_stream: NewStream, copied: Any) -> None:
    """It was attached at the limit, or expected, so its rows are in time."""
    store, time = new_stream()(), [0]
    store.now = lambda: time[0]
    store.expect(["later"])
    _, left, gone = (Writer(store, name) for name in ("stays", "left", "gone"))
    left.send([1], floor=1)
    left.leave()
    gone.send([2], floor=2)
    end = store.head().seq
    gone.leave()
    Writer(store, "later").leave()
    time[0] += FORGET_MICROS + SECOND
    assert store.gc().forgotten == 3
    copy, unknown = copied(store, Limit(seq=end))
    assert {info.name: info.status for info in infos(copy)} == {
        "gone": Status.ATTACHED,
        "later": Status.EXPECTED,
        "stays": Status.ATTACHED,
    }
    assert sorted(unknown) == ["gone", "later"]
    Writer(copy, "stays", "another").send(floor=20)
    again = Writer(copy, "gone")
    assert not again.send([5], floor=5).rejected
    assert read(copy) == [1, 2, 5]


def test_a_new_commit_is_not_taken_for_one_that_was_left_out(new_stream: NewStream, copied: Any) -> None:
    """Rows that were late in a commit are those of its receipt, and not of the commit that has the number now."""
    store = new_stream()()
    fast, slow = Writer(store, "fast"), Writer(store, "slow")
    fast.send([10], floor=10)
    store.detach("slow")
    end = store.head().seq
    fast.send([11], floor=11)
    slow = Writer(store, "slow", "other")
    assert slow.send([1]).rejected
    copy, _ = copied(store, Limit(seq=end))
    again = Writer(copy, "slow")
    commit = again.commit([12], floor=12)
    receipt = copy.commit(commit)
    assert (receipt.rejected, copy.commit(commit)) == ((), receipt)
    assert copy.rejections_end() == 1


def test_readers_have_read_what_there_was_for_them(new_stream: NewStream, copied: Any) -> None:
    store = new_stream()()
    writer = Writer(store, "a")
    writer.send([1, 3], floor=1)
    end = store.head()
    store.keep("behind", place(1, 1))
    writer.send([4], floor=FAR)
    store.keep("in order", place(store.head().seq, FAR))
    store.keep("in arrival", place(store.head().seq))
    copy, _ = copied(store, Limit(seq=end.seq))
    found = {reader.name: reader.position for reader in copy.snapshot().readers}
    assert found["behind"] == place(1, 1)
    assert found["in arrival"] == place(end.seq)
    assert (found["in order"].seq, found["in order"].cut) == (end.seq, (at(1) or 0) + 1)


def test_cuts_are_those_up_to_there(new_stream: NewStream, copied: Any) -> None:
    store = new_stream()()
    writer = Writer(store, "a", declaration='{"rowsImplyBounds": false}')
    writer.promise((1, TopicCut({"orders": {0: 1}})))
    end = store.head().seq
    writer.promise((FAR, TopicCut({"orders": {0: 2}})))
    copy, _ = copied(store, NOW)
    assert [cut.seq for cut in copy.cuts()] == [cut.seq for cut in copy.last_cuts("a")] == [end]


def test_an_event_that_is_not_there_is_refused(new_stream: NewStream, copied: Any) -> None:
    store = new_stream()()
    writer = Writer(store, "a")
    writer.send([1], floor=1)
    with pytest.raises(InvalidOptionError, match="The log ends at event 2: there is no event 9"):
        copied(store, Limit(seq=9))
    for number in range(2, 5):
        writer.send([number], floor=number - 0.5)
    store.gc(age=0)
    assert store.horizon().seq == 4
    for limit in (Limit(seq=3), Limit(time=at(1))):
        with pytest.raises(DataLostError, match="The log begins after event 4"):
            copied(store, limit)
    copy, _ = copied(store, Limit(seq=4))
    assert copy.head().seq == 4


def test_of_a_log_whose_beginning_is_removed(new_stream: NewStream, copied: Any) -> None:
    """Who has not been heard of since is waited for, if it sent later, and not if it joined later."""
    store = new_stream()()
    silent, busy = Writer(store, "silent"), Writer(store, "busy")
    silent.send([1], floor=3)
    busy.send([2], floor=2)
    busy.send([3], floor=2.5)
    store.gc(age=0)
    end = store.head().seq
    assert store.horizon().seq == 4
    silent.send([8], floor=8)
    Writer(store, "new").send([9], floor=9)
    copy, unknown = copied(store, Limit(seq=end))
    assert unknown == ["new", "silent"]
    assert {one.name: (one.status, one.floor, one.accepted) for one in infos(copy)} == {
        "busy": (Status.ATTACHED, at(2.5), 2),
        "new": (Status.LEFT, None, 0),
        "silent": (Status.EXPECTED, None, 1),
    }
    Writer(copy, "silent").send([4], floor=4)
    assert copy.head().rows == 4


def test_rows_of_a_producer_that_was_forgotten_and_came_back(new_stream: NewStream, copied: Any) -> None:
    store = new_stream()()
    time = [1_000_000 * SECOND]
    store.now = lambda: time[0]
    writer = Writer(store, "a")
    writer.send([1], floor=1)
    end = store.head()
    writer.send([2], floor=2)
    writer.leave()
    time[0] += FORGET_MICROS + SECOND
    assert store.gc().forgotten == 1
    Writer(store, "a").send([3], floor=3)
    copy, unknown = copied(store, Limit(seq=end.seq))
    assert (copy.head(), read(copy), unknown) == (end, [1], ["a"])
    assert [(one.status, one.accepted) for one in infos(copy)] == [(Status.ATTACHED, 0)]


STEPS = st.lists(
    st.tuples(st.sampled_from("abc"), st.sampled_from(["send", "promise", "leave", "detach", "complete", "note"])),
    max_size=30,
)


@given(steps=STEPS, end=st.integers(0, 40))
def test_never_a_wrong_one(steps: list[tuple[str, str]], end: int) -> None:
    """Each producer is as it was, or without what is not known; the rows and the bound are those that were there."""
    store = MemoryStore("memory://until", SCHEMA, StreamSettings())
    STREAMS[store.path] = store
    former: dict[int, dict[str, ProducerRecord]] = {0: {}}
    heads = {0: store.head()}
    writers: dict[str, Writer] = {}
    for time, (name, what) in enumerate(steps, 1):
        if store.head().floor == END_OF_TIME or (name in writers and act_fails(store, name)):
            continue
        step(store, writers, name, what, time)
        former[store.head().seq] = dict(store.snapshot().records)
        heads[store.head().seq] = store.head()
    seq = max(known for known in former if known <= end)
    try:
        unknown = copy_store(store.path, "memory://until-copy", until=Limit(seq=seq))
        copy = STREAMS["memory://until-copy"]
        assert copy.head() == heads[seq]
        found = dict(copy.snapshot().records)
        assert found.keys() == former[seq].keys()
        for name, record in found.items():
            was = former[seq][name]
            assert (record.status, record.floor, record.accepted) == (was.status, was.floor, was.accepted)
            lost = (0, None) if name in unknown else (was.number, was.checkpoint)
            assert (record.number, record.checkpoint) == lost
    finally:
        STREAMS.pop("memory://until-copy", None)
        del STREAMS[store.path]


def act_fails(store: Store, name: str) -> bool:
    info = store.producer(name)
    return info is not None and info.status is Status.COMPLETE


def step(store: Store, writers: dict[str, Writer], name: str, what: str, time: int) -> None:
    if name not in writers or what in ("send", "promise", "complete", "note"):
        writers[name] = Writer(store, name, f"holder of {name}")
    writer = writers[name]
    if what == "leave":
        writer.leave()
    elif what == "detach":
        store.detach(name)
    elif what == "complete":
        writer.complete()
    elif what == "note":
        writer.send(checkpoint=str(time))
    elif what == "send":
        writer.send([time], floor=time, checkpoint=str(time))
    else:
        writer.send(floor=time)
