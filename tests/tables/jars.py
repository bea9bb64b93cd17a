"""The jars with which Spark reads Delta tables; fetched and kept as those of Spark's Kafka source."""

from pyspark import __version__

from scripts.mavenjars import MissingJarsError, dependency, fetched

SPARK = "4.2"
"""The newest Spark that Delta Lake has been built for."""
DELTA = ("io.delta", f"delta-spark_{SPARK}_2.13", "4.4.0")
_IN_SPARK = ("org.apache.spark", "org.scala-lang", "org.slf4j", "org.apache.hadoop", "org.apache.parquet")
_IN_SPARK += ("org.apache.logging.log4j", "com.fasterxml.jackson.core", "com.github.luben", "org.xerial.snappy")


def table_jars(kind: str) -> str:
    """The jars for a format as a list with commas, for ``spark.jars``; Parquet needs none."""
    if kind == "parquet":
        return ""
    _, artifact, version = DELTA
    if not __version__.startswith(f"{SPARK}."):
        raise MissingJarsError(
            f"{artifact} {version} is not for Spark {__version__}: 4.3.0 lacks the LogicalRDD that it was compiled with"
        )
    folder = fetched(f"{artifact}-{version}", dependency(*DELTA, without=_IN_SPARK))
    return ",".join(str(jar) for jar in sorted(folder.glob("*.jar")))


__all__ = ["MissingJarsError", "table_jars"]
