"""Processes that are made to be killed: forked within milliseconds from a server that has imported everything."""

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
        *(f"tests.crash.{name}" for name in ("writers", "feeds", "full", "outage", "desk")),
    ]
)
KILLED = -signal.SIGKILL


def how_many(few: int) -> int:
    """How many faults a test injects: as many as ROWTIME_KILLS says, ``few`` where it says nothing."""
    return int(os.environ.get("ROWTIME_KILLS", few))


class Victim:
    """A process that runs ``work(pipe, *arguments)``, a function of a module that is no test's.

    What it sends through its pipe is kept in ``heard``; it ends with the test at the latest.
    """

    def __init__(self, work: Callable[..., object], *arguments: Any) -> None:
        self.heard: list[Any] = []
        self.pipe, theirs = CONTEXT.Pipe()
        self._process = CONTEXT.Process(target=work, args=(theirs, *arguments), daemon=True)
        self._process.start()
        theirs.close()

    def ask(self, *message: Any) -> Any:
        """Sends a message, waits for the answer."""
        self.pipe.send(message)
        return self.pipe.recv()

    def listen(self, seconds: float, until: int | None = None) -> bool:
        """Hears what it says for so long, or until it has said so much; False where it has ended."""
        deadline = time.monotonic() + seconds
        with suppress(EOFError, OSError):
            while until is None or len(self.heard) < until:
                if not self.pipe.poll(max(deadline - time.monotonic(), 0)):
                    return True
                self.heard.append(self.pipe.recv())
            return True
        return False

    def kill(self) -> bool:
        """Ends it by SIGKILL; False where it had ended by itself."""
        self._process.kill()
        return self.end()[1] == KILLED

    def end(self, seconds: float = 60) -> tuple[list[Any], int | None]:
        """Waits until it ends by itself: all that it has said, and its exit code."""
        self.listen(seconds)
        self._process.join(seconds)
        code = self._process.exitcode
        self._process.close()
        self.pipe.close()
        return self.heard, code
