"""The jars with which Spark reads Delta tables; fetched and kept as those of Spark's Kafka source."""

from pyspark import __version__

from scripts.mavenjars import MissingJarsError, dependency, fetched

SPARKS = ("4.0", "4.1", "4.2")
"""The minor versions of Spark for which Delta Lake has a jar."""
DELTA = "4.4.0"
"""The version of Delta Lake."""
_IN_SPARK = ("org.apache.spark", "org.scala-lang", "org.slf4j", "org.apache.hadoop", "org.apache.parquet")
_IN_SPARK += ("org.apache.logging.log4j", "com.fasterxml.jackson.core", "com.github.luben", "org.xerial.snappy")


def table_jars(kind: str) -> str:
    """The jars for a format as a list with commas, for ``spark.jars``; Parquet needs none."""
    if kind == "parquet":
        return ""
    minor = ".".join(__version__.split(".")[:2])
    if minor not in SPARKS:
        raise MissingJarsError(
            f"delta-spark {DELTA} is for Spark {', '.join(SPARKS)}, not for {__version__}: 4.3.0 lacks the LogicalRDD "
            "that it was compiled with"
        )
    artifact = f"delta-spark_{minor}_2.13"
    folder = fetched(f"{artifact}-{DELTA}", dependency("io.delta", artifact, DELTA, without=_IN_SPARK))
    return ",".join(str(jar) for jar in sorted(folder.glob("*.jar")))


__all__ = ["MissingJarsError", "table_jars"]
