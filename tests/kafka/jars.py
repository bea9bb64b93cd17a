"""The jars of Apache Kafka's broker and of Spark's Kafka source, fetched once with Maven and kept outside of the tree.

    python -m tests.kafka.jars          fetches both; says what is missing, and why

ROWTIME_JARS names another folder than ~/.cache/spark-rowtime/jars. Tests fetch nothing that is there already. Only the
command asks again for PySpark's own version of the source where the tests use SPARK_KAFKA_NEWEST.
"""

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

KAFKA = "4.1.1"
SPARK_KAFKA_NEWEST = "4.2.0"
"""The newest version of Spark's Kafka source in Maven Central; it is tried where PySpark's own version is not there."""
FETCH_SECONDS = 300.0
"""How long Maven may take for one set of jars."""
NO_MAVEN = (
    "Apache Kafka's jars are not in {folder}, and there is no mvn to fetch them: install Maven, for example maven"
)
_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
_PROJECT = (
    '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion><groupId>rowtime</groupId>'
    "<artifactId>jars</artifactId><version>1</version><dependencies>{dependencies}</dependencies></project>"
)
_DEPENDENCY = (
    "<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>"
    "<exclusions>{exclusions}</exclusions></dependency>"
)
_EXCLUSION = "<exclusion><groupId>{group}</groupId><artifactId>*</artifactId></exclusion>"
_IN_PYSPARK = ("org.apache.hadoop", "org.scala-lang", "org.scala-lang.modules", "org.slf4j", "org.lz4", "at.yawk.lz4")
_IN_PYSPARK += ("org.xerial.snappy", "com.github.luben", "com.google.code.findbugs")


class MissingJarsError(Exception):
    """Why there are no jars. The tests that need them are skipped with this reason."""


def broker_jars() -> Path:
    """The folder with the jars of the broker."""
    logging = _dependency("org.slf4j", "slf4j-simple", "1.7.36")
    return _fetched(f"kafka-{KAFKA}", _dependency("org.apache.kafka", "kafka_2.13", KAFKA) + logging)


def spark_jars() -> str:
    """The jars of Spark's Kafka source as a list with commas, for ``spark.jars``."""
    from pyspark import __version__

    there = (_root() / _name(version) for version in (__version__, SPARK_KAFKA_NEWEST))
    folder = next(filter(Path.is_dir, there), None) or _fetched_for(__version__)
    return ",".join(str(jar) for jar in sorted(folder.glob("*.jar")) if "spark-tags" not in jar.name)


def _fetched_for(pyspark: str) -> Path:
    """The folder of PySpark's own version; of the newest one if there is no such version."""
    try:
        return _spark_jars(pyspark)
    except MissingJarsError:
        return _spark_jars(SPARK_KAFKA_NEWEST)


def _spark_jars(version: str) -> Path:
    source = _dependency("org.apache.spark", "spark-sql-kafka-0-10_2.13", version, _IN_PYSPARK)
    return _fetched(_name(version), source)


def _name(version: str) -> str:
    return f"spark-kafka-{version}"


def _root() -> Path:
    return Path(os.environ.get("ROWTIME_JARS") or Path.home() / ".cache" / "spark-rowtime" / "jars")


def _dependency(group: str, artifact: str, version: str, without: tuple[str, ...] = ()) -> str:
    exclusions = "".join(_EXCLUSION.format(group=name) for name in without)
    return _DEPENDENCY.format(group=group, artifact=artifact, version=version, exclusions=exclusions)


def _fetched(name: str, dependencies: str) -> Path:
    """The folder of these jars. One process fetches at a time; a folder that is there is whole."""
    root = _root()
    root.mkdir(parents=True, exist_ok=True)
    with (root / "lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (root / name).is_dir():
            _fetch(root, name, dependencies)
    return root / name


def _fetch(root: Path, name: str, dependencies: str) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise MissingJarsError(NO_MAVEN.format(folder=root))
    with tempfile.TemporaryDirectory(dir=root) as scratch:
        project, jars = Path(scratch) / "pom.xml", Path(scratch) / "jars"
        project.write_text(_PROJECT.format(dependencies=dependencies))
        command = [maven, "-q", "-B", "-ntp", "-f", project, _PLUGIN, f"-DoutputDirectory={jars}"]
        _run([str(part) for part in [*command, "-DincludeScope=runtime"]], name)
        jars.rename(root / name)


def _run(command: list[str], name: str) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=FETCH_SECONDS)
    except subprocess.TimeoutExpired as error:
        raise MissingJarsError(f"Maven has not fetched {name} within {FETCH_SECONDS:.0f} s") from error
    if done.returncode:
        said = next((line for line in done.stdout.splitlines() if "ERROR" in line), done.stderr[-500:])
        raise MissingJarsError(f"Maven cannot fetch {name}: {said}")


if __name__ == "__main__":
    from pyspark import __version__

    try:
        print(broker_jars(), _fetched_for(__version__), sep="\n")
    except MissingJarsError as missing:
        sys.exit(f"The tests with Kafka are skipped: {missing}")
