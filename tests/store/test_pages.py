"""The laws of a page, one test each, over the pages of each store; and those of the ledger's members over them."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spark_rowtime.bounds.clock import Idled, Joined, Left, Sent, Status
from spark_rowtime.bounds.key_parts import KeyChanges
from spark_rowtime.bounds.members import COUNTING, ProducerClock, SortedMembers, place
from spark_rowtime.bounds.topic_cut import LoggedCut, TopicCut
from spark_rowtime.store.base import Store
from spark_rowtime.store.commits import Rejected
from spark_rowtime.store.ledger import _PageMembers
from spark_rowtime.store.page import Page
from spark_rowtime.store.position import Head
from spark_rowtime.store.record import ProducerRecord, overdue
from spark_rowtime.store.snapshot import WRITER
from tests.store.streams import SECOND, NewStream, at, batch, infos, seconds

Result = TypeVar("Result")
CUT = TopicCut({"orders": {0: 3}})
LATE, KNOWN = Rejected("late", at(9), batch(3)), Rejected("late", at(8), batch(1, 2))
MANY = settings(
    max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None
)


class Undone(Exception):  # noqa: N818
    """It ends a page without its writes."""


def on_page(store: Any, act: Callable[[Page], Result], *about: str) -> Result:
    """What ``act`` returns, called with a page of its own."""
    return store._decide(lambda ledger: act(ledger._page), *about)


def record(name: str, status: Status = Status.ATTACHED, floor: float | None = None, **more: Any) -> ProducerRecord:
    return ProducerRecord(name, status, at(floor), **more)


def append(page: Page, event: Any, floor: float | None = None, train: Any = None) -> None:
    """Appends an event, after which the stream's floor is ``floor``."""
    largest = max((t for t in (page.head.largest, train and train.largest) if t), default=None)
    page.append(
        event, Head(page.head.seq + 1, at(floor), largest, page.head.rows + (train.rows if train else 0)), train
    )


def shown(store: Store) -> list[Any]:
    """What anybody can see of the stream."""
    return [
        *(store.head(), infos(store), store.bounds(), list(store.cuts()), store.keys("a"), store.has_cuts()),
        *(
            [(one.role, one.name, one.content) for one in store.snapshot().statuses],
            store.summary(),
            store.snapshot().logged_clock,
        ),
        [(one.number, one.producer, seconds(one.rejected.rows)) for one in store.rejections()],
    ]


def write_all(page: Page, train: Any) -> None:
    """Writes everything that a page can write."""
    append(page, Joined("a"))
    append(page, Sent("a", at(4), at(4)), 4, train)
    page.reject("a", 1, [KNOWN], [LATE])
    page.add_cut(LoggedCut(page.head.seq, "a", None, CUT))
    page.add_keys("a", 1, KeyChanges(True, b"keys"))
    page.set_query_status("a", "{}")
    page.save(record("a", floor=4, number=1, accepted=2, rejected=3, receipt_seq=2, receipt_floor=at(4)))


def test_whole(new_stream: NewStream) -> None:
    open_stream = new_stream()
    store = open_stream()
    before, train = shown(store), store.stage(batch(2, 4))

    def undone(page: Page) -> None:
        write_all(page, train)
        raise Undone

    with pytest.raises(Undone):
        on_page(store, undone, "a")
    assert shown(store) == shown(open_stream()) == before

    on_page(store, lambda page: write_all(page, train), "a")
    found = shown(open_stream())
    assert found == shown(store)
    head, (info,), bounds, cuts, keys, has_cuts, statuses, summary, clock, rejections = found
    assert head == (2, at(4), at(4), 2)
    assert (info.name, info.status, info.floor, info.accepted, info.number) == ("a", "attached", at(4), 2, 1)
    assert bounds.column("event").to_pylist() == ["joined", "sent"]
    assert (cuts, keys, has_cuts, statuses) == ([LoggedCut(2, "a", None, CUT)], [b"keys"], True, [(WRITER, "a", "{}")])
    assert (summary.holder, summary.attached, summary.rejected) == ("a", 1, 3)
    assert (clock.floor, clock.largest, dict(clock.producers)) == (
        at(4),
        at(4),
        {"a": ProducerClock(info.status, at(4))},
    )
    assert rejections == [(1, "a", [1, 2]), (2, "a", [3])]


