"""One broker, and a Spark session with Spark's own Kafka source. Without Kafka's jars or Java the tests are skipped."""

import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from tests.kafka.jars import broker_jars, spark_jars
from tests.mavenjars import MissingJarsError


@pytest.fixture(scope="session")
def kafka() -> Iterator[Any]:
    """One broker for all tests; a test creates topics of its own."""
    pytest.importorskip("confluent_kafka")
    from tests.kafka.broker import KafkaBroker

    if shutil.which("java") is None:
        pytest.skip("a broker of Apache Kafka needs Java")
    try:
        jars = broker_jars()
    except MissingJarsError as missing:
        pytest.skip(str(missing))
    broker = KafkaBroker(jars)
    yield broker
    broker.remove()


@pytest.fixture(scope="session")
def spark_kafka_jars() -> str:
    """The jars of Spark's Kafka source as a list with commas."""
    try:
        return spark_jars()
    except MissingJarsError as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="session")
def spark(spark_kafka_jars: str) -> Iterator[Any]:
    """The session of the tests, with Spark's Kafka source. It needs a process without another session."""
    from tests.sparksession import make_session

    session = make_session(
        **{"spark.jars": spark_kafka_jars, "spark.rowtime.adapters": "spark_rowtime.kafka:KafkaFeed"}
    )
    yield session
    session.stop()


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Prints what the cases of law 7 contained."""
    from tests.law7.statistics import show

    show(terminalreporter, config, "law 7 beside topics")
