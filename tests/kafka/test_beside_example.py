"""The example with bounds beside a topic runs as it stands, and prints what it says that it prints."""

from typing import Any

from tests.test_examples import output_of, promised


def test_13_beside_kafka(kafka: Any, spark_kafka_jars: str) -> None:
    assert output_of("13_beside_kafka.py", kafka.bootstrap, spark_kafka_jars) == promised("13_beside_kafka.py")
