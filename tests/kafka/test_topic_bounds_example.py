"""The examples with bounds beside a topic run as they stand, and print what they say that they print."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.test_examples import printed, promised

__all__ = ["printed"]


def test_13_topic_bounds(kafka: Any, spark_kafka_jars: str, printed: Callable[..., str]) -> None:
    assert printed("13_topic_bounds.py", kafka.bootstrap, spark_kafka_jars) == promised("13_topic_bounds.py")


@pytest.mark.long
def test_17_one_line(kafka: Any, spark_kafka_jars: str, printed: Callable[..., str]) -> None:
    assert printed("17_one_line.py", kafka.bootstrap, spark_kafka_jars) == promised("17_one_line.py")
