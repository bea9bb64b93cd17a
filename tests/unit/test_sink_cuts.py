"""Bounds with cuts through a sink: what is taken, what is refused, restarts, and how a producer leaves."""

import itertools
from typing import Any

import pytest
from click.testing import CliRunner
from unit_support import HOUR, MINUTE, HandClock, new_sink, us, when

import spark_rowtime as rt
from spark_rowtime.bounds.topic_cut import LoggedCut
from spark_rowtime.cli import main
from spark_rowtime.kafka.cuts import CutFloors
from spark_rowtime.store import open_store

NUMBERS = itertools.count(1)


@pytest.fixture
def path() -> str:
    return new_stream()


def new_stream(**settings: Any) -> str:
    path = f"memory://sink-cuts-{next(NUMBERS)}"
    rt.createStream(path, "rowtime TIMESTAMP NOT NULL", **settings)
    return path


def opened(path: str, producer: str = "app", **options: Any) -> rt.StreamSink:
    return rt.openSink(path, producer=producer, lease=None, linger="1 hour", **options)


def at(*offsets: int, topic: str = "orders") -> dict[str, dict[int, int]]:
    return {topic: dict(enumerate(offsets))}


def floor(path: str, *offsets: int) -> int | None:
    with open_store(path) as store:
        return CutFloors(store).floorAt(store.head().seq, at(*offsets))


def logged(path: str) -> list[LoggedCut]:
    with open_store(path) as store:
        return list(store.cuts())


def test_a_bound_counts_where_its_cut_is_reached(path: str) -> None:
    sink = opened(path)
    sink.sendRowtimeBound(when("10:00"), cut=at(10))
    sink.sendRowtimeBound(when("11:00"), cut=at(20, 5))
    sink.flush()
    assert rt.describeStream(path).bound == rt.RowtimeBound(when("11:00"))
    assert floor(path) is None
    assert floor(path, 9, 9) is None
    assert floor(path, 10) == us("10:00")
    assert floor(path, 20, 4) == us("10:00")
    assert floor(path, 20, 5) == us("11:00")


def test_every_bound_between_two_commits_counts(path: str) -> None:
    """One commit has them all, each as an event of its own."""
    sink = opened(path)
    for minute in range(10):
        sink.sendRowtimeBound(when(f"10:0{minute}"), cut=at(10 * minute))
    sink.flush()
    assert [floor(path, 10 * minute) for minute in range(10)] == [us(f"10:0{minute}") for minute in range(10)]


def test_a_bound_without_a_cut_is_about_the_whole_topic(path: str) -> None:
    sink = opened(path)
    sink.sendRowtimeBound(when("9:00"))
    sink.sendRowtimeBound(when("10:00"), cut=at(10))
    sink.flush()
    assert floor(path) == us("9:00")
    sink.sendRowtimeBound(when("11:00"))
    sink.flush()
    assert floor(path) == us("11:00")


def test_a_producer_that_joins_counts_with_the_streams_bound_at_any_offset(path: str) -> None:
    first = opened(path, "first")
    first.sendRowtimeBound(when("10:00"), cut=at(10))
    first.flush()
    second = opened(path, "second")
    assert second.getRowtimeBound() == rt.RowtimeBound(when("10:00"))
    second.sendRowtimeBound(when("12:00"), cut=at(0, 7))
    second.flush()
    first.sendRowtimeBound(when("12:00"), cut=at(20))
    first.flush()
    assert floor(path, 20, 0) == us("10:00"), "the second has promised no more than it joined with"
    assert floor(path, 20, 7) == us("12:00")


def test_a_producer_leaves_where_its_last_rows_were_read(path: str) -> None:
    stays, leaves = opened(path, "stays"), opened(path, "leaves")
    stays.sendRowtimeBound(when("12:00"))
    leaves.sendRowtimeBound(when("10:00"), cut=at(10))
    stays.flush()
    leaves.close(cut=at(30))
    assert rt.describeStream(path).bound == rt.RowtimeBound(when("12:00"))
    assert [floor(path, end) for end in (0, 10, 29, 30)] == [None, us("10:00"), us("10:00"), us("12:00")]


