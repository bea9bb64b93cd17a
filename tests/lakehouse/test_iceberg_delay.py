"""Bounds of Iceberg tables in whose snapshots nobody writes any, by the times of the snapshots and a delay."""

from pathlib import Path
from typing import Any

import pytest

from tests.lakehouse.iceberg import IcebergOrders
from tests.lakehouse.orders import hourly
from tests.lakehouse.test_watched_delay import (
    BOTH,
    test_a_batch_that_runs_again_has_its_floor,
    test_a_commit_counts_once_it_is_read_entirely,
    test_append_time_does_not_look_at_times_of_rows,
    test_append_time_is_there_for_a_time_that_is_computed,
    test_delay_alone_takes_the_rows_to_be_in_order,
    test_in_sql_the_delay_is_the_fifth_argument,
    test_of_lateness_and_delay_the_later_counts,
    test_rows_below_it_are_late_and_kept,
    test_the_last_window_closes_with_a_commit_without_rows,
    test_what_cannot_be_declared_is_refused,
    watched,
)
from tests.lakehouse.test_watched_tables import TEN, floors
from tests.lakehouse.timed import TimedIceberg

pytestmark = pytest.mark.night

__all__ = [
    "test_a_batch_that_runs_again_has_its_floor",
    "test_a_commit_counts_once_it_is_read_entirely",
    "test_append_time_does_not_look_at_times_of_rows",
    "test_append_time_is_there_for_a_time_that_is_computed",
    "test_delay_alone_takes_the_rows_to_be_in_order",
    "test_in_sql_the_delay_is_the_fifth_argument",
    "test_of_lateness_and_delay_the_later_counts",
    "test_rows_below_it_are_late_and_kept",
    "test_the_last_window_closes_with_a_commit_without_rows",
    "test_what_cannot_be_declared_is_refused",
]


@pytest.fixture
def orders(iceberg: IcebergOrders, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TimedIceberg:
    """What the tests of Delta tables run over here."""
    return TimedIceberg(spark, tmp_path, monkeypatch)


def test_a_compaction_moves_nothing_by_itself(orders: TimedIceberg) -> None:
    """A stream's offset does not reach it. A snapshot that appends nothing closes the window."""
    orders.put_at("10:20", ("10:10", "a"))
    orders.put_at("10:30", ("10:20", "a"))
    with orders.observed(hourly(watched(orders, BOTH))) as query:
        assert query.step() == []
        orders.call("rewrite_data_files", "options => map('min-input-files', '2')")
        assert query.step() == []
        assert floors(query)[-1] == -10
        orders.sql("INSERT INTO ORDERS SELECT * FROM ORDERS WHERE false")
        assert query.step() == [(TEN, "a", 2)]
