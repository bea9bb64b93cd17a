"""The example runs against a real broker, and prints what it says."""

from typing import Any

from tests.test_examples import output_of, promised


def test_14_into_a_topic(kafka: Any) -> None:
    assert output_of("14_into_a_topic.py", kafka.bootstrap) == promised("14_into_a_topic.py")
