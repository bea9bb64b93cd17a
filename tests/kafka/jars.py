"""The jars of Apache Kafka's broker and of Spark's Kafka source; see scripts/mavenjars.py for where they are kept.

    python -m tests.kafka.jars          fetches both; says what is missing, and why

Tests fetch nothing that is there already. Only the command asks again for PySpark's own version of the source where the
tests use SPARK_KAFKA_NEWEST.
"""

import sys
from pathlib import Path

from scripts.mavenjars import MissingJarsError, dependency, fetched, kept

KAFKA = "4.1.1"
SPARK_KAFKA_NEWEST = "4.2.0"
"""The newest version of Spark's Kafka source in Maven Central; it is tried where PySpark's own version is not there."""
_IN_PYSPARK = ("org.apache.hadoop", "org.scala-lang", "org.scala-lang.modules", "org.slf4j", "org.lz4", "at.yawk.lz4")
_IN_PYSPARK += ("org.xerial.snappy", "com.github.luben", "com.google.code.findbugs")


def broker_jars() -> Path:
    """The folder with the jars of the broker."""
    logging = dependency("org.slf4j", "slf4j-simple", "1.7.36")
    return fetched(f"kafka-{KAFKA}", dependency("org.apache.kafka", "kafka_2.13", KAFKA) + logging)


def spark_jars() -> str:
    """The jars of Spark's Kafka source as a list with commas, for ``spark.jars``."""
    from pyspark import __version__

    there = (kept(_name(version)) for version in (__version__, SPARK_KAFKA_NEWEST))
    folder = next(filter(Path.is_dir, there), None) or _fetched_for(__version__)
    return ",".join(str(jar) for jar in sorted(folder.glob("*.jar")) if "spark-tags" not in jar.name)


def _fetched_for(pyspark: str) -> Path:
    """The folder of PySpark's own version; of the newest one if there is no such version."""
    try:
        return _spark_jars(pyspark)
    except MissingJarsError:
        return _spark_jars(SPARK_KAFKA_NEWEST)


def _spark_jars(version: str) -> Path:
    source = dependency("org.apache.spark", "spark-sql-kafka-0-10_2.13", version, _IN_PYSPARK)
    return fetched(_name(version), source)


def _name(version: str) -> str:
    return f"spark-kafka-{version}"


if __name__ == "__main__":
    from pyspark import __version__

    try:
        print(broker_jars(), _fetched_for(__version__), sep="\n")
    except MissingJarsError as missing:
        sys.exit(f"The tests with Kafka are skipped: {missing}")
