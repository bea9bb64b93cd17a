"""Writes the jars that build.py has made as a Maven repository: each with its POM, as ``--packages`` takes them.

    python java-shim/repository.py FOLDER

What a release uploads. Until then a session finds them by ``spark.jars.repositories=file://FOLDER``.
"""

import shutil
import sys
from pathlib import Path

from build import COMPILED_WITH, GROUP, jar, project_version

_POM = """<?xml version="1.0" encoding="UTF-8"?>
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>{group}</groupId>
  <artifactId>{artifact}</artifactId>
  <version>{version}</version>
  <name>spark-rowtime for Spark {minor}</name>
  <description>The extension of the Python package spark-rowtime. It needs nothing but Spark.</description>
  <licenses><license><name>Apache-2.0</name></license></licenses>
</project>
"""


def write(folder: Path) -> list[Path]:
    """The POMs; beside each is its jar."""
    return [_written(folder, minor) for minor in COMPILED_WITH]


def _written(folder: Path, minor: str) -> Path:
    artifact, version = jar(minor).stem, project_version()
    target = folder / GROUP.replace(".", "/") / artifact / version
    target.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(jar(minor), target / f"{artifact}-{version}.jar")
    pom = target / f"{artifact}-{version}.pom"
    pom.write_text(_POM.format(group=GROUP, artifact=artifact, version=version, minor=minor))
    return pom


if __name__ == "__main__":
    print(*write(Path(sys.argv[1])), sep="\n")