def test_a_producer_that_leaves_without_a_cut_leaves_at_its_last_one(path: str) -> None:
    stays, leaves = opened(path, "stays"), opened(path, "leaves")
    stays.sendRowtimeBound(when("12:00"))
    stays.flush()
    leaves.sendRowtimeBound(when("10:00"), cut=at(10))
    leaves.close()
    assert [floor(path, end) for end in (9, 10)] == [None, us("12:00")]


@pytest.mark.parametrize("cut", [None, at(30)])
def test_a_complete_producer_ends_behind_its_last_rows(path: str, cut: Any) -> None:
    sink = opened(path)
    sink.sendRowtimeBound(when("10:00"), cut=at(20))
    sink.close(complete=True, cut=cut)
    end = 20 if cut is None else 30
    assert rt.describeStream(path).bound == rt.RowtimeBound.END
    assert floor(path, 19) is None
    assert floor(path, end) == rt.RowtimeBound.END.floor
    assert cut is None or floor(path, end - 1) == us("10:00")


def test_a_cut_never_goes_back_also_after_a_restart(path: str) -> None:
    sink = opened(path)
    sink.sendRowtimeBound(when("10:00"), cut={"orders": {0: 10, 1: 5}}, topicIds={"orders": "x"})
    sink.sendRowtimeBound(when("10:10"), cut={"orders": {0: 12}})
    sink.flush()
    again = opened(path)
    for cut in (at(11), at(12, 4)):
        with pytest.raises(rt.CutRegressionError):
            again.sendRowtimeBound(when("11:00"), cut=cut)
        with pytest.raises(rt.CutRegressionError):
            again.close(cut=cut)
    with pytest.raises(rt.KafkaTopicError):
        again.sendRowtimeBound(when("11:00"), cut=at(50, 50), topicIds={"orders": "y"})
    assert again.getRowtimeBound() == rt.RowtimeBound(when("10:10")), "a call that raises has taken nothing"
    again.sendRowtimeBound(when("11:00"), cut={"orders": {0: 13}})
    again.flush()
    assert floor(path, 13, 4) is None, "a partition that is left out stays where it was"
    assert floor(path, 13, 5) == us("11:00")


def test_only_what_moved_is_stored_and_now_and_then_the_whole(path: str) -> None:
    sink = opened(path)
    sink.sendRowtimeBound(when("10:00"), cut=at(1, 1, 1, 1))
    for minute in range(1, 9):
        sink.sendRowtimeBound(when(f"10:0{minute}"), cut=at(1, 1, 1 + minute, 1))
    sink.flush()
    cuts = [one.cut for one in logged(path)]
    assert [cut.partitions for cut in cuts if cut] == [4, 1, 1, 1, 4, 1, 1, 1, 4]
    with open_store(path) as store:
        assert len(store.last_cuts("app")) == 1
        assert store.last_cuts("nobody") == []
    assert floor(path, 1, 1, 8, 1) == us("10:07")


def test_a_bound_that_is_no_news_stores_nothing(path: str) -> None:
    sink = opened(path)
    sink.sendRowtimeBound(when("10:00"), cut=at(10))
    sink.sendRowtimeBound(when("10:00"), cut=at(20))
    sink.flush()
    assert [one.cut.offsets for one in logged(path) if one.cut] == [at(10)]


@pytest.mark.parametrize(
    ("settings", "options", "says"),
    [
        ({"maxLag": "1 hour"}, {}, "maxLag"),
        ({"boundsBeforeRows": False}, {}, "boundsBeforeRows=False"),
        ({}, {"lateness": "1 minute"}, "lateness"),
        ({}, {"kSort": 3}, "kSort"),
    ],
)
def test_streams_and_sinks_that_take_no_cuts(settings: Any, options: Any, says: str) -> None:
    sink = opened(new_stream(**settings), **options)
    for call in (lambda: sink.sendRowtimeBound(when("10:00"), cut=at(1)), lambda: sink.close(cut=at(1))):
        with pytest.raises(rt.InvalidOptionError, match=says):
            call()
    sink.sendRowtimeBound(when("10:00"))
    sink.close()


