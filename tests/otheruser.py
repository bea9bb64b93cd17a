"""Runs programs as another user, nobody, who has no rights but those that everybody has."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

NOBODY = 65534
ROOT = Path(__file__).parents[1]
_PYTHONS = [sys.executable, "/usr/bin/python3"]
"""The second one is for an environment whose Python is in a folder of this user alone."""


@cache
def _python() -> str | None:
    """A Python that nobody may start, with the packages of this one."""
    for python in _PYTHONS:
        try:
            process = _start(python, "-c", "import spark_rowtime.stream")
            process.communicate()
            if process.returncode == 0:
                return python
        except PermissionError:
            continue
    return None


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder that another user may look into. Skips a test where there is none.

    pytest closes its own folder to others whenever a session begins, also another one.
    """
    if os.getuid() != 0:
        pytest.skip("only root can become another user")
    if _python() is None:
        pytest.skip("another user may not start this Python")
    with tempfile.TemporaryDirectory(prefix="rowtime-shared-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def share(folder: Path) -> None:
    """Lets everybody read what is in the folder, and nobody else write there."""
    for file in folder.rglob("*"):
        file.chmod(0o755 if file.is_dir() else 0o644)


def start(*command: str) -> "subprocess.Popen[str]":
    """Starts Python, such as with ``-c SCRIPT``."""
    python = _python()
    assert python is not None
    return _start(python, *command)


def run(*command: str) -> tuple[str, str]:
    """Runs it to its end, which is none in error; returns what it says."""
    process = start(*command)
    output, errors = process.communicate()
    assert process.returncode == 0, (output, errors)
    return output, errors


def _start(*command: str) -> "subprocess.Popen[str]":
    """Starts a command without what a session of this process has set: its Python and its Spark are not that user's."""
    places = [str(ROOT), str(Path(pa.__file__).parents[1])]
    own: dict[str, Any] = {"user": NOBODY, "group": NOBODY, "extra_groups": [], "umask": 0o022}
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("SPARK_HOME", "PYSPARK_"))}
    environment |= {"HOME": tempfile.gettempdir(), "PYTHONDONTWRITEBYTECODE": "1"}
    environment |= {"PYTHONPATH": os.pathsep.join(places), "PYSPARK_PYTHON": command[0]}
    pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    return subprocess.Popen(command, cwd=ROOT, env=environment, text=True, **pipes, **own)
