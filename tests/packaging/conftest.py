"""The distributions, built once for all tests."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.packaging.test_jars import ROOT, build, or_skip


@pytest.fixture(scope="session")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the source distribution, as `make wheel` builds them."""
    folder = tmp_path_factory.mktemp("dist")
    or_skip(build.build_all)
    hatchling(ROOT, folder)
    return folder


def hatchling(project: Path, target: Path, **variables: str) -> None:
    """Builds both of a project into a folder."""
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(target)]
    done = subprocess.run(
        command, cwd=project, env={**os.environ, **variables}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def one(folder: Path, pattern: str) -> Path:
    """The one file of this pattern."""
    [found] = folder.glob(pattern)
    return found
