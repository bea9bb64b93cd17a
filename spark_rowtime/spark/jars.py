"""The jars with Spark's extension, one for each minor version of Spark; and whether PySpark is one that has a jar."""

from pathlib import Path

from spark_rowtime.errors import ShimMissingError
from spark_rowtime.types.extras import import_extra

VERSIONS = ("4.0", "4.1", "4.2", "4.3")
"""The versions of Spark that have a jar."""
_FOLDER = Path(__file__).resolve().parent.parent / "jars"


def check_pyspark() -> str:
    """Returns the version of PySpark.

    Raises:
        ExtraNotInstalledError: PySpark is not installed.
        ShimMissingError: It is older than the first version that has a jar.
    """
    version: str = import_extra("pyspark", "spark", "What runs in Spark").__version__
    if int(version.partition(".")[0]) < int(VERSIONS[0].partition(".")[0]):
        raise ShimMissingError(f"PySpark {_minor(version)} is too old: spark-rowtime is for Spark {_listed()}.")
    return version


def jar_path() -> Path:
    """Returns the jar for the PySpark that is installed.

    Raises:
        ShimMissingError: There is none for its version, or it was not built.
    """
    version = check_pyspark()
    if _minor(version) not in VERSIONS:
        raise ShimMissingError(
            f"There is no extension for Spark {_minor(version)}: PySpark {version} is installed, and spark-rowtime is "
            f"for Spark {_listed()}."
        )
    jar = _FOLDER / f"spark-rowtime_spark{_minor(version)}.jar"
    if not jar.exists():
        raise ShimMissingError(
            f"{jar} does not exist: this copy of spark-rowtime was not built for Spark {_minor(version)}. From a "
            "source tree, run 'python java-shim/build.py' (needs a JDK, 17 or later); otherwise install the wheel."
        )
    return jar


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])


def _listed() -> str:
    return ", ".join(VERSIONS)
