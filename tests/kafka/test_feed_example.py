"""The example with a topic that is read into a stream runs as it stands, and prints what it says that it prints."""

from typing import Any

from tests.test_examples import output_of, promised


def test_15_kafka_in(kafka: Any) -> None:
    assert output_of("15_kafka_in.py", kafka.bootstrap) == promised("15_kafka_in.py")
