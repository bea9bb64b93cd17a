"""A home of Spark whose Python workers import PySpark from the folder where it is installed.

Each Python worker that Spark starts imports PySpark from an archive of sources, python/lib/pyspark.zip, and compiles
it: half a second of CPU time for each start of a source. Here a link to the installed package, which has its bytecode,
stands in the archive's place.
"""

import os
import shutil
import sys
import tempfile
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path


def set_spark_home() -> None:
    """For the drivers of this process and of those that it starts, unless SPARK_HOME is set."""
    spec = find_spec("pyspark")
    if spec is not None and spec.origin is not None and "SPARK_HOME" not in os.environ:
        os.environ["SPARK_HOME"] = str(_linked(Path(spec.origin).parent))


def _linked(package: Path) -> Path:
    """The home of this environment and PySpark; it is made if there is none."""
    home = Path(sys.prefix) / f"spark-home-{version('pyspark')}"
    if not home.exists():
        made = Path(tempfile.mkdtemp(dir=home.parent, prefix="spark-home-"))
        _fill(made, package)
        try:
            made.rename(home)
        except OSError:  # another process was faster
            shutil.rmtree(made)
    return home


def _fill(home: Path, package: Path) -> None:
    libraries = home / "python" / "lib"
    libraries.mkdir(parents=True)
    for entry in package.iterdir():
        if entry.name != "python":
            (home / entry.name).symlink_to(entry)
    for archive in (package / "python" / "lib").iterdir():
        (libraries / archive.name).symlink_to(package.parent if archive.name == "pyspark.zip" else archive)
