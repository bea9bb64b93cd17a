"""A home of Spark with which the queries of the tests cost less: Spark's local files start no chmod.

It is used if there is a compiler, and no SPARK_HOME.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "java-shim/src/main/java/sparkrowtime/support/LocalFiles.java"
"""The class of the extension for the files of checkpoints. Here it is that of all local files."""
SETTINGS = Path(__file__).parent / "startup" / "core-site.xml"


def set_spark_home() -> None:
    """For the drivers of this process and of those that it starts, unless SPARK_HOME is set."""
    spec = find_spec("pyspark")
    if spec is not None and spec.origin is not None and "SPARK_HOME" not in os.environ:
        os.environ["SPARK_HOME"] = str(_linked(Path(spec.origin).parent))


def _linked(package: Path) -> Path:
    """The home of this environment and PySpark; it is made if there is none."""
    home = Path(sys.prefix) / f"spark-{version('pyspark')}"
    if not home.exists():
        made = Path(tempfile.mkdtemp(dir=home.parent, prefix="spark-home-"))
        _fill(made, package)
        try:
            made.rename(home)
        except OSError:  # another process was faster
            shutil.rmtree(made)
    return home


def _fill(home: Path, package: Path) -> None:
    jars = home / "jars"
    _link(home, *(entry for entry in package.iterdir() if entry.name != "jars"))
    _link(jars, *(package / "jars").iterdir())
    if shutil.which("javac"):
        _add_local_files(jars)


def _link(folder: Path, *entries: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for entry in entries:
        (folder / entry.name).symlink_to(entry)


def _add_local_files(jars: Path) -> None:
    """Adds a jar with the class of ``SOURCE``, and the setting that names it."""
    with tempfile.TemporaryDirectory() as classes:
        subprocess.run(["javac", "-cp", f"{jars}/*", "-d", classes, SOURCE], check=True)
        with zipfile.ZipFile(jars / "rowtime-tests.jar", "w") as jar:
            jar.write(SETTINGS, SETTINGS.name)
            for file in Path(classes).rglob("*.class"):
                jar.write(file, file.relative_to(classes))