def test_read_your_writes(new_stream: NewStream) -> None:
    store = new_stream()()
    train = store.stage(batch(2, 4))

    def act(page: Page) -> None:
        assert (page.head, page.find("a"), list(page.names()), page.raised(1)) == ((0, None, None, 0), None, [], None)
        write_all(page, train)
        assert page.head == (2, at(4), at(4), 2)
        assert page.find("a").number == 1
        assert list(page.names()) == ["a"]
        assert (page.raised(at(4)).producer, page.raised(at(4)).event) == ("a", "sent")
        assert page.weakest_but("b") == ("a", ProducerClock(Status.ATTACHED, at(4)))

    on_page(store, act, "a")


@pytest.mark.parametrize("about", [(), ("a",), ("a", "b")], ids=str)
def test_apart(new_stream: NewStream, about: tuple[str, ...]) -> None:
    """Also of the producers that the store was told of before."""
    store = new_stream()()
    on_page(store, lambda page: page.save(record("a", number=1)))

    def act(page: Page) -> None:
        found = page.find("a")
        found.number = 7
        assert page.find("a").number == 1
        page.save(found)
        found.number = 8
        assert page.find("a").number == 7
        assert page.find("b") is None

    on_page(store, act, *about)
    assert on_page(store, lambda page: page.find("a").number, *about) == 7


@pytest.mark.parametrize("checkpoint", ["small", "large" * 1000])
def test_every_field_of_a_record_is_kept(new_stream: NewStream, checkpoint: str) -> None:
    """The checkpoint comes with the producer's info, and stays while nobody saves another one."""
    store = new_stream()()
    whole = ProducerRecord("ü", Status.DETACHED, 1, 2, 3, 4, True, 5, 6, 7, 8, checkpoint, "{}", "d", "h", 0, None)
    on_page(store, lambda page: page.save(whole))
    for _ in range(2):
        found = on_page(store, lambda page: page.find("ü"), "ü")
        assert replace(found, checkpoint=None) == replace(whole, checkpoint=None)
        on_page(store, lambda page: page.save(page.find("ü")), "ü")
    assert infos(store) == [whole.info]


def test_log(new_stream: NewStream) -> None:
    store = new_stream()()
    heads = []

    def act(page: Page) -> None:
        for event in (Joined("a"), Sent("a", at(2)), Left("a")):
            append(page, event, 2)
            heads.append(page.head)
        page.save(record("a", Status.LEFT, 2))

    on_page(store, act)
    assert [store.at(seq) for seq in (1, 2, 3)] == heads
    assert on_page(store, lambda page: page.head) == heads[-1]
    assert [head.seq for head in heads] == [1, 2, 3]


STATUSES = st.sampled_from([*Status])
RECORDS = st.builds(
    lambda name, status, floor, lease, seen, sent: record(
        name, status, None if status is Status.EXPECTED else floor, lease=lease, seen=seen, sent=sent
    ),
    *(st.sampled_from(["a", "b", "ü", "Z"]), STATUSES, st.none() | st.integers(1, 5)),
    *(st.none() | st.integers(0, 20), st.integers(1, 20), st.integers(1, 20)),
)


@MANY
@given(records=st.lists(st.tuples(RECORDS, st.booleans()), max_size=8))
def test_members(new_stream: NewStream, records: list[tuple[ProducerRecord, bool]]) -> None:
    """What is asked is what a scan gives: in the page that wrote it, and in the next one."""
    store, known, pages = new_stream()(), {}, [[]]
    for one, ends in records:
        pages[-1].append(one)
        pages += [[]] if ends else []
    for page in [*pages, []]:
        on_page(store, lambda opened, new=page: write_and_compare(opened, new, known), "a")
    clocks = {one.name: one.clock for one in known.values() if one.clock}
    assert dict(store.snapshot().logged_clock.producers) == clocks
    assert store.summary().attached == sum(one.attached for one in known.values())


def write_and_compare(page: Page, records: list[ProducerRecord], known: dict[str, ProducerRecord]) -> None:
    for one in [None, *records]:
        if one is not None:
            page.save(one)
            known[one.name] = one
        for but in ("a", "nobody"):
            others = [(p.name, p.clock) for p in known.values() if p.clock and p.name != but]
            counting = [(name, clock) for name, clock in others if clock.status in COUNTING]
            assert page.weakest_but(but) == min(counting, key=lambda one: place(*one), default=None)
            floors = [clock.floor for _, clock in counting if clock.floor is not None]
            assert page.strongest_floor_but(but) == max(floors, default=None)
            assert page.has_idle_but(but) == any(clock.status is Status.IDLE for _, clock in others)


