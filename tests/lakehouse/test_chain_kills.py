"""kill -9 of each query of a chain of three Delta tables: each row and each window once, and no bound before its rows.

One kill of each in `make test-night`; ``ROWTIME_KILLS=50`` has so many in all, at other moments with another
``ROWTIME_SEED``.
"""

import pytest

from tests.lakehouse.kills import survive
from tests.lakehouse.orders import Orders


@pytest.mark.night
def test_each_row_and_each_window_is_there_once(orders: Orders) -> None:
    survive(orders)
