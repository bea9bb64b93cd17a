"""Beside many producers a call does the work that it does beside a few; and producers that left may be forgotten."""

from collections.abc import Callable
from typing import Any

import pytest
from click.testing import CliRunner

import spark_rowtime as rt
from spark_rowtime.cli import main
from spark_rowtime.errors import ProducerFencedError, StreamCompleteError
from spark_rowtime.store.base import Store
from spark_rowtime.store.local import LocalStore, check_local, create_local, open_local, producers
from spark_rowtime.store.record import Held
from spark_rowtime.store.settings import StreamSettings
from spark_rowtime.store.snapshot import FORGET_MICROS
from spark_rowtime.store.steady_clock import Reading, machine_reading
from tests.store.streams import SCHEMA, SECOND, NewStream, Writer, infos, read

FEW, MANY = 10, 600
LEASE = 30 * SECOND


def steps(store: LocalStore, call: Callable[[], Any]) -> int:
    """How many instructions of SQLite ``call`` takes, in tens."""
    taken = [0]

    def count() -> None:
        taken[0] += 1

    store._catalog._db.set_progress_handler(count, 10)
    call()
    store._catalog._db.set_progress_handler(None, 0)
    return taken[0]


def beside(path: str, others: int) -> dict[str, int]:
    """What the calls of one producer, of another process and of a query's poll cost beside ``others``."""
    create_local(path, SCHEMA, StreamSettings(idleTimeout=3600 * SECOND, maxLag=3600 * SECOND))
    store, elsewhere = (open_local(path, steady=lambda: Reading("boot", 1)) for _ in range(2))
    for number in range(others):
        Writer(store, f"other {number}", lease=LEASE)
        Writer(store, f"gone {number}").leave()
    one, two = Writer(store, "one", lease=LEASE), Writer(elsewhere, "two", lease=LEASE)
    one.send([1], floor=1)
    two.send([1], floor=1)
    calls: dict[str, Callable[[], Any]] = {
        "commit": lambda: one.send([2], [3], floor=3),
        "commit after another process's": lambda: one.send([4], floor=4),
        "renew": lambda: store.renew("one", one.epoch),
        "poll": lambda: (store.expire(), store.head()),
        "metrics": store.summary,
        "leave": one.leave,
    }
    taken = {}
    for name, call in calls.items():
        if "another" in name:
            two.send([3], floor=3)
        taken[name] = steps(store, call)
    assert store.summary().attached == others + 1
    for opened in (store, elsewhere):
        opened.close()
    return taken


def test_no_call_does_more_beside_many_producers(tmp_path: Any) -> None:
    """Within the noise of counting in tens."""
    few, many = (beside(str(tmp_path / f"{others}"), others) for others in (FEW, MANY))
    for name in few:
        assert many[name] <= few[name] + 3, name


def opened(new_stream: NewStream, clock: list[int]) -> Store:
    store = new_stream()()
    store.now = lambda: clock[0]
    return store


def test_gc_forgets_who_left_long_ago(new_stream: NewStream) -> None:
    clock = [SECOND]
    store = opened(new_stream, clock)
    for name in ("left", "kept", "late", "here"):
        Writer(store, name).send(
            [1], floor=1, late=[0] if name == "late" else (), checkpoint="c" if name == "kept" else None
        )
    for name in ("left", "kept", "late"):
        store.leave(name, 1)
    clock[0] += FORGET_MICROS
    assert store.gc().forgotten == 0, "not yet"
    clock[0] += 1
    before = store.head(), store.snapshot().logged_clock
    assert store.gc().forgotten == 1
    assert store.gc().forgotten == 0
    assert (store.head(), store.snapshot().logged_clock) == before
    assert [info.name for info in infos(store)] == ["here", "kept", "late"]
    summary = store.summary()
    assert (summary.attached, summary.rejected, summary.forgotten) == (1, 1, 1)
    assert read(store) == [1, 1, 1, 1]


def test_who_held_a_forgotten_producer_stays_fenced(new_stream: NewStream) -> None:
    clock = [SECOND]
    store = opened(new_stream, clock)
    old = Writer(store, "a")
    old.send([1], floor=1)
    old.leave()
    clock[0] += FORGET_MICROS + 1
    assert store.gc().forgotten == 1
    new = Writer(store, "a", "another holder")
    assert (new.epoch, new.number) == (2, 0)
    with pytest.raises(ProducerFencedError):
        old.send([2], floor=2)
    new.send([3], floor=3)
    assert read(store) == [1, 3]


def test_each_renewal_has_its_own_result(new_stream: NewStream) -> None:
    """One that cannot be renewed keeps no other from it."""
    clock = [SECOND]
    store = opened(new_stream, clock)
    lost, taken = Writer(store, "lost", lease=SECOND), Writer(store, "taken")
    new = Writer(store, "taken", "another holder")
    clock[0] += 2 * SECOND
    store.expire()
    store.close_producer("taken", complete=True)
    results = store.renew_all([Held("lost", lost.epoch), Held("taken", taken.epoch), Held("taken", new.epoch + 1)])
    assert [type(result) for result in results] == [StreamCompleteError, ProducerFencedError, bool]


def test_who_is_expected_or_complete_is_not_forgotten(new_stream: NewStream) -> None:
    """A complete producer that was forgotten could open again."""
    clock = [SECOND]
    store = opened(new_stream, clock)
    store.expect(["to come"])
    for name in ("over", "lost", "left"):
        Writer(store, name).send([1], floor=1)
    store.leave("left", 1)
    clock[0] += 2 * FORGET_MICROS
    store.close_producer("over", complete=True)
    store.close_producer("lost")
    assert store.gc().forgotten == 1, "the one that was lost has left only now"
    clock[0] += 2 * FORGET_MICROS
    assert store.gc().forgotten == 1
    assert [(info.name, info.status.value) for info in infos(store)] == [
        ("over", "complete"),
        ("to come", "expected"),
    ]
    summary = store.summary()
    assert (summary.holder, summary.expected, summary.attached, summary.forgotten) == ("to come", True, 0, 2)


def two_days_later() -> Reading:
    now = machine_reading()
    return now._replace(micros=now.micros + 2 * FORGET_MICROS)


def test_forgetting_is_seen(tmp_path: Any) -> None:
    path = str(tmp_path / "s")
    rt.createStream(path, "rowtime TIMESTAMP NOT NULL, n BIGINT")
    with rt.openSink(path) as sink:
        sink.sendRow(("2026-01-05T14:30:00Z", 1))
    store = open_local(path, steady=two_days_later)
    assert store.gc().forgotten == 1
    Writer(store, "b").send([767_700_000], floor=767_700_000)
    store.close()
    info = rt.describeStream(path)
    assert (info.rows, info.forgotten, [p.name for p in info.producers]) == (2, 1, ["b"])
    assert "forgotten 1 producers that left long ago" in CliRunner().invoke(main, ["describe", path]).stdout
    assert check_local(path).damage == []


def test_check_sees_totals_that_do_not_fit(tmp_path: Any) -> None:
    path = tmp_path / "s"
    create_local(str(path), SCHEMA, StreamSettings())
    store = open_local(str(path))
    Writer(store, "a").send([1], floor=1)
    totals = producers.totals(store._catalog)
    producers.set_totals(store._catalog, totals._replace(attached=2))
    store.close()
    assert "1 producers are attached, and 0 rows were rejected, but 2 and 0 are counted" in check_local(path).damage[0]