@MANY
@given(records=st.lists(RECORDS, max_size=8), now=st.integers(1, 45), idle=st.sampled_from([None, 10]))
def test_overdue(new_stream: NewStream, records: list[ProducerRecord], now: int, idle: int | None) -> None:
    """Records from one page are found by the next one, and by who only looks."""
    start = 1_000_000 * SECOND
    store = new_stream(idleTimeout=None if idle is None else idle * SECOND)()
    store.now = lambda: start
    known = {}

    def save(page: Page) -> None:
        for one in records:
            lease = None if one.lease is None else one.lease * SECOND
            known[one.name] = replace(one, lease=lease, seen=start + one.seen * SECOND, sent=start + one.sent * SECOND)
            page.save(known[one.name])

    on_page(store, save)
    store.now = lambda: start + now * SECOND
    right = overdue([p for p in known.values() if p.attached], start + now * SECOND, store.settings.idleTimeout)
    assert store.snapshot().due == [event for event, _ in right]

    def act(page: Page) -> None:
        assert overdue(page.overdue(), page.now, store.settings.idleTimeout) == right
        for event, one in right:
            page.save(replace(one, status=Status.IDLE if isinstance(event, Idled) else Status.DETACHED))
        assert [e for e, _ in overdue(page.overdue(), page.now, store.settings.idleTimeout) if e in dict(right)] == []

    on_page(store, act)


def test_raised(new_stream: NewStream) -> None:
    store = new_stream()()

    def act(page: Page) -> None:
        for name, floor in (("a", None), ("b", 3), ("c", 3), ("d", 7), ("e", 8)):
            append(page, Joined(name), floor)

    on_page(store, act)
    bounds = [page_bound(store, bound) for bound in (1, 3, 4, 7, 8, 9)]
    assert bounds == ["b", "b", "d", "d", "e", None]
    assert bounds == [(found := store.raised(at(bound))) and found.producer for bound in (1, 3, 4, 7, 8, 9)]


def page_bound(store: Store, bound: int) -> str | None:
    found = on_page(store, lambda page: page.raised(at(bound)))
    return found and found.producer


def test_receipt(new_stream: NewStream) -> None:
    store = new_stream(retainRejected=0)()

    def reject(number: int, late: list[Rejected]) -> None:
        def act(page: Page) -> None:
            page.reject("a", number, [KNOWN], late)
            page.save(record("a", number=number, rejected=number))

        on_page(store, act, "a")

    def kept() -> list[Any]:
        late = on_page(store, lambda page: page.late_rows(page.find("a")), "a")
        return [(one.reason, one.bound, seconds(one.rows)) for one in late]

    reject(1, [LATE])
    on_page(store, lambda page: page.reject("b", 1, [KNOWN], []))
    assert kept() == [("late", at(9), [3])]
    reject(2, [])
    assert kept() == []


def test_uptime(new_stream: NewStream) -> None:
    store, times = new_stream()(), []

    def act(page: Page) -> None:
        times.append(page.now)
        append(page, Joined("a"))
        page.save(record("a", seen=page.now))
        times.append(page.now)

    for _ in range(3):
        on_page(store, act)
    assert times == sorted(times)
    assert times[0::2] == times[1::2]


NAMES = st.sampled_from(["a", "b", "c"])
CLOCKS = st.just(ProducerClock(Status.EXPECTED, None)) | st.builds(
    ProducerClock, st.sampled_from([Status.ATTACHED, Status.IDLE]), st.none() | st.integers(1, 5)
)


@MANY
@given(changes=st.lists(st.tuples(NAMES, st.none() | CLOCKS), max_size=12))
def test_in_step(new_stream: NewStream, changes: list[tuple[str, ProducerClock | None]]) -> None:
    """The members of a page are those in memory, also while the last change is not saved."""
    store, plain = new_stream()(), SortedMembers()

    def act(page: Page) -> None:
        members = _PageMembers(page)
        for name, clock in changes:
            found = page.find(name) or ProducerRecord(name)
            members.turn_to(found)
            assert members.get(name) == plain.get(name)
            if clock is None:
                members.remove(name)
                plain.remove(name)
            else:
                members[name] = plain[name] = clock
            assert (members.weakest(), members.strongest(), bool(members)) == (
                *(plain.weakest(), plain.strongest()),
                bool(plain),
            )
            found.tick(plain.get(name), Status.LEFT)
            page.save(found)

    on_page(store, act)
    assert dict(store.snapshot().logged_clock.producers) == dict(plain)
