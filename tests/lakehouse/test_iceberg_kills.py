"""The kills of test_chain_kills.py over Iceberg tables."""

import pytest

from tests.lakehouse.iceberg import IcebergOrders
from tests.lakehouse.kills import survive


@pytest.mark.long
def test_each_row_and_each_window_is_there_once(iceberg: IcebergOrders) -> None:
    survive(iceberg)
