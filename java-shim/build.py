"""Builds the jar against the PySpark of the running interpreter; needs a JDK (17 or later), nothing else.

    python java-shim/build.py [target]

``build_jar`` is called by hatch_build.py for wheels and editable installs, and by developers. The
same sources and Spark give the same bytes: entries are sorted and have one fixed date.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCES = HERE / "src" / "main" / "java"
DEFAULT_TARGET = HERE.parent / "spark_rowtime" / "jars" / "spark-rowtime.jar"
_DATE = (2020, 1, 1, 0, 0, 0)


class BuildError(Exception):
    """What is missing, and how to get it."""


def build_jar(target: Path) -> Path:
    """Compile the sources and write the jar to ``target``; its folder is created."""
    javac, jars = _javac(), _spark_jars()
    with tempfile.TemporaryDirectory() as folder:
        classes = Path(folder)
        _compile(javac, jars, classes)
        target.parent.mkdir(parents=True, exist_ok=True)
        _write(target, classes)
    return target


def _javac() -> str:
    javac = shutil.which("javac")
    if javac is None:
        raise BuildError(
            "javac is not on the PATH: building spark-rowtime's jar needs a JDK, 17 or later "
            "(for example: apt-get install openjdk-17-jdk-headless). Or install a wheel, which has the jar."
        )
    return javac


def _spark_jars() -> Path:
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise BuildError(
            f"pyspark is not installed for {sys.executable}: the jar is built against its jars. "
            "pip install 'pyspark>=4.2.1,<4.4'"
        )
    return Path(spec.origin).parent / "jars"


def _compile(javac: str, jars: Path, classes: Path) -> None:
    # "-classfile", "-path": Spark's own jars refer to annotations and libraries they do not ship.
    command = [javac, "--release", "17", "-Xlint:all,-classfile,-path,-processing", "-Werror", "-proc:none"]
    command += ["-cp", f"{jars}/*", "-d", str(classes), *sorted(str(p) for p in SOURCES.rglob("*.java"))]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        raise BuildError(f"javac failed against {jars}:\n{result.stdout}{result.stderr}")


def _write(target: Path, classes: Path) -> None:
    partial = target.with_name(f"{target.name}.{os.getpid()}")  # two environments may be set up at once
    with zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED) as jar:
        _add(jar, "META-INF/MANIFEST.MF", _manifest().encode())
        for file in sorted(classes.rglob("*.class")):
            _add(jar, file.relative_to(classes).as_posix(), file.read_bytes())
    partial.replace(target)


def _add(jar: zipfile.ZipFile, name: str, content: bytes) -> None:
    entry = zipfile.ZipInfo(name, _DATE)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o644 << 16
    jar.writestr(entry, content)


def _manifest() -> str:
    lines = {
        "Manifest-Version": "1.0",
        "Implementation-Title": "spark-rowtime",
        "Implementation-Version": _found(HERE.parent / "pyproject.toml", r'^version = "(.+)"', "0"),
        "Spark-Versions-Tried": _found(
            SOURCES / "sparkrowtime" / "support" / "TriedVersions.java", r'LIST = "(.+)"', ""
        ),
    }
    return "".join(f"{key}: {value}\r\n" for key, value in lines.items()) + "\r\n"


def _found(file: Path, pattern: str, otherwise: str) -> str:
    match = re.search(pattern, file.read_text(), re.MULTILINE) if file.exists() else None
    return match.group(1) if match else otherwise


if __name__ == "__main__":
    try:
        print(build_jar(Path(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT_TARGET))
    except BuildError as error:
        sys.exit(str(error))
