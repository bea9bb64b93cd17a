"""The example with bounds beside a topic runs as it stands, and prints what it says that it prints."""

from collections.abc import Callable
from typing import Any

from tests.test_examples import printed, promised

__all__ = ["printed"]


def test_13_beside_kafka(kafka: Any, spark_kafka_jars: str, printed: Callable[..., str]) -> None:
    assert printed("13_beside_kafka.py", kafka.bootstrap, spark_kafka_jars) == promised("13_beside_kafka.py")
