"""The jars with which Spark reads Delta and Iceberg tables; fetched and kept as those of Spark's Kafka source."""

from pyspark import __version__

from scripts.mavenjars import MissingJarsError, dependency, fetched

SPARKS = ("4.0", "4.1", "4.2")
"""The minor versions of Spark for which Delta Lake has a jar."""
DELTA = "4.4.0"
"""The version of Delta Lake."""
ICEBERG = {"4.1": "1.12.0", "4.0": "1.11.0"}
"""The newest version of Iceberg for each minor version of Spark for which it has a jar."""
SQLITE = "3.50.3.0"
"""The version of the driver with which Spark opens the catalog of PyIceberg."""
_IN_SPARK = ("org.apache.spark", "org.scala-lang", "org.slf4j", "org.apache.hadoop", "org.apache.parquet")
_IN_SPARK += ("org.apache.logging.log4j", "com.fasterxml.jackson.core", "com.github.luben", "org.xerial.snappy")


def table_jars(kind: str) -> str:
    """The jars for a format as a list with commas, for ``spark.jars``; Parquet needs none."""
    minor = ".".join(__version__.split(".")[:2])
    return "" if kind == "parquet" else _list(*{"delta": _delta, "iceberg": _iceberg}[kind](minor))


def _delta(minor: str) -> tuple[str, str]:
    if minor not in SPARKS:
        raise MissingJarsError(
            f"delta-spark {DELTA} is for Spark {', '.join(SPARKS)}, not for {__version__}: 4.3.0 lacks the LogicalRDD "
            "that it was compiled with"
        )
    artifact = f"delta-spark_{minor}_2.13"
    return f"{artifact}-{DELTA}", dependency("io.delta", artifact, DELTA, without=_IN_SPARK)


def _iceberg(minor: str) -> tuple[str, str]:
    if minor not in ICEBERG:
        raise MissingJarsError(f"Iceberg has jars for Spark {', '.join(ICEBERG)}, not for {__version__}")
    artifact, version = f"iceberg-spark-runtime-{minor}_2.13", ICEBERG[minor]
    jars = dependency("org.apache.iceberg", artifact, version, without=_IN_SPARK)
    return f"{artifact}-{version}", jars + dependency("org.xerial", "sqlite-jdbc", SQLITE, without=_IN_SPARK)


def _list(name: str, dependencies: str) -> str:
    return ",".join(str(jar) for jar in sorted(fetched(name, dependencies).glob("*.jar")))


__all__ = ["MissingJarsError", "table_jars"]
