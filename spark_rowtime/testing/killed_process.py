"""Runs a method of a suite in a process of its own, to its end or until it is killed on its way."""

import importlib
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

_SECONDS = 240
"""The longest time that such a process may run."""


def run_until_killed(suite: type, method: str, folder: Path, dies_at: int, *, before: bool) -> None:
    """Calls ``suite().method(folder, dies_at, before)`` in a new process, and waits until it was killed.

    Raises AssertionError, with what the process printed, if it ends in any other way.
    """
    done = _run(suite, method, folder, dies_at, before)
    if done.returncode != -signal.SIGKILL:
        raise AssertionError(
            f"{suite.__qualname__}.{method} should have died at call {dies_at}, but ended with status "
            f"{done.returncode}. It printed:\n{done.stdout}{done.stderr}"
        )


def run_to_end(suite: type, method: str, folder: Path) -> None:
    """Calls ``suite().method(folder, 0, True)`` in a new process; raises AssertionError if it fails or does not end."""
    try:
        done = _run(suite, method, folder, 0, True)
    except subprocess.TimeoutExpired:
        raise AssertionError(f"{suite.__qualname__}.{method} has not ended after {_SECONDS} seconds.") from None
    if done.returncode:
        raise AssertionError(f"{suite.__qualname__}.{method} failed. It printed:\n{done.stdout}{done.stderr}")


def _run(suite: type, method: str, folder: Path, dies_at: int, before: bool) -> subprocess.CompletedProcess[str]:
    spec = f"{suite.__module__}:{suite.__qualname__}"
    return subprocess.run(  # noqa: S603  (no shell; the class is the test's own)
        [sys.executable, "-m", __name__, spec, method, str(folder), str(dies_at), str(int(before))],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(entry or str(Path.cwd()) for entry in sys.path)},
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )


def main(spec: str, method: str, folder: str, dies_at: str, before: str) -> None:
    """The process's program."""
    module, _, name = spec.partition(":")
    suite: Any = importlib.import_module(module)
    for part in name.split("."):
        suite = getattr(suite, part)
    getattr(suite(), method)(Path(folder), int(dies_at), bool(int(before)))


if __name__ == "__main__":
    main(*sys.argv[1:])


def kill_points(calls: int, kills: int) -> list[tuple[int, bool]]:
    """At most ``kills`` calls out of so many, evenly spread; alternately before the call takes place and after it.

    Example:
        >>> kill_points(9, 3)
        [(1, True), (5, False), (9, True)]
        >>> kill_points(2, 5)
        [(1, True), (2, False)]
    """
    some = min(calls, kills)
    step = (calls - 1) / max(some - 1, 1)
    return [(1 + round(step * number), number % 2 == 0) for number in range(some)]
