"""One broker, and a Spark session with Spark's own Kafka source. Without Kafka's jars or Java the tests are skipped."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from scripts.mavenjars import MissingJarsError
from tests.crash.conftest import pytest_terminal_summary as show_faults
from tests.crash.conftest import tally  # noqa: F401  (a fixture)
from tests.kafka.jars import broker_jars, spark_jars


@pytest.fixture(scope="session")
def kafka_jars() -> Path:
    """The folder with the jars of the broker."""
    pytest.importorskip("confluent_kafka")
    if shutil.which("java") is None:
        pytest.skip("a broker of Apache Kafka needs Java")
    try:
        return broker_jars()
    except MissingJarsError as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="session")
def kafka(kafka_jars: Path) -> Iterator[Any]:
    """One broker for all tests; a test creates topics of its own."""
    from tests.kafka.broker import KafkaBroker

    broker = KafkaBroker(kafka_jars)
    yield broker
    broker.remove()


@pytest.fixture(scope="module")
def two_brokers(kafka_jars: Path) -> Iterator[Any]:
    """A cluster of two brokers, with the same methods."""
    from tests.kafka.two_brokers import TwoBrokers

    cluster = TwoBrokers(kafka_jars)
    yield cluster
    cluster.remove()


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
    from tests.patience import wait_long_for_locks
    from tests.sparksession import make_session

    session = make_session(
        **{"spark.jars": spark_kafka_jars, "spark.rowtime.adapters": "spark_rowtime.kafka:KafkaFeed"}
    )
    with pytest.MonkeyPatch.context() as patched:
        wait_long_for_locks(patched.setitem)
        yield session
    session.stop()


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Prints the table of faults, and what the cases of law 7 contained."""
    from tests.law7.statistics import show

    show_faults(terminalreporter)
    show(terminalreporter, config, "law 7 beside topics")
