"""A commit that needs only one round trip: the server decides it as a transaction would, or leaves it to one."""

import itertools
import random
from collections.abc import Callable, Iterator
from functools import partial
from threading import Thread
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spark_rowtime.errors import ProducerFencedError, RowtimeAheadError, RowtimeError
from spark_rowtime.store import check_store, create_store, open_store
from spark_rowtime.store.commits import Commit
from spark_rowtime.store.memory import MemoryStore
from spark_rowtime.store.postgres import one_trip_commit
from spark_rowtime.store.postgres import store as postgres_store
from spark_rowtime.store.postgres.store import PostgresStore
from spark_rowtime.store.settings import StreamSettings
from spark_rowtime.store.steady_clock import Reading
from spark_rowtime.types.timestamps import wall_clock
from tests.store.streams import SCHEMA, SECOND, START, Writer, at, batch, infos, read, seconds, without_times

NUMBERS = itertools.count(1)
Open = Callable[[], PostgresStore]


@pytest.fixture
def open_here(postgres: Any, request: pytest.FixtureRequest) -> Iterator[Open]:
    """A function that opens one stream again at each call. All have one clock, which goes on at each look.

    The server's may be behind in one of its processes: then one trip is not enough.
    """
    clock = map(partial(Reading, "ticks"), itertools.count(START, 1000))
    path, opened = postgres.url(f"one-trip/{request.node.name}"), []
    create_store(path, SCHEMA, StreamSettings())

    def open_again() -> PostgresStore:
        opened.append(store := open_store(path))
        store.steady = clock.__next__
        return store

    yield open_again
    for store in opened:
        store.close()
    assert check_store(path).damage == []


