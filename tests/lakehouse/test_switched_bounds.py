"""Queries over Delta tables that are started again with the other kind of bounds: derived, or in the commits."""

from collections.abc import Callable

import pytest
from pyspark.sql import DataFrame

from tests.lakehouse.orders import Orders
from tests.lakehouse.test_set_back import refused
from tests.lakehouse.test_watched_tables import watched

pytestmark = pytest.mark.night

Reads = Callable[[Orders], DataFrame]


def committed(orders: Orders) -> DataFrame:
    """The rows with the bounds in the commits."""
    return orders.rows()


BOTH = pytest.mark.parametrize(
    ("before", "after"), [(watched, committed), (committed, watched)], ids=["to_commits", "to_watch"]
)


def begun(orders: Orders, reads: Reads, bound: str | None) -> None:
    """A run of a query over a table with one commit."""
    orders.put(("10:10", "a"), bound=bound)
    with orders.observed(reads(orders)) as query:
        assert query.step() == [("10:10", "a")]


@BOTH
def test_refused_where_both_have_a_bound(orders: Orders, before: Reads, after: Reads) -> None:
    """A run of the former kind goes on behind the refusal."""
    begun(orders, before, "10:00")
    with orders.observed(after(orders)) as query:
        refused(query, "This query has run with bounds that were", "new checkpointLocation")
    orders.put(("10:40", "b"), bound="10:30")
    with orders.observed(before(orders)) as query:
        assert query.step() == [("10:40", "b")]
        assert query.promised == {"ts": "10:10" if before is watched else "10:30"}


def test_refused_where_the_commits_have_none(orders: Orders) -> None:
    begun(orders, watched, None)
    with orders.observed(committed(orders)) as query:
        refused(query, "derived (watch), and is started again with those in the table's commits")


@BOTH
def test_refused_before_a_batch_that_runs_again(orders: Orders, before: Reads, after: Reads) -> None:
    begun(orders, before, "10:00")
    orders.put(("10:40", "b"), bound="10:30")
    with orders.observed(before(orders)) as query:
        query.step()
    query.lose_commit()
    with orders.observed(after(orders)) as query:
        refused(query, "This query has run with bounds that were")
        assert not query.batches


def test_goes_on_where_there_was_no_bound_yet(orders: Orders) -> None:
    begun(orders, committed, None)
    with orders.observed(watched(orders)) as query:
        orders.put(("10:40", "b"))
        assert query.step() == [("10:40", "b")]
        assert query.promised == {"ts": "10:10"}


def test_goes_on_where_no_time_was_known(orders: Orders) -> None:
    """The other way round: without statistics a watch has no bound."""
    orders.keep_statistics(of_time=False)
    orders.sql("INSERT INTO ORDERS VALUES (TIMESTAMP'2006-09-11 10:10:00', 'a')")
    with orders.observed(watched(orders)) as query:
        assert query.step() == [("10:10", "a")]
    orders.put(("10:40", "b"), bound="10:30")
    with orders.observed(committed(orders)) as query:
        assert query.step() == [("10:40", "b")]
        assert query.promised == {"ts": "10:30"}
