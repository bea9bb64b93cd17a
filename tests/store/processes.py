"""Starts other processes for the store's tests, with the project on their path."""

import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PRELUDE = """
import os, resource, signal, sys
from spark_rowtime.store.base import *
from spark_rowtime.store.commits import *
from spark_rowtime.store.position import *
from spark_rowtime.store.settings import *
from spark_rowtime.store.snapshot import *
from spark_rowtime.store.local import create_local, open_local
from tests.patience import wait_long_for_locks
from tests.store.streams import *
path = sys.argv[1]
wait_long_for_locks()
"""


def start(script: str, path: str, *arguments: Any) -> "subprocess.Popen[str]":
    """Starts ``script`` with ``path`` and the names of the store's tests defined. It communicates through its pipes."""
    command = [sys.executable, "-c", PRELUDE + textwrap.dedent(script), path, *map(str, arguments)]
    return subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def run(script: str, path: str, *arguments: Any, code: int = 0) -> str:
    """Runs ``script`` to its end, and checks its exit code; returns its output."""
    process = start(script, path, *arguments)
    output, errors = process.communicate()
    assert process.returncode == code, errors
    return output
