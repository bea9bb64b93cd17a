"""Builds the extension's jars, one for each minor version of Spark; needs a JDK (17 or later).

    python java-shim/build.py            for the PySpark that this Python imports
    python java-shim/build.py all        for each version; Maven fetches the jars of Spark to compile against

hatch_build.py calls it for wheels and editable installs. The bytes of a jar depend on the sources and on the minor
version of Spark, and not on where its classes come from: entries are sorted and have one fixed date. A jar that these
sources have made already is kept, so a source distribution, which holds its jars, needs no JDK.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCES = HERE / "src"
JARS = HERE.parent / "spark_rowtime" / "jars"
COMPILED_WITH = {"4.0": "4.0.4", "4.1": "4.1.3", "4.2": "4.2.0", "4.3": "4.2.0"}
"""What to compile against, from Maven Central. It has no 4.3 yet; the jars of PySpark 4.3.0 give the same bytes."""
GROUP = "io.github.spark-rowtime"
"""The group of the jars in a Maven repository; the artifact is the name of the jar."""
_SPARK = "org.apache.spark"
_MODULES = ("sql", "catalyst", "sql-api", "core", "unsafe", "common-utils")
_OTHERS = (
    ("org.apache.arrow", "arrow-vector", "${arrow.version}"),
    ("org.apache.hadoop", "hadoop-client-api", "${hadoop.version}"),
    ("com.fasterxml.jackson.core", "jackson-databind", "${fasterxml.jackson.version}"),
    ("com.esotericsoftware", "kryo-shaded", "4.0.2"),
    ("org.scala-lang", "scala-reflect", "${scala.version}"),
)
"""What Spark's classes name in the signatures that the extension uses, in the versions that Spark's own project has."""
_QUICK = ("-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC")
"""The compiler ends before its own code is worth the second compiler: a third of the processor time."""
_DATE = (2020, 1, 1, 0, 0, 0)
_MANIFEST = "META-INF/MANIFEST.MF"


class BuildError(Exception):
    """What is missing, and how to get it."""


def build_installed() -> Path:
    """The jar for the PySpark of the running interpreter."""
    home = _pyspark()
    [spark] = home.glob("jars/spark-sql_*.jar")
    minor = ".".join(spark.stem.rpartition("-")[2].split(".")[:2])
    if minor not in COMPILED_WITH:
        raise BuildError(f"PySpark {minor} is installed, and spark-rowtime is for {', '.join(COMPILED_WITH)}")
    return _built(minor, lambda: home / "jars")


def build_all() -> list[Path]:
    """The jars for all versions."""
    return [_built(minor, partial(_fetched, spark)) for minor, spark in COMPILED_WITH.items()]


def is_installed() -> bool:
    """Whether the running interpreter imports PySpark."""
    return find_spec("pyspark") is not None


def jar(minor: str) -> Path:
    """Where the jar for a minor version of Spark is."""
    return JARS / f"spark-rowtime_spark{minor}.jar"


def project_version() -> str:
    """The version of spark-rowtime."""
    return _found(HERE.parent / "pyproject.toml", r'^version = "(.+)"')


def _pyspark() -> Path:
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise BuildError(
            f"PySpark is not installed for {sys.executable}. Install it, or: python java-shim/build.py all"
        )
    return Path(spec.origin).parent


def _fetched(spark: str) -> Path:
    sys.path.insert(0, str(HERE.parent))  # also where pip has copied the project to
    try:
        from scripts.mavenjars import MissingJarsError, dependency, fetched  # noqa: PLC0415
    finally:
        sys.path.pop(0)
    own = [dependency(_SPARK, f"spark-{name}_2.13", spark, without=("*",)) for name in _MODULES]
    others = [dependency(*other) for other in _OTHERS]
    try:
        return fetched(f"spark-{spark}", "".join(own + others), (_SPARK, "spark-parent_2.13", spark))
    except MissingJarsError as error:
        raise BuildError(f"the extension cannot be built for Spark {spark}: {error}") from error


def _built(minor: str, class_path: Callable[[], Path]) -> Path:
    target = jar(minor)
    if not _is_current(target, minor):
        _build(minor, class_path(), target)
    return target


def _is_current(target: Path, minor: str) -> bool:
    if not target.exists():
        return False
    with zipfile.ZipFile(target) as archive:
        return archive.read(_MANIFEST) == _manifest(minor).encode()


def _build(minor: str, jars: Path, target: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        sources, classes = Path(folder) / "sources", Path(folder) / "classes"
        _copy(minor, sources)
        _compile(minor, jars, sources, classes)
        target.parent.mkdir(parents=True, exist_ok=True)
        _write(target, classes, _manifest(minor))


def _folders(minor: str) -> list[Path]:
    """The folders of sources for a version: src/main, and src/spark-FIRST-LAST with the versions from FIRST to LAST."""
    return [folder for folder in sorted(SOURCES.iterdir()) if folder.name == "main" or minor in _range(folder)]


def _range(folder: Path) -> list[str]:
    first, _, last = folder.name.removeprefix("spark-").partition("-")
    minors = list(COMPILED_WITH)
    return minors[minors.index(first) : minors.index(last or first) + 1]


def _copy(minor: str, target: Path) -> None:
    names = _names(minor)
    for folder in _folders(minor):
        for file in folder.rglob("*.java"):
            text = file.read_text()
            for name, other in names:
                text = text.replace(name, other)
            copied = target / file.relative_to(folder / "java")
            copied.parent.mkdir(parents=True, exist_ok=True)
            copied.write_text(text)


def _names(minor: str) -> list[list[str]]:
    """What the sources name, and the name in this version."""
    file = SOURCES / f"spark-{minor}" / "names.txt"
    lines = file.read_text().splitlines() if file.exists() else []
    return [line.split() for line in lines if not line.startswith("#")]


def _compile(minor: str, jars: Path, sources: Path, classes: Path) -> None:
    # "-classfile", "-path": Spark's own jars refer to annotations and libraries they do not ship.
    command = [_javac(), *_QUICK, "--release", "17", "-Xlint:all,-classfile,-path,-processing", "-Werror", "-proc:none"]
    command += ["-cp", f"{jars}/*", "-d", str(classes), *sorted(str(p) for p in sources.rglob("*.java"))]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        said = f"{result.stdout}{result.stderr}".replace(str(sources), "...")
        raise BuildError(f"javac failed for Spark {minor} against {jars}:\n{said}")


def _javac() -> str:
    javac = shutil.which("javac")
    if javac is None:
        raise BuildError(
            "javac is not on the PATH: building spark-rowtime's jars needs a JDK, 17 or later "
            "(for example: apt-get install openjdk-17-jdk-headless). Or install a wheel, which has the jars."
        )
    return javac


def _write(target: Path, classes: Path, manifest: str) -> None:
    partial = target.with_name(f"{target.name}.{os.getpid()}")  # two environments may be set up at once
    with zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED) as archive:
        _add(archive, _MANIFEST, manifest.encode())
        for file in sorted(classes.rglob("*.class")):
            _add(archive, file.relative_to(classes).as_posix(), file.read_bytes())
    partial.replace(target)


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    entry = zipfile.ZipInfo(name, _DATE)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o644 << 16
    archive.writestr(entry, content)


def _manifest(minor: str) -> str:
    built_for = SOURCES / f"spark-{minor}" / "java" / "sparkrowtime" / "compat" / "BuiltFor.java"
    lines = {
        "Manifest-Version": "1.0",
        "Implementation-Title": "spark-rowtime",
        "Implementation-Version": project_version(),
        "Spark-Version": minor,
        "Spark-Versions-Tried": _found(built_for, r'TRIED = "(.+)"'),
        "Sources": _digest(minor),
    }
    return "".join(f"{key}: {value}\r\n" for key, value in lines.items()) + "\r\n"


def _digest(minor: str) -> str:
    """What changes with each source that the jar is made from."""
    digest = hashlib.sha256(Path(__file__).read_bytes())
    for folder in _folders(minor):
        for file in sorted(p for p in folder.rglob("*") if p.is_file()):
            digest.update(file.relative_to(SOURCES).as_posix().encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()[:32]


def _found(file: Path, pattern: str) -> str:
    match = re.search(pattern, file.read_text(), re.MULTILINE)
    assert match is not None, f"{file} has no {pattern}"
    return match[1]


if __name__ == "__main__":
    try:
        print(*(build_all() if sys.argv[1:] == ["all"] else [build_installed()]), sep="\n")
    except BuildError as error:
        sys.exit(str(error))
