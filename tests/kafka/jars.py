"""The jars of Apache Kafka's broker and of Spark's Kafka source; see scripts/mavenjars.py for where they are kept.

    python -m tests.kafka.jars          fetches both; says what is missing, and why

Tests fetch nothing that is there already.
"""

import sys
from pathlib import Path

from scripts.mavenjars import MissingJarsError, dependency, fetched

KAFKA = "4.1.1"
SPARK_KAFKA = {
    "4.0": ("4.0.0", "3.9.0", "2.12.0"),
    "4.1": ("4.1.1", "3.9.1", "2.12.1"),
    "4.2": ("4.2.0", "3.9.2", "2.13.1"),
    "4.3": ("4.2.0", "3.9.2", "2.13.1"),
}
"""Spark's Kafka source in Maven Central, with Kafka's client and the pool that it names, by minor version of PySpark.
There is none for 4.3 yet.
"""
_ALL = ("*",)


def broker_jars() -> Path:
    """The folder with the jars of the broker."""
    logging = dependency("org.slf4j", "slf4j-simple", "1.7.36")
    return fetched(f"kafka-{KAFKA}", dependency("org.apache.kafka", "kafka_2.13", KAFKA) + logging)


def spark_jars() -> str:
    """The jars of Spark's Kafka source as a list with commas, for ``spark.jars``. PySpark has what else they need."""
    from pyspark import __version__

    source, client, pool = SPARK_KAFKA[".".join(__version__.split(".")[:2])]
    # Each by itself: Maven would look for what they need in a mirror that Spark's own POM names.
    jars = [
        *(("org.apache.spark", f"spark-{name}-kafka-0-10_2.13", source) for name in ("sql", "token-provider")),
        ("org.apache.kafka", "kafka-clients", client),
        ("org.apache.commons", "commons-pool2", pool),
    ]
    folder = fetched(f"spark-kafka-{source}", "".join(dependency(*jar, without=_ALL) for jar in jars))
    return ",".join(str(jar) for jar in sorted(folder.glob("*.jar")) if "spark-tags" not in jar.name)


if __name__ == "__main__":
    try:
        print(broker_jars(), spark_jars(), sep="\n")
    except MissingJarsError as missing:
        sys.exit(f"The tests with Kafka are skipped: {missing}")
