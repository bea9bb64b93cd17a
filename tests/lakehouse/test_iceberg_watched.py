"""Bounds of Iceberg tables in whose snapshots nobody writes any, by the bounds of columns in their manifests."""

from typing import Any

import pytest

import spark_rowtime as rt
from tests.lakehouse.iceberg import IcebergOrders
from tests.lakehouse.orders import hourly, late
from tests.lakehouse.test_watched_tables import (
    ELEVEN,
    LATENESS,
    floors,
    lost,
    test_a_commit_counts_once_it_is_read_entirely,
    test_a_time_that_is_computed_is_refused,
    test_a_window_closes_once_a_commit_has_a_row_that_is_later_by_the_lateness,
    test_files_without_statistics_move_nothing,
    test_rows_below_it_are_late_and_kept,
    test_rows_that_the_stream_does_not_read_move_nothing,
    watched,
)

pytestmark = pytest.mark.night

__all__ = [
    "test_a_commit_counts_once_it_is_read_entirely",
    "test_a_time_that_is_computed_is_refused",
    "test_a_window_closes_once_a_commit_has_a_row_that_is_later_by_the_lateness",
    "test_files_without_statistics_move_nothing",
    "test_rows_below_it_are_late_and_kept",
    "test_rows_that_the_stream_does_not_read_move_nothing",
]


@pytest.fixture
def orders(iceberg: IcebergOrders) -> IcebergOrders:
    """What the tests of Delta tables run over here."""
    return iceberg


def test_a_batch_that_runs_again_has_its_floor(orders: IcebergOrders) -> None:
    """And goes on with it, in the next run and where all snapshots that were read have expired."""
    before = lost(orders)
    orders.call("rewrite_data_files", "options => map('min-input-files', '2')")
    orders.put(("11:15", "a"))
    with orders.observed(hourly(watched(orders))) as query:
        query.step()
        assert (query.batches[before.batch], query.promises[before.batch]) == (before.rows, before.promised)
        assert set(floors(query)[len(before.floors) :]) == {before.floors[-1]}, (
            "earlier rows, and a compaction, move nothing"
        )
        assert sum(late(query).values()) == 1
    orders.expire()
    with orders.observed(hourly(watched(orders))) as query:
        orders.put(("11:00", "late"), ("12:30", "a"))
        assert query.step() == [(ELEVEN, "a", 2)]
        assert sum(late(query).values()) == 1


def test_the_floor_is_the_same_however_batches_are_cut(orders: IcebergOrders) -> None:
    for clock in ("10:00", "11:00", "10:20", "12:00"):
        orders.put((clock, "a"))
    limits: tuple[dict[str, Any], ...] = ({}, {"maxFilesPerTrigger": 1}, {"maxFilesPerTrigger": 3})
    for number, limit in enumerate(limits):
        with orders.observed(watched(orders, **limit), f"limit{number}") as query:
            query.step()
            assert query.promised == {"ts": "11:30"}
            assert floors(query)[-1] == 90
            assert sum(late(query).values()) == (1 if limit == {"maxFilesPerTrigger": 1} else 0)


def test_times_follow_their_column_to_another_name(orders: IcebergOrders, spark: Any) -> None:
    orders.put(("10:10", "a"))
    orders.sql("ALTER TABLE ORDERS RENAME COLUMN ts TO at")
    frame = rt.punctuate(spark.readStream.table(orders.path), "at", watch=LATENESS)
    with orders.observed(frame) as query:
        assert query.step() == [("10:10", "a")]
        assert query.promised == {"at": "09:40"}
