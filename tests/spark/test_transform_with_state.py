"""transformWithState over a rowtime stream: each kind of state, timers, what is shown, across a restart."""

from typing import Any

import pytest
from pyspark.sql import functions as F

from tests.spark.observed_query import Observed, micros
from tests.sparksession import wait_for
from tests.streams import Pipe, at, bound, opened, send

pytest.importorskip("google.protobuf", reason="Python's transformWithState needs protobuf")

from tests.spark.declared_times import DECLARED, Moved, Reminders
from tests.spark.ledger import LEDGER, Forgetting, Ledger


def shown(clock: str) -> int:
    """The watermark of operators on raw times when the floor is at a clock time: the last ms below."""
    return micros(clock) // 1000 - 1


def ledger(pipe: Pipe, **more: Any) -> Any:
    grouped = pipe.read("orders").groupBy("k")
    return grouped.transformWithStateInPandas(Ledger(), LEDGER, "Append", "EventTime", **more)


def test_list_state_map_state_and_timers_across_a_restart(pipe: Pipe, tmp_path) -> None:
    orders = opened(pipe.create("orders", "k STRING"), "p")
    query = Observed(ledger(pipe), tmp_path)
    with query:
        send(orders, ("10:00", "b"), ("10:55", "a"), promise="10:56")
        assert query.step() == [
            ("a", "rows", 1, "10: 1", shown("10:56")),
            ("b", "rows", 1, "10: 1", shown("10:56")),
            ("b", "timer", 1, "10: 1", shown("10:56")),
        ], "the bound lies beyond the rows of its batch: a timer below it fires at once"
    with query:
        send(orders, ("11:01", "a"), ("11:02", "a"), promise="11:12")
        assert query.step() == [("a", "rows", 3, "10: 1, 11: 2", shown("11:12"))]
    again = query.lose_commit()
    with query:
        send(orders, promise="11:12:00.001")
        assert query.step() == [
            ("a", "rows", 3, "10: 1, 11: 2", shown("11:12")),
            ("a", "timer", 3, "10: 1, 11: 2", shown("11:12:00.001")),
        ]
        assert query.batches[again] == [("a", "rows", 3, "10: 1, 11: 2", shown("11:12"))], "run again it is the same"
        assert query.query.lastProgress.stateOperators[0].numRowsTotal == 0


@pytest.mark.long
def test_an_initial_state(pipe: Pipe, tmp_path) -> None:
    orders = opened(pipe.create("orders", "k STRING"), "p")
    before = pipe.spark.createDataFrame([(at("9:50"), "a"), (at("9:58"), "c")], "rowtime STRING, k STRING")
    before = before.selectExpr("CAST(rowtime AS TIMESTAMP) AS rowtime", "k")
    query = Observed(ledger(pipe, initialState=before.groupBy("k")), tmp_path)
    with query:
        send(orders, ("10:01", "a"), promise="10:05")
        assert query.step() == [("a", "rows", 2, "9: 1, 10: 1", shown("10:05"))]
    with query:
        send(orders, promise="10:20")
        assert query.step() == [
            ("a", "timer", 2, "9: 1, 10: 1", shown("10:20")),
            ("c", "timer", 1, "9: 1", shown("10:20")),
        ]


@pytest.mark.long
def test_state_that_lives_for_a_time_by_the_wall_clock(pipe: Pipe, tmp_path) -> None:
    """Spark has it for processing time only, where batches never end; the bound has no part in it."""
    orders = opened(pipe.create("orders", "k STRING"), "p")
    columns = "k STRING, long INT, short INT"
    grouped = pipe.read("orders").groupBy("k")
    query = Observed(grouped.transformWithStateInPandas(Forgetting(), columns, "Append", "ProcessingTime"), tmp_path)

    def has_come(row: tuple[Any, ...]) -> bool:
        return any(row in batch for batch in list(query.batches.values()))

    for clock, row, promise in [("10:00", ("a", 1, 1), "10:05"), ("10:06", ("a", 2, 1), "10:35")]:
        with query:
            send(orders, (clock, "a"), promise=promise)
            wait_for(lambda row=row: has_come(row), f"the row {row}")


def reminders(pipe: Pipe) -> Any:
    """Rows five minutes later, by timers; the function declares their time."""
    grouped = pipe.read("orders").groupBy("k")
    return grouped.transformWithStateInPandas(
        Reminders(), DECLARED, "Append", "EventTime", eventTimeColumnName="rowtime"
    )


@pytest.mark.long
def test_a_declared_time_carries_the_bound_to_windows_above_across_a_restart(pipe: Pipe, tmp_path) -> None:
    orders = opened(pipe.create("orders", "k STRING"), "p")
    counts = reminders(pipe).groupBy(F.window("rowtime", "10 minutes"), "k").count()
    query = Observed(counts.select("window.end", "k", "count"), tmp_path)
    with query:
        send(orders, ("10:01", "a"), ("10:04", "a"), ("10:06", "a"), promise="10:07")
        assert query.step() == []
        assert query.promised == {"end": "10:06:59.999001"}
    again = query.lose_commit()
    with query:
        send(orders, promise="10:10:00.001")
        assert query.step() == [("10:10", "a", 2)], "10:06 and 10:09; 10:11 is not due yet"
        assert query.promises[again] == {"end": "10:06:59.999001"}, "run again it promises the same"
        send(orders, ("10:12", "b"), promise="10:20:00.001")
        assert query.step() == [("10:20", "a", 1), ("10:20", "b", 1)]
        assert query.promised == {"end": "10:20:00.000001"}


@pytest.mark.long
def test_a_sink_gets_the_bound_of_a_declared_time(pipe: Pipe) -> None:
    orders = opened(pipe.create("orders", "k STRING"), "p")
    pipe.run(reminders(pipe))
    send(orders, ("10:01", "a"), ("10:04", "a"), promise="10:07")
    assert pipe.step() == [("10:06", "a")]
    assert pipe.bound == bound("10:06:59.999001")
    send(orders, promise="10:15")
    assert pipe.step() == [("10:09", "a")]


@pytest.mark.long
def test_a_declared_time_below_what_was_promised_fails_the_query(pipe: Pipe, tmp_path) -> None:
    orders = opened(pipe.create("orders", "k STRING"), "p")
    grouped = pipe.read("orders").groupBy("k")

    def moved(micros: int) -> Observed:
        rows = grouped.transformWithState(Moved(micros), DECLARED, "Append", "EventTime", eventTimeColumnName="rowtime")
        return Observed(rows, tmp_path / str(micros))

    send(orders, ("10:01", "a"), promise="10:07")
    queries = moved(999), moved(1000)
    for query in queries:
        with query:
            query.step()
            assert query.promised == {"rowtime": "10:06:59.999001"}
    send(orders, ("10:07", "moved"), promise="10:08")
    with queries[0] as query:
        assert query.step() == [("10:06:59.999001", "moved")], "exactly at the promise"
    for _ in range(2):
        with pytest.raises(Exception, match="EMITTING_ROWS_OLDER_THAN_WATERMARK") as failed, queries[1] as query:
            query.step()
        assert f"eventTime={micros('10:06:59.999')}" in str(failed.value)
        assert f"current_watermark_value={shown('10:07')}" in str(failed.value)
        assert query.promises.keys() == {0}, "started again it fails again, and the row never comes out"
