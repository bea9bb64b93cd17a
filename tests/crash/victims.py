"""Processes that tests kill. They are forked within milliseconds from a server that has imported everything."""

import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(
    [
        "pandas",  # pyarrow imports it when it first makes an array of a list
        "spark_rowtime.cli",
        "spark_rowtime.store.local",
        *(f"tests.crash.{name}" for name in ("writers", "feeds", "full", "outage", "desk", "tabled")),
    ]
)
KILLED = -signal.SIGKILL


def how_many(few: int) -> int:
    """How many faults a test injects: ROWTIME_KILLS, or ``few`` if that is not set."""
    return int(os.environ.get("ROWTIME_KILLS", few))


def _patiently(work: Callable[..., object], *arguments: Any) -> None:
    from tests.patience import wait_long_for_locks

    wait_long_for_locks()
    work(*arguments)


class Victim:
    """A process that runs ``work(pipe, *arguments)``. The function is in a module that is not a test.

    The messages that it sends through its pipe are kept in ``heard``. It ends with the test at the latest.
    """

    def __init__(self, work: Callable[..., object], *arguments: Any) -> None:
        self.heard: list[Any] = []
        self.pipe, theirs = CONTEXT.Pipe()
        self._process = CONTEXT.Process(target=_patiently, args=(work, theirs, *arguments), daemon=True)
        self._process.start()
        theirs.close()

    def ask(self, *message: Any) -> Any:
        """Sends a message, and returns the answer."""
        self.pipe.send(message)
        return self.pipe.recv()

    def listen(self, seconds: float, until: int | None = None) -> bool:
        """Receives messages for this time, or up to this number; False if the process has ended."""
        deadline = time.monotonic() + seconds
        with suppress(EOFError, OSError):
            while until is None or len(self.heard) < until:
                if not self.pipe.poll(max(deadline - time.monotonic(), 0)):
                    return True
                self.heard.append(self.pipe.recv())
            return True
        return False

    def kill(self) -> bool:
        """Kills the process with SIGKILL; False if it had ended by itself."""
        self._process.kill()
        return self.end()[1] == KILLED

    def end(self, seconds: float = 240) -> tuple[list[Any], int | None]:
        """Waits until the process ends; returns all its messages, and its exit code."""
        self.listen(seconds)
        self._process.join(seconds)
        code = self._process.exitcode
        self._process.close()
        self.pipe.close()
        return self.heard, code
