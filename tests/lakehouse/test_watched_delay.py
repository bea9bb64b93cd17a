"""Bounds of Delta tables in whose commits nobody writes any, by the times of the commits and a delay."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame

import spark_rowtime as rt
from tests.lakehouse.orders import Orders, hourly, late
from tests.lakehouse.test_watched_tables import ELEVEN, TEN, floors
from tests.lakehouse.timed import TimedOrders, millis

pytestmark = pytest.mark.night

BOTH = {"lateness": "30 minutes", "delay": "1 hour"}
DELAY = {"delay": "30 minutes"}
APPENDED = {"bounds": "append-time", "delay": "30 minutes"}


@pytest.fixture
def orders(spark: Any, tmp_path: Path) -> TimedOrders:
    return TimedOrders(spark, tmp_path)


def watched(orders: Orders, watch: dict[str, str], **options: Any) -> DataFrame:
    return rt.punctuate(orders.read(**options), "ts", watch=watch)


@pytest.mark.parametrize("watch", [BOTH, {"delay": "1 hour"}, {**APPENDED, "delay": "1 hour"}])
def test_the_last_window_closes_with_a_commit_without_rows(orders: TimedOrders, watch: dict[str, str]) -> None:
    orders.put_at("10:20", ("10:10", "a"))
    with orders.observed(hourly(watched(orders, watch))) as query:
        assert query.step() == []
        orders.put_at("11:59")
        assert query.step() == []
        orders.put_at("12:00")
        assert query.step() == [(TEN, "a", 1)]
        assert query.watermark == "11:00"


def test_of_lateness_and_delay_the_later_counts(orders: TimedOrders) -> None:
    orders.put_at("10:20", ("10:10", "a"))
    with orders.observed(watched(orders, BOTH)) as query:
        query.step()
        orders.put_at("11:00", ("10:15", "b"))
        query.step()
        orders.put_at("11:10", ("11:05", "c"))
        query.step()
        orders.put_at("11:34")
        query.step()
        assert floors(query) == [-20, 0, 35, 35]


def test_delay_alone_takes_the_rows_to_be_in_order(orders: TimedOrders) -> None:
    """As in a partition of a topic: the lateness is 0."""
    orders.put_at("10:20", ("10:10", "a"))
    with orders.observed(watched(orders, DELAY)) as query:
        query.step()
        orders.put_at("10:25", ("10:09", "x"), ("10:10", "b"))
        assert query.step() == [("10:10", "b")]
        orders.put_at("10:50")
        query.step()
        assert floors(query) == [10, 10, 20]


def test_rows_below_it_are_late_and_kept(orders: TimedOrders) -> None:
    frame = rt.punctuate(orders.read(), "ts", watch=APPENDED, rejected=orders.rejected)
    orders.put_at("11:00", ("10:50", "a"))
    with orders.observed(frame) as query:
        query.step()
        orders.put_at("11:05", ("10:29", "x"), ("10:30", "b"))
        assert query.step() == [("10:30", "b")]
        assert late(query) == {0: 0, 1: 1}
    assert [row.k for row in orders.kept().collect()] == ["x"]


def test_append_time_does_not_look_at_times_of_rows(orders: TimedOrders) -> None:
    orders.put_at("11:00", ("15:00", "a"))
    with orders.observed(watched(orders, APPENDED)) as query:
        query.step()
        assert query.promised == {"ts": "10:30"}


def test_append_time_is_there_for_a_time_that_is_computed(orders: TimedOrders) -> None:
    orders.put_at("10:20", ("10:10", "a"))
    sent = orders.read().selectExpr("ts - INTERVAL 5 MINUTES AS sent", "k").where("sent IS NOT NULL")
    with orders.observed(rt.punctuate(sent, "sent", watch=APPENDED)) as query:
        assert query.step() == [("10:05", "a")]
        assert query.promised == {"sent": "09:50"}
        orders.put_at("10:50", ("09:54", "x"), ("09:55", "b"))
        assert query.step() == [("09:50", "b")]
        assert query.promised == {"sent": "10:20"}


def test_a_commit_counts_once_it_is_read_entirely(orders: TimedOrders) -> None:
    """The writer is Spark, whose clock is that of today."""
    orders.put_at("10:20", ("10:00", "a"))
    times = ("10:40", "12:00", "11:50")
    rows = ", ".join(f"(TIMESTAMP'2006-09-11 {time}:00', '{k}')" for time, k in zip(times, "abc", strict=True))
    with orders.observed(watched(orders, APPENDED, maxFilesPerTrigger=1)) as query:
        query.step()
        orders.sql(f"INSERT INTO ORDERS SELECT /*+ REPARTITION_BY_RANGE(3, col2) */ * FROM VALUES {rows}")
        query.step()
        logged = floors(query)
        assert logged[-3:-1] == [-10, -10]
        assert logged[-1] not in (None, -10)
        assert set(late(query).values()) == {0}


def test_a_batch_that_runs_again_has_its_floor(orders: TimedOrders) -> None:
    """And the next run goes on with it, where no commit has come since."""
    orders.put_at("10:20", ("10:10", "a"))
    with orders.observed(hourly(watched(orders, BOTH))) as query:
        query.step()
        orders.put_at("12:10", ("12:00", "b"))
        assert query.step() == [(TEN, "a", 1)]
        before, logged = (query.batches[query.last], query.promised), floors(query)
    batch = query.lose_commit()
    with orders.observed(hourly(watched(orders, BOTH))) as query:
        query.step()
        assert (query.batches[batch], query.promises[batch]) == before
        assert floors(query) == logged
        orders.put_at("14:00", ("11:29", "x"), ("11:30", "c"))
        assert query.step() == [(ELEVEN, "c", 1), (("12:00", "13:00"), "b", 1)]
        assert sum(late(query).values()) == 1


def test_in_sql_the_delay_is_the_fifth_argument(orders: TimedOrders) -> None:
    orders.put_at("11:00", ("10:10", "a"))
    forms = {"'30 minutes', '1 hour'": "10:00", "NULL, '15 minutes'": "10:45", "'5 minutes', NULL": "10:05"}
    for number, (arguments, promised) in enumerate(forms.items()):
        rows = orders.read().where(f"rowtime_in_time(ts, NULL, NULL, {arguments})")
        with orders.observed(rows, f"form{number}") as query:
            query.step()
            assert query.promised == {"ts": promised}
    for wrong in ("NULL, '1 month'", "'1 hour', '1 hour', '1 hour'"):
        with pytest.raises(Exception, match="how long after its time it may be committed"):
            orders.observed(orders.read().where(f"rowtime_in_time(ts, NULL, NULL, {wrong})"), "wrong").__enter__()


@pytest.mark.parametrize(
    ("watch", "error"),
    [
        ({**BOTH, "maxAhead": "1 day", "every": "1 second"}, "and here every, maxAhead"),
        ({"bounds": "resolved"}, "bounds='resolved' is neither 'rows' nor 'append-time'"),
        ({**APPENDED, "lateness": "1 minute"}, "lateness is for bounds='rows'"),
        ({"bounds": "append-time"}, "delay must say how long"),
        ({"delay": "-1 minute"}, "delay"),
    ],
)
def test_what_cannot_be_declared_is_refused(orders: TimedOrders, watch: dict[str, str], error: str) -> None:
    with pytest.raises(rt.InvalidOptionError, match=error):
        watched(orders, watch)


# Of Delta alone, where the times of commits may go back, and may be missing.


def test_a_commit_without_a_time_moves_nothing(orders: TimedOrders) -> None:
    orders.put_at("10:20", ("10:10", "a"))
    with orders.observed(watched(orders, APPENDED)) as query:
        query.step()
        orders.put_saying(None, ("11:00", "b"))
        assert query.step() == [("11:00", "b")]
        orders.put_saying({"timestamp": "2006-09-11T12:00:00.000Z"}, ("11:00", "c"))
        orders.put_saying({"timestamp": millis("12:00") * 1000}, ("11:00", "d"))
        query.step()
        assert query.promised == {"ts": "09:50"}


def test_the_time_in_the_commit_counts_before_that_of_its_writer(orders: TimedOrders) -> None:
    orders.put_saying({"inCommitTimestamp": millis("10:20"), "timestamp": millis("12:00")}, ("10:10", "a"))
    with orders.observed(watched(orders, APPENDED)) as query:
        query.step()
        assert query.promised == {"ts": "09:50"}


def test_the_floor_is_the_same_however_batches_are_cut(orders: TimedOrders) -> None:
    """The clock of a writer is behind that of another one."""
    with orders.observed(watched(orders, APPENDED)) as one:
        one.step()
        orders.put_at("12:00", ("11:50", "a"))
        one.step()
        orders.put_at("11:00", ("11:40", "b"))
        one.step()
        assert floors(one)[-2:] == [90, 90]
    with orders.observed(watched(orders, APPENDED, startingVersion=0), "other") as other:
        other.step()
        assert floors(other)[-1] == 90


@pytest.mark.parametrize(
    "commit",
    [
        lambda orders: orders.sql("OPTIMIZE ORDERS"),
        lambda orders: orders.sql("ALTER TABLE ORDERS SET TBLPROPERTIES ('team' = 'shop')"),
        lambda orders: orders.put(),
    ],
    ids=["optimize", "properties", "no_rows"],
)
def test_each_commit_without_new_rows_moves_it(orders: TimedOrders, commit: Callable[[TimedOrders], None]) -> None:
    """By its writer's clock of today."""
    orders.put_at("10:20", ("10:10", "a"))
    orders.put_at("10:30", ("10:20", "a"))
    with orders.observed(hourly(watched(orders, BOTH))) as query:
        assert query.step() == []
        commit(orders)
        assert query.step() == [(TEN, "a", 2)]
        bound = orders.committed(3) - 60 * 60_000
        assert floors(query)[-1] == (bound - millis("10:00")) // 60_000


