"""Small disks of a test's own, and a file that fills one."""

import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from tests.store.processes import ROOT


def mounting(folder: Path) -> str:
    """The command that mounts a disk of 1 MB there. Skips the test where this machine does not let us mount one."""
    mount = f"mount -t tmpfs -o size=1m none {folder}"
    if shutil.which("unshare") is None or alone(mount).returncode:
        pytest.skip("this machine does not let us mount a file system (unshare --user --mount, tmpfs)")
    return mount


def alone(script: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Runs a script of the shell that may mount what it likes: nobody else sees it, and it goes with the process."""
    command = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, *arguments]
    return subprocess.run(command, check=False, cwd=ROOT, capture_output=True, text=True)


def fill(ballast: Path) -> None:
    """Fills the disk with one file."""
    with ballast.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(4096))
