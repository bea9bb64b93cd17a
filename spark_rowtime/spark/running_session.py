"""Checks whether a Spark that already runs in this process has the extension, or can get it."""

from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark import SparkContext
from pyspark.sql import SparkSession

from spark_rowtime.errors import ShimMissingError

_EXTENSIONS = "spark.sql.extensions"


def check_running(extension: str) -> None:
    """Raises ShimMissingError if a builder can no longer add the extension to the Spark of this process."""
    jvm = SparkContext._jvm  # noqa: SLF001  (PySpark has no public name for it)
    if jvm is None:
        return
    if not _has_class(jvm, extension):
        raise ShimMissingError(
            "Spark was started in this process without spark-rowtime's jar. A JVM loads jars only when it starts, and "
            "spark.stop() does not end it. Start a new process (in a notebook, restart the kernel), and call "
            "rt.configure(SparkSession.builder) before the first SparkSession; for spark-submit, give it "
            f"--jars $(rowtime jar) --conf {_EXTENSIONS}={extension}.",
            extension=extension,
        )
    session = _session()
    if session is not None and extension not in _extensions(session):
        raise ShimMissingError(
            f"The running SparkSession was started with {_EXTENSIONS}={session.conf.get(_EXTENSIONS, None)!r}, without "
            f"{extension}, and getOrCreate would return that session. Call spark.stop() first, then "
            "rt.configure(SparkSession.builder).getOrCreate().",
            extension=extension,
        )


def _has_class(jvm: Any, name: str) -> bool:
    try:
        jvm.java.lang.Thread.currentThread().getContextClassLoader().loadClass(name)
    except Py4JJavaError:
        return False
    return True


def _session() -> SparkSession | None:
    """Returns the session that ``getOrCreate`` would return."""
    session = SparkSession._instantiatedSession  # noqa: SLF001  (getActiveSession knows those of this thread only)
    running = session is not None and session._sc._jsc is not None  # noqa: SLF001
    return session if running else None


def _extensions(session: SparkSession) -> list[str]:
    return [name.strip() for name in (session.conf.get(_EXTENSIONS, "") or "").split(",")]