def test_append_time_is_there_for_a_table_with_column_mapping(orders: TimedOrders) -> None:
    orders.put_at("10:20", ("10:10", "a"))
    orders.sql("ALTER TABLE ORDERS SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    with orders.observed(hourly(watched(orders, APPENDED)), "appended") as query:
        assert query.step() == [(TEN, "a", 1)]
    mapped = orders.observed(watched(orders, BOTH), "both")
    with pytest.raises(StreamingQueryException, match="take the times of the commits alone"), mapped:
        mapped.step()


def test_a_log_that_says_other_times_now_changes_no_batch(orders: TimedOrders) -> None:
    """The floor is in the offset: it is not derived again, and does not fall."""
    orders.put_at("10:20", ("10:10", "a"))
    with orders.observed(watched(orders, APPENDED)) as query:
        query.step()
        version = orders.put_at("12:00", ("11:40", "b"))
        query.step()
        logged = floors(query)
    batch = query.lose_commit()
    orders.rewrite(version, {"timestamp": millis("15:00")})
    with orders.observed(watched(orders, APPENDED)) as query:
        query.step()
        assert query.promises[batch] == {"ts": "11:30"}
        orders.put_at("11:00", ("11:29", "x"), ("11:30", "c"))
        assert query.step() == [("11:30", "c")]
        assert floors(query) == [*logged, logged[-1]]
