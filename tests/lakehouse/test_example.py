"""The examples with Delta tables run as they stand, and print what they say that they print."""

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import pytest

from tests.tables.jars import table_jars
from tests.test_examples import PIPELINES, output_of, printed, promised

__all__ = ["printed"]


def test_18_bronze_silver_gold(spark: Any, printed: Callable[..., str]) -> None:
    assert printed("18_bronze_silver_gold.py", table_jars("delta")) == promised("18_bronze_silver_gold.py")


@pytest.mark.long
@pytest.mark.usefixtures("spark")
@pytest.mark.skipif(any(find_spec(name) is None for name in PIPELINES), reason=f"pipelines need {PIPELINES}")
def test_19_tables_in_a_pipeline() -> None:
    example = "19_tables_in_a_pipeline.py"
    assert output_of(example, table_jars("delta"), SPARK_TESTING="1") == promised(example)