@pytest.fixture
def outcomes(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each commit that the server was asked to decide was made so."""
    found: list[bool] = []

    def note(row: Any) -> Any:
        found.append(one_trip_commit.landed(row) is not None)
        return one_trip_commit.landed(row)

    monkeypatch.setattr(postgres_store, "landed", note)
    return found


def test_producers_that_take_turns_need_one_round_trip_each(open_here: Open, outcomes: list[bool]) -> None:
    writers = [Writer(open_here(), name, lease=30_000_000) for name in "abc"]
    for second in range(6):
        for writer in writers:
            writer.send([second], floor=second)
    assert outcomes == [True] * 18
    assert read(open_here()) == [second for second in range(6) for _ in writers]
    assert open_here().head().floor == at(5)


@pytest.mark.long
@pytest.mark.parametrize("trains", [2, 5000])
def test_a_commit_of_several_trains(open_here: Open, outcomes: list[bool], trains: int) -> None:
    """One statement has at most 65,535 values, so a commit of very many is made by many."""
    store = open_here()
    writer = Writer(store, "a")
    writer.send([1])
    writer.send(*([10 + n] for n in range(trains)))
    writer.send([6000])
    assert outcomes == [True, True]
    assert store.head().rows == 2 + trains


@pytest.mark.parametrize("event", ["commit", "attach", "renew", "detach", "gc"])
def test_whatever_another_has_changed_meanwhile_counts(open_here: Open, outcomes: list[bool], event: str) -> None:
    """No seq, no count and no bound is of the old state."""
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
    assert outcomes == [True] * (5 if event == "commit" else 4) + [event != "detach"]
    assert other.head().rows == 5 + (event == "commit")


def test_what_is_too_far_ahead_of_the_clock_of_the_server_takes_more_trips(postgres: Any, outcomes: list[bool]) -> None:
    path, hour = postgres.url("one-trip/ahead"), 3600 * SECOND
    create_store(path, SCHEMA, StreamSettings(maxAhead=hour))
    with open_store(path) as store:
        writer, ahead = Writer(store, "a"), (wall_clock() - START) // SECOND
        writer.send([ahead + 1800], floor=ahead + 1800)
        with pytest.raises(RowtimeAheadError, match="'a' lies 2:"):
            writer.send(floor=ahead + 3 * 3600)
        assert seconds(writer.send([ahead + 9000]).rejected[0].rows) == [ahead + 9000]
    assert outcomes == [True, False, False]


def test_who_was_taken_over_is_fenced(open_here: Open, outcomes: list[bool]) -> None:
    writer = Writer(open_here(), "a")
    writer.send([1])
    Writer(open_here(), "a", session="next")
    with pytest.raises(ProducerFencedError):
        writer.send([9])
    assert outcomes == [True, False]


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK"])
def test_a_transaction_that_has_not_taken_the_gate(
    open_here: Open, outcomes: list[bool], postgres: Any, end: str
) -> None:
    """As one of an older client, or one that renames: the commit waits for it, and never overwrites what it did."""
    store = open_here()
    writer = Writer(store, "a")
    writer.send([0])
    with postgres.connect() as other:
        other.execute("BEGIN")
        other.execute("UPDATE rowtime.heads SET rows = rows WHERE stream = %s", (store.number,))
        thread = Thread(target=lambda: writer.send([9]))
        thread.start()
        while not postgres.execute("SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock'"):
            assert thread.is_alive()
        other.execute(end)
        thread.join(300)
    assert outcomes == [True, end == "ROLLBACK"]
    assert read(open_here()) == [0, 9]


def test_a_producer_whose_time_is_up_is_noticed(open_here: Open, outcomes: list[bool]) -> None:
    """A commit that has to log what is due runs as a transaction."""
    store = open_here()
    writer = Writer(store, "a")
    Writer(store, "silent", lease=1)
    writer.send([1], floor=1)
    writer.send([2], floor=2)
    assert outcomes == [False, True]
    assert {producer.name: producer.status for producer in infos(store)} == {"a": "attached", "silent": "detached"}
    assert store.head().floor == at(2)


def test_a_commit_that_was_repeated_after_it_had_landed(open_here: Open, outcomes: list[bool]) -> None:
    store = open_here()
    writer = Writer(store, "a")
    commit = writer.commit([1], floor=1)
    receipts = [store.commit(commit) for _ in range(3)]
    assert receipts[0] == receipts[1] == receipts[2]
    assert outcomes == [True, False, False]
    assert read(store) == [1]


SETTINGS = [{}, {"maxLag": 5 * SECOND}, {"boundsBeforeRows": False}, {"idleTimeout": 3600 * SECOND}]


@pytest.mark.parametrize("how", SETTINGS, ids="".join)
@pytest.mark.parametrize("seed", range(3))
def test_random_commits_give_what_memory_gives(
    postgres: Any, outcomes: list[bool], how: dict[str, Any], seed: int
) -> None:
    """Trains in and out of order, late ones, bounds that rise or not, an expected producer, one that leaves, the end.

    With ``maxLag`` the server decides none of them.
    """
    path, dice = postgres.url(f"one-trip/random/{''.join(how)}{seed}"), random.Random(seed)
    create_store(path, SCHEMA, StreamSettings(**how))
    model = MemoryStore("memory://model", SCHEMA, StreamSettings(**how))
    with open_store(path) as store, open_store(path) as beside:
        for one in (store, model):
            one.expect(["d"])
        twins = {name: (Writer(one, name), Writer(model, name)) for name, one in (("a", store), ("b", beside))}
        for step in range(80):
            if step in (10, 40):  # an expected producer comes; another one joins at the stream's bound
                twins["d" if step == 10 else "c"] = tuple(Writer(one, "cd"[step == 10]) for one in (beside, model))
            if step == 60:
                for writer in twins.pop("b"):
                    writer.leave()
            name = dice.choice([*twins])
            trains = [[step + dice.randrange(-4, 5) for _ in range(2)] for _ in range(dice.choice([0, 1, 1, 1, 2]))]
            floor = None if dice.random() < 0.2 else step - dice.randrange(4)
            more = {"checkpoint": str(step), "disorder": f"{step}"} if dice.random() < 0.5 else {}
            assert outcome(twins[name][0], trains, floor, more) == outcome(twins[name][1], trains, floor, more), step
            assert store.head() == model.head(), step
        for writer in (*twins["a"], *twins["c"], *twins["d"]):
            writer.complete()
        assert (infos(store), store.snapshot().logged_clock) == (infos(model), model.snapshot().logged_clock)
        assert store.bounds() == model.bounds()
        assert read(store) == read(model)
        assert without_times(store.rejected()) == without_times(model.rejected())
    assert (outcomes.count(True) > 15) == ("maxLag" not in how)
    assert check_store(path).damage == []


def outcome(writer: Writer, trains: list[list[int]], floor: int | None, more: dict[str, Any]) -> Any:
    """What a commit returns."""
    receipt = writer.send(*trains, floor=floor, **more)
    return receipt.seq, receipt.floor, [(one.bound, one.origin, seconds(one.rows)) for one in receipt.rejected]


NAMES = st.sampled_from(["a", "b", "c"])
TIMES = st.lists(st.integers(1, 40), min_size=1, max_size=3)
FLOORS = st.none() | st.integers(1, 42)
SENDS = st.fixed_dictionaries(
    {"trains": st.lists(TIMES, max_size=1) | st.lists(TIMES, max_size=2), "floor": FLOORS},
    optional={
        "checkpoint": st.sampled_from(["c", "d"]),
        "disorder": st.just("state"),
        "idle": st.booleans(),
        "all_or_nothing": st.booleans(),
        "behind": st.sampled_from([0, 1]),
        "left_out": st.sampled_from([0, -1, 1]),
    },
)
SEND = st.tuples(st.just("send"), NAMES, SENDS)
HISTORY = st.lists(
    st.one_of(
        *[SEND] * 5,
        st.tuples(st.just("attach"), NAMES, st.sampled_from(["x", "y"]), st.sampled_from([None, 10, 30])),
        st.tuples(st.just("leave"), NAMES),
        st.tuples(st.just("detach"), NAMES),
        st.tuples(st.just("renew"), NAMES),
        st.tuples(st.just("wait"), st.sampled_from([1, 11, 31])),
    ),
    max_size=30,
)
HOW = st.builds(
    dict,
    boundsBeforeRows=st.booleans(),
    idleTimeout=st.sampled_from([None, None, 20 * SECOND]),
    maxAhead=st.sampled_from([None, 0, 25 * SECOND]),
)


class Twin:
    """A stream that is told a history. Of two of them only one may ask the function."""

    def __init__(self, path: str, how: dict[str, Any]) -> None:
        create_store(path, SCHEMA, StreamSettings(**how))
        self.store, self.time = open_store(path), 0
        self.store.now = lambda: at(self.time) or 0
        self.store.expect(["c"])

    def run(self, what: str, *arguments: Any) -> Any:
        try:
            return getattr(self, what)(*arguments)
        except RowtimeError as error:
            return type(error), str(error).replace(self.store.path, "")

    def wait(self, seconds: int) -> None:
        self.time += seconds

    def attach(self, name: str, holder: str, lease: int | None) -> Any:
        return self.store.attach(name, holder, "{}", None if lease is None else lease * SECOND)

    def leave(self, name: str) -> None:
        self.store.leave(name, self._known(name)[0])

    def detach(self, name: str) -> None:
        self.store.detach(name)

    def renew(self, name: str) -> bool:
        return self.store.renew(name, self._known(name)[0])

    def send(self, name: str, given: dict[str, Any]) -> Any:
        more = dict(given)
        trains, floor, behind, left_out = (more.pop(key, 0) for key in ("trains", "floor", "behind", "left_out"))
        epoch, number = self._known(name)
        staged = tuple(self.store.stage(batch(*train)) for train in trains)
        commit = Commit(name, epoch - behind, number + 1 + left_out, staged, at(floor), **more)
        return [(r.seq, r.floor, [seconds(one.rows) for one in r.rejected]) for r in [self.store.commit(commit)]]

    def _known(self, name: str) -> tuple[int, int]:
        found = self.store.producer(name)
        return (found.epoch, found.number) if found else (0, 0)

    def rows(self, postgres: Any) -> list[Any]:
        """All that the database has of the stream, without what names it."""
        orders = {"heads": "seq", "producers": "name", "events": "seq", "trains": "seq, part", "rejected": "id"}
        where = f"WHERE stream = {self.store.number}"
        found = [postgres.execute(f"SELECT * FROM rowtime.{t} {where} ORDER BY {by}") for t, by in orders.items()]
        return [[row[2 if rows is found[0] else 1 :] for row in rows] for rows in found]


@pytest.mark.long
@pytest.mark.search
@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(how=HOW, history=HISTORY)
def test_the_function_makes_what_the_ledger_makes(
    postgres: Any, outcomes: list[bool], how: dict[str, Any], history: list[Any]
) -> None:
    """The same head, the same producers, the same refusals; also of wrong epochs and numbers, and when time is up."""
    number = next(NUMBERS)
    server, decided = (Twin(postgres.url(f"one-trip/twins/{number}/{which}"), how) for which in "ab")
    with server.store, decided.store:
        decided.store._commit_in_one_trip = lambda _: None
        for step in [*(("attach", name, "x", None) for name in "ab"), *history]:
            assert server.run(*step) == decided.run(*step), step
            assert server.rows(postgres) == decided.rows(postgres), step
