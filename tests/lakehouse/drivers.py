"""A Spark driver for each query of a chain of tables, which a test kills one at a time."""

import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.crash.drivers import ROOT
from tests.lakehouse.chain import TABLES, Chain
from tests.sparksession import wait_for

SECONDS = 240


class Drivers:
    """All three, each a process group of its own. They end with the block, by kill -9."""

    def __init__(self, chain: Chain) -> None:
        self._chain = chain
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Self:
        self.start_missing()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for name in list(self._running):
            self.kill(name)

    def start_missing(self) -> None:
        """Starts those that do not run."""
        for name in TABLES:
            if name not in self._running:
                self._running[name] = started(self._chain, name)

    def kill(self, name: str) -> None:
        """Kills Python and JVM of one query together."""
        process = self._running.pop(name)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def killed(self, name: str, dice: random.Random, feed: Callable[[], object]) -> str:
        """Kills one query at a random moment while those before it go on; returns when that was.

        If it does not run, all that do not run are started first. ``feed`` is called again and again, so that there is
        always something to do.
        """
        if name not in self._running:
            self.start_missing()
        what, seen = dice.choice(list(SEEN.items()))
        wanted = seen(self._chain, name) + dice.randint(1, 3)
        wait_for(lambda: self._alive(feed) and seen(self._chain, name) >= wanted, f"{what} of {name}", SECONDS)
        self.kill(name)
        return f"{name} killed at {what} {wanted}"

    def _alive(self, feed: Callable[[], object]) -> bool:
        feed()
        ended = [name for name, process in self._running.items() if process.poll() is not None]
        assert not ended, "".join(said(self._chain, name) for name in ended)
        return True


def started(chain: Chain, name: str) -> subprocess.Popen[bytes]:
    """The driver of a query."""
    tables = chain.tables
    command = [sys.executable, "-m", "tests.lakehouse.chain", tables.format, str(chain.folder), *tables.where, name]
    with _log(chain, name).open("ab") as log:
        return subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log, start_new_session=True)


def said(chain: Chain, name: str) -> str:
    """The last words of a driver."""
    return _log(chain, name).read_text()[-5000:]


def _log(chain: Chain, name: str) -> Path:
    return chain.folder / f"driver-{name}.log"


def _batches(log: str) -> Callable[[Chain, str], int]:
    return lambda chain, name: sum(file.name.isdigit() for file in (chain.checkpoint(name) / log).glob("*"))


SEEN: dict[str, Callable[[Chain, str], Any]] = {
    "planned batches": _batches("offsets"),
    "done batches": _batches("commits"),
    "data files": lambda chain, name: chain.tables.files(name),
    "commits of the table": lambda chain, name: chain.tables.versions(name),
}
"""What of a query is counted until it is killed: one of the places in which a batch leaves something."""
