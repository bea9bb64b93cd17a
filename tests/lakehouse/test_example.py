"""The example of bronze, silver and gold runs as it stands, and prints what it says that it prints."""

from collections.abc import Callable
from typing import Any

from tests.tables.jars import table_jars
from tests.test_examples import printed, promised

__all__ = ["printed"]


def test_18_bronze_silver_gold(spark: Any, printed: Callable[..., str]) -> None:
    assert printed("18_bronze_silver_gold.py", table_jars("delta")) == promised("18_bronze_silver_gold.py")
