"""A commit that was foreseen takes one round trip, and never lands on another state of the stream."""

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from threading import Thread
from typing import Any

import pytest

from spark_rowtime.errors import ProducerFencedError
from spark_rowtime.store import check_store, create_store, open_store
from spark_rowtime.store.base import StreamSettings
from spark_rowtime.store.memory import MemoryStore
from spark_rowtime.store.postgres.forecast import CLOCK_DIFFERENCE_MICROS, Foresight
from spark_rowtime.store.postgres.store import PostgresStore
from spark_rowtime.store.steady_clock import Reading
from tests.store.streams import SCHEMA, SECOND, Writer, at, read, seconds, without_times

Open = Callable[[], PostgresStore]


@pytest.fixture
def open_here(postgres: Any, request: pytest.FixtureRequest) -> Iterator[Open]:
    """A function that opens one stream again at each call."""
    path, opened = postgres.url(f"forecast/{request.node.name}"), []
    create_store(path, SCHEMA, StreamSettings())

    def open_again() -> PostgresStore:
        opened.append(open_store(path))
        return opened[-1]

    yield open_again
    for store in opened:
        store.close()
    assert check_store(path).damage == []


@pytest.fixture
def outcomes(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each commit that was foreseen came true."""
    found: list[bool] = []
    noted = Foresight.foresaw

    def note(self: Foresight, applied: Any) -> None:
        found.append(applied is not None)
        noted(self, applied)

    monkeypatch.setattr(Foresight, "foresaw", note)
    return found


def test_who_commits_alone_needs_one_round_trip(open_here: Open, outcomes: list[bool]) -> None:
    """From the third commit on: the second one has found that nobody came between."""
    writer = Writer(open_here(), "a", lease=30_000_000)
    for second in range(6):
        writer.send([second], floor=second)
    assert outcomes == [True] * 4
    assert read(open_here()) == [0, 1, 2, 3, 4, 5]


def test_a_commit_of_very_many_trains(open_here: Open, outcomes: list[bool]) -> None:
    """One statement has at most 65,535 values, so such a commit is made under the lock."""
    store = open_here()
    writer = Writer(store, "a")
    for second in range(4):
        writer.send([second])
    writer.send(*([10 + n] for n in range(5000)))
    assert outcomes == [True, True]
    writer.send([6000])
    assert store.head().rows == 5005


@pytest.mark.parametrize("event", ["commit", "attach", "renew", "detach", "gc"])
def test_whatever_another_has_changed_meanwhile_counts(open_here: Open, outcomes: list[bool], event: str) -> None:
    """The commit is made as if it had not been foreseen, and no seq, no count and no bound is of the old state."""
    writer, other = Writer(open_here(), "a"), open_here()
    for second in range(4):
        writer.send([second], floor=second)
    beside = Writer(other, "b") if event == "commit" else None
    changes = {
        "commit": lambda: beside.send([20], floor=20),
        "attach": lambda: other.attach("b", "holder", "{}"),
        "renew": lambda: other.renew("a", writer.epoch),
        "detach": lambda: other.detach("a"),
        "gc": lambda: other.gc(age=0),
    }
    changes[event]()
    writer.send([30], floor=30)
    assert outcomes == [True, True, False]
    assert other.head().rows == 5 + (event == "commit")


def test_who_was_taken_over_is_fenced(open_here: Open, outcomes: list[bool]) -> None:
    writer = Writer(open_here(), "a")
    for second in range(4):
        writer.send([second])
    Writer(open_here(), "a", holder="next")
    with pytest.raises(ProducerFencedError):
        writer.send([9])
    assert outcomes == [True, True, False]


@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK"])
def test_a_transaction_that_holds_the_head_meanwhile(
    open_here: Open, outcomes: list[bool], postgres: Any, end: str
) -> None:
    """The statement waits for it, and then looks at the row that it has left: another version, or the same."""
    store = open_here()
    writer = Writer(store, "a")
    for second in range(4):
        writer.send([second])
    with postgres.connect() as other:
        other.execute("BEGIN")
        other.execute("UPDATE rowtime.heads SET seq = seq WHERE stream = %s", (store._id,))
        thread = Thread(target=lambda: writer.send([9]))
        thread.start()
        while not postgres.execute("SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock'"):
            assert thread.is_alive()
        other.execute(end)
        thread.join(30)
    assert outcomes == [True, True, end == "ROLLBACK"]
    assert read(open_here()) == [0, 1, 2, 3, 9]


def test_what_was_foreseen_for_a_time_long_ago_is_not_applied(open_here: Open, outcomes: list[bool]) -> None:
    """As after a suspension of the machine, or when the database's clock is put forward: that clock decides."""
    store = open_here()
    writer = Writer(store, "a")
    for second in range(4):
        writer.send([second])
    known = store._foresight._known
    assert known is not None
    earlier = known.reading.micros - 2 * CLOCK_DIFFERENCE_MICROS
    store._foresight._known = replace(known, reading=Reading(known.reading.boot, earlier))
    writer.send([9])
    assert outcomes == [True, True, False]
    assert store.last_seen()["a"].unseen < CLOCK_DIFFERENCE_MICROS


def test_a_producer_whose_time_is_up_is_noticed(open_here: Open, outcomes: list[bool]) -> None:
    """A commit that has to log what is due runs under the lock."""
    store = open_here()
    writer = Writer(store, "a")
    Writer(store, "silent", lease=1)
    writer.send([1], floor=1)
    writer.send([2], floor=2)
    assert outcomes == []
    assert {producer.name: producer.status for producer in store.producers()} == {"a": "attached", "silent": "detached"}
    assert store.head().floor == at(2)


@pytest.mark.parametrize("how", [{}, {"maxLag": 5 * SECOND}, {"boundsBeforeRows": False}], ids="".join)
@pytest.mark.parametrize("seed", range(3))
def test_random_commits_give_what_memory_gives(
    postgres: Any, outcomes: list[bool], how: dict[str, Any], seed: int
) -> None:
    """Trains in and out of order, late ones, bounds that rise or not, the end of time; at times another producer's.

    With ``maxLag`` few commits can be foreseen, since the strongest producer must be asked for.
    """
    path, dice = postgres.url(f"forecast/random/{''.join(how)}{seed}"), random.Random(seed)
    create_store(path, SCHEMA, StreamSettings(**how))
    model = MemoryStore("memory://model", SCHEMA, StreamSettings(**how))
    with open_store(path) as store, open_store(path) as beside:
        twins = {name: (Writer(one, name), Writer(model, name)) for name, one in (("a", store), ("b", beside))}
        for step in range(60):
            name = "b" if dice.random() < 0.05 else "a"
            trains = [[step + dice.randrange(-4, 5) for _ in range(2)] for _ in range(dice.choice([0, 1, 1, 1, 2]))]
            floor = None if dice.random() < 0.2 else step - dice.randrange(4)
            more = {"checkpoint": str(step)} if dice.random() < 0.5 else {}
            assert outcome(twins[name][0], trains, floor, more) == outcome(twins[name][1], trains, floor, more), step
            assert store.head() == model.head(), step
        twins["a"][0].complete()
        twins["a"][1].complete()
        assert (store.producers(), store.clock()) == (model.producers(), model.clock())
        assert store.bounds() == model.bounds()
        assert read(store) == read(model)
        assert without_times(store.rejected()) == without_times(model.rejected())
    assert outcomes.count(True) >= (3 if how.get("maxLag") else 10)
    assert check_store(path).damage == []


def outcome(writer: Writer, trains: list[list[int]], floor: int | None, more: dict[str, Any]) -> Any:
    """What a commit returns."""
    receipt = writer.send(*trains, floor=floor, **more)
    return receipt.seq, receipt.floor, [(one.bound, one.origin, seconds(one.rows)) for one in receipt.rejected]
