"""Queries over Iceberg tables that are started again with the other kind of bounds: derived, or in the snapshots."""

import pytest

from tests.lakehouse.iceberg import IcebergOrders
from tests.lakehouse.test_switched_bounds import (
    test_goes_on_where_no_time_was_known,
    test_goes_on_where_there_was_no_bound_yet,
    test_refused_before_a_batch_that_runs_again,
    test_refused_where_both_have_a_bound,
    test_refused_where_the_commits_have_none,
)

pytestmark = pytest.mark.night

__all__ = [
    "test_goes_on_where_no_time_was_known",
    "test_goes_on_where_there_was_no_bound_yet",
    "test_refused_before_a_batch_that_runs_again",
    "test_refused_where_both_have_a_bound",
    "test_refused_where_the_commits_have_none",
]


@pytest.fixture
def orders(iceberg: IcebergOrders) -> IcebergOrders:
    """What the tests of Delta tables run over here."""
    return iceberg
