"""Options of the JVMs that tests start: most of them live for seconds, and share two cores with the test."""

import os
import sys
from importlib.util import find_spec
from pathlib import Path

QUICK = (
    "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -XX:+UseSerialGC -XX:MetaspaceSize=128m "
    "-Djdk.lang.Process.launchMechanism=VFORK"
)
"""Only the first compiler, since the second one costs more than it gains. Without that one the code cache has 48 MB:
in a run of many queries the JVM would sweep it and compile again. No concurrent collector. Spark's classes fit in the
first 128 MB; with the default, the JVM would collect all garbage several times while it loads them. A process starts
without a helper in between: Hadoop starts a chmod for each file of a checkpoint, thirty or more a query."""


def _place() -> Path:
    """This environment; of a PySpark that scripts/on-spark.sh has installed, the folder that it is in."""
    spec = find_spec("pyspark")
    found = Path(spec.origin).parents[1] if spec and spec.origin else None
    return found if found and found.parent.name == "sparks" else Path(sys.prefix)


CLASSES = _place() / "spark-classes.jsa"
"""The archive of Spark's classes that tests/classarchive.py makes. With it a driver starts with half of the CPU time,
since it neither unpacks nor verifies these classes. A JVM ignores an archive of another JDK, or of other jars."""

SHARING = f"{QUICK} -XX:SharedArchiveFile={CLASSES} -Xlog:cds*=off"
"""For the JVMs of Spark: drivers, masters, workers, executors. One that cannot use the archive says nothing."""

FEW_TASKS = "-Dspark.sql.shuffle.partitions=2"
"""For programs that do not set it: Spark's own 200 tasks in each batch of an example take longer than all else."""

OF_DRIVERS = {"SPARK_SUBMIT_OPTS": f"{SHARING} {FEW_TASKS}", "SPARK_LAUNCHER_OPTS": QUICK}
"""Variables that Spark's scripts read: for a driver, and for the JVM that puts its command together. What a session
sets takes precedence."""

OF_ALL = {"JDK_JAVA_OPTIONS": SHARING}
"""The variable that every JVM reads, also a master, a worker and an executor. Each JVM prints that it read it."""


def set_driver_options() -> None:
    """For the drivers of this process and of those that it starts. What the caller of the tests has set stays."""
    for name, options in OF_DRIVERS.items():
        os.environ.setdefault(name, options)
