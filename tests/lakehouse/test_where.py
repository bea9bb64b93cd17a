"""``rowtime_in_time`` in a WHERE: alone, or with other conditions by AND. Anywhere else it is refused."""

import pytest

from tests.lakehouse.orders import Orders, late


@pytest.mark.parametrize(
    "condition",
    [
        "rowtime_in_time(ts) AND k = 'a'",
        "k = 'a' AND rowtime_in_time(ts)",
        "k IS NOT NULL AND rowtime_in_time(ts) AND k = 'a'",
        "k IS NOT NULL AND (k = 'a' AND rowtime_in_time(ts))",
    ],
)
def test_other_conditions_come_before_it(orders: Orders, condition: str) -> None:
    """A late row that they leave out does not count."""
    orders.put(("10:10", "a"), ("10:20", "b"), bound="11:00")
    with orders.observed(orders.read().where(condition)) as query:
        assert query.step() == [("10:10", "a")]
        assert query.promised == {"ts": "11:00"}
        orders.put(("10:30", "a"), ("10:40", "b"), ("11:10", "a"), ("11:20", "b"))
        assert query.step() == [("11:10", "a")]
        assert late(query) == {0: 0, 1: 1}


def test_a_condition_with_and_may_leave_out_rows_without_a_time(orders: Orders) -> None:
    orders.put(("10:10", "a"), bound="11:00")
    times = orders.read().selectExpr("nullif(ts, TIMESTAMP'2006-09-11 10:10:00') AS ts", "k")
    with orders.observed(times.where("rowtime_in_time(ts) AND ts IS NOT NULL")) as query:
        assert query.step() == []
        assert query.promised == {"ts": "11:00"}


@pytest.mark.parametrize(
    "form",
    [
        "SELECT * FROM orders WHERE NOT rowtime_in_time(ts)",
        "SELECT * FROM orders WHERE k = 'a' OR rowtime_in_time(ts)",
        "SELECT * FROM orders WHERE k = 'a' AND (k = 'b' OR rowtime_in_time(ts))",
        "SELECT ts, rowtime_in_time(ts) AS now FROM orders",
        "SELECT count(*) FROM orders GROUP BY rowtime_in_time(ts)",
        "SELECT a.ts FROM orders a JOIN orders b ON a.k = b.k AND rowtime_in_time(a.ts)",
    ],
)
def test_elsewhere_it_is_refused(orders: Orders, form: str) -> None:
    orders.read().createOrReplaceTempView("orders")
    with pytest.raises(
        Exception, match=r"rowtime_in_time\(.*ts\) is a condition of a WHERE, alone or with others by AND"
    ):
        orders.spark.sql(form)


def test_another_mistake_is_said_as_spark_says_it(orders: Orders) -> None:
    with pytest.raises(Exception, match=r"UNRESOLVED_COLUMN.*nosuch"):
        orders.read().where("rowtime_in_time(ts) AND nosuch = 'a'")