def test_a_bound_of_one_key_takes_no_cut() -> None:
    path = f"memory://sink-cuts-{next(NUMBERS)}"
    rt.createStream(path, "rowtime TIMESTAMP NOT NULL, device STRING")
    sink = opened(path, inOrderPer="device")
    with pytest.raises(rt.InvalidOptionError, match="not both"):
        sink.sendRowtimeBound(when("10:00"), key="a", cut=at(1))
    with pytest.raises(rt.InvalidOptionError, match="inOrderPer"):
        sink.sendRowtimeBound(when("10:00"), cut=at(1))


def test_rows_that_imply_bounds_are_refused_behind_a_cut(path: str) -> None:
    sink = opened(path)
    sink.sendRow((when("9:00"),))
    sink.sendRowtimeBound(when("10:00"), cut=at(10))
    for call in (lambda: sink.sendRow((when("11:00"),)), lambda: sink.sendRows([(when("11:00"),)])):
        with pytest.raises(rt.InvalidOptionError, match="rowsImplyBounds=False"):
            call()
    sink.flush()
    assert floor(path) == us("9:00"), "the row was before the first cut, and holds for the whole topic"
    assert floor(path, 10) == us("10:00")


def test_a_stream_with_cuts_may_have_rows(path: str) -> None:
    sink = opened(path, rowsImplyBounds=False)
    sink.sendRowtimeBound(when("10:00"), cut=at(10))
    sink.sendRow((when("11:30"),))
    sink.sendRowtimeBound(when("11:00"), cut=at(20))
    sink.flush()
    assert [floor(path, end) for end in (0, 10, 20)] == [None, us("10:00"), us("11:00")]
    assert rt.describeStream(path).rows == 1


def test_a_failed_close_can_be_repeated(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sink = opened(path)
    sink.sendRowtimeBound(when("10:00"), cut=at(10))
    leave = sink._store.leave
    calls = iter([rt.StoreUnavailableError("full")])

    def failing(_: Any, *arguments: Any, **session: Any) -> None:
        for error in calls:
            raise error
        leave(*arguments, **session)

    monkeypatch.setattr(type(sink._store), "leave", failing)
    with pytest.raises(rt.StoreUnavailableError):
        sink.close(cut=at(30))
    sink.close(cut=at(30))
    assert [one.cut.offsets for one in logged(path) if one.cut] == [at(10), at(30)]


def test_a_row_of_an_idle_producer_is_judged_by_the_bound_that_has_passed_it() -> None:
    """Its row goes into a topic, so no commit would find out that it is late."""
    clock, path = HandClock(), new_stream(idleTimeout="1 hour")
    open_store(path).now = clock
    quiet, busy = new_sink(path, "quiet", now=clock), new_sink(path, "busy", now=clock)
    quiet.sendRowtimeBound(when("9:00"), cut=at(1))
    assert quiet.requireInTime(when("9:30")) == us("9:00")
    for illegal in (-5, 1 << 60):
        with pytest.raises(rt.InvalidOptionError, match="cannot be a rowtime"):
            quiet.requireInTime(illegal)
    clock.advance(HOUR + MINUTE)
    busy.sendRowtimeBound(when("10:00"), cut=at(2))
    assert rt.describeStream(path).bound == rt.RowtimeBound(when("10:00"))
    with pytest.raises(rt.LateRowError):
        quiet.requireInTime(when("9:30"))
    assert quiet.requireInTime(when("10:00")) == us("10:00")


def test_describe_shows_up_to_where_bounds_reach(path: str) -> None:
    with opened(path) as sink:
        sink.sendRowtimeBound(when("10:00"), cut={"orders": {0: 4711, 1: 4690}})
        sink.sendRowtimeBound(when("11:00"), cut={"orders": {0: 4800}, "returns": {0: 3}})
    opened(path, "other").close()
    found = {producer.name: producer.cut for producer in rt.describeStream(path).producers}
    assert found == {"app": {"orders": {0: 4800, 1: 4690}, "returns": {0: 3}}, "other": None}
    shown = CliRunner().invoke(main, ["describe", path]).output
    assert "bounds up to orders 0: 4800, 1: 4690; returns 0: 3" in shown
