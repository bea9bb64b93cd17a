"""Adds the extension to a SparkSession that is built, and knows whether one that runs already has it."""

import os
from typing import Any, TypeVar

from py4j.protocol import Py4JJavaError
from pyspark import SparkContext
from pyspark.sql import SparkSession

from spark_rowtime.errors import InvalidOptionError, ShimMissingError
from spark_rowtime.spark.jars import jar_path
from spark_rowtime.spark.settings import said, suited
from spark_rowtime.spark.worker_python import set_python

EXTENSION = "sparkrowtime.RowtimeExtensions"
"""The class of the extension, for ``spark.sql.extensions``."""
EXTENSIONS = "spark.sql.extensions"

ADAPTERS, ADAPTERS_VARIABLE = "spark.rowtime.adapters", "ROWTIME_ADAPTERS"
"""The setting that lists the adapters that queries may host, as ``module:Class`` separated by commas; and the variable
of the JVM's environment from which the source's Python processes read that list."""

Builder = TypeVar("Builder")


def jarPath() -> str:
    """Returns the path of the jar with Spark's extension, for ``spark.jars`` or ``--jars``.

    There is one for each minor version of Spark. This is the one for the PySpark that is installed.

    Returns:
        An absolute path in the installed package.

    Raises:
        ShimMissingError: There is none for this PySpark; or it does not exist, because this copy of spark-rowtime was
            not built.
        ExtraNotInstalledError: PySpark is not installed.

    Example:
        ```python
        builder = SparkSession.builder.config("spark.jars", rt.jarPath())
        ```
    """
    return str(jar_path())


def configure(builder: Builder) -> Builder:
    """Adds the jar and the extension to ``SparkSession.builder``.

    It appends to ``spark.jars`` and ``spark.sql.extensions``, and overwrites no other setting, whether
    it was made on the builder, by spark-submit or in spark-defaults.conf. For a local master it also makes
    the settings that docs/performance.md describes, unless they are made already. Therefore set the master
    first. Settings that are made afterwards take precedence. The workers and the driver use this Python
    unless PYSPARK_PYTHON and PYSPARK_DRIVER_PYTHON name another. The workers of a local master import PySpark
    from where pip has installed it, not from Spark's archive.

    If ``spark.rowtime.adapters`` is set before the call, it lists the adapters that queries may host, as
    ``module:Class`` separated by commas. The list is stored in the environment of the JVM that is started
    next, where no SQL can change it.

    Args:
        builder: ``SparkSession.builder``, with the master and other settings that are to be respected.

    Returns:
        The same builder.

    Raises:
        ShimMissingError: Spark already runs in this process and cannot load the extension, because a JVM
            loads jars only when it starts and keeps running after ``spark.stop()``; or there is no jar for this
            PySpark.
        ExtraNotInstalledError: PySpark is not installed.

    Example:
        ```python
        spark = rt.configure(SparkSession.builder.master("local[4]")).getOrCreate()
        ```
    """
    if not hasattr(builder, "getOrCreate"):
        raise InvalidOptionError(
            f"configure takes SparkSession.builder, not a {type(builder).__name__}: the jar and the extension must be "
            "set before the session is built. Where a platform builds it, set spark.jars to what `rowtime jar` prints, "
            "and spark.sql.extensions to sparkrowtime.RowtimeExtensions, in its settings.",
            option="builder",
        )
    configured = said(builder)
    if "spark.remote" not in configured:
        check_running()
    ours = {
        **suited(configured),
        **_added(configured, "spark.jars", jarPath()),
        **_added(configured, EXTENSIONS, EXTENSION),
    }
    _set(builder, {**ours, **set_python(configured)})
    if ADAPTERS in configured:
        os.environ[ADAPTERS_VARIABLE] = configured[ADAPTERS]
    return builder


def _added(configured: dict[str, str], key: str, value: str) -> dict[str, str]:
    values = [v.strip() for v in configured.get(key, "").split(",") if v.strip()]
    return {key: ",".join(values if value in values else [*values, value])}


def _set(builder: Any, settings: dict[str, str]) -> None:
    for key, value in settings.items():
        builder.config(key, value)


def check_running() -> None:
    """Raises ShimMissingError if a builder can no longer add the extension to the Spark of this process."""
    jvm = SparkContext._jvm  # noqa: SLF001  (PySpark has no public name for it)
    if jvm is None:
        return
    if not _has_class(jvm, EXTENSION):
        raise ShimMissingError(
            "Spark was started in this process without spark-rowtime's jar. A JVM loads jars only when it starts, and "
            "spark.stop() does not end it. Start a new process (in a notebook, restart the kernel), and call "
            "rt.configure(SparkSession.builder) before the first SparkSession; for spark-submit, give it "
            f"--jars $(rowtime jar) --conf {EXTENSIONS}={EXTENSION}.",
            extension=EXTENSION,
        )
    session = _session()
    if session is not None and EXTENSION not in extensions(session):
        raise ShimMissingError(
            f"The running SparkSession was started with {EXTENSIONS}={session.conf.get(EXTENSIONS, None)!r}, without "
            f"{EXTENSION}, and getOrCreate would return that session. Call spark.stop() first, then "
            "rt.configure(SparkSession.builder).getOrCreate().",
            extension=EXTENSION,
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


def extensions(session: SparkSession) -> list[str]:
    """Returns the names of the extensions with which a session was built."""
    return [name.strip() for name in (session.conf.get(EXTENSIONS, "") or "").split(",")]
