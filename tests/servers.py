"""How tests start servers: on a port that nobody else gets, in a process whose last words are in the error."""

import signal
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

POLL_SECONDS = 0.01
END_SECONDS = 240.0
LAST_CHARACTERS = 4000
"""So much of what a server has said is in an error."""


class KeptPort:
    """A port of this machine, kept from now on until ``close``, whether a server listens there or not.

    A socket is bound to it that never listens, so connections are refused, and the system gives the port to nobody who
    asks for any. A server that asks for this one gets it, again and again, since both set SO_REUSEADDR: PostgreSQL,
    Java's and Python's servers do.
    """

    def __init__(self) -> None:
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.bind(("", 0))  # any address: a server may listen on that of a network of the tests
        self.number: int = self._socket.getsockname()[1]

    def __str__(self) -> str:
        return str(self.number)

    def close(self) -> None:
        self._socket.close()


class ServerFailedError(AssertionError):
    """A server has ended, or does not answer."""


class ServerProcess:
    """A server in a process of its own. What it says goes to the file ``log``, which a start makes longer."""

    def __init__(self, name: str, log: Path) -> None:
        self.name, self.log_file = name, log
        self.process: subprocess.Popen[bytes] | None = None

    def start(
        self, command: Sequence[Any], answers: Callable[[], object], seconds: float = END_SECONDS, **how: Any
    ) -> None:
        """Starts the command, and waits until the server answers. ``how``: arguments of Popen."""
        with self.log_file.open("ab") as log:
            self.process = subprocess.Popen([*map(str, command)], stdout=log, stderr=subprocess.STDOUT, **how)
        try:
            self.wait(answers, seconds)
        except BaseException:
            self.end(signal.SIGKILL)
            raise

    def wait(self, answers: Callable[[], object], seconds: float = END_SECONDS) -> None:
        """Waits until ``answers`` returns a true value. Raises ServerFailedError if the server ends before that."""
        deadline = time.monotonic() + seconds
        while not answers():
            if not self.runs():
                raise self._failed(f"has ended with exit code {self._code}")
            if time.monotonic() > deadline:
                raise self._failed(f"does not answer after {seconds:.0f} s")
            time.sleep(POLL_SECONDS)

    def runs(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def end(self, how: signal.Signals = signal.SIGTERM) -> int:
        """Ends it by a signal, if it runs; returns the exit code."""
        assert self.process is not None
        if self.runs():
            self.process.send_signal(how)
        return self.process.wait(END_SECONDS)

    def log(self) -> str:
        """The end of what it has said."""
        return self.log_file.read_text(errors="replace")[-LAST_CHARACTERS:]

    @property
    def _code(self) -> int | None:
        return None if self.process is None else self.process.poll()

    def _failed(self, what: str) -> ServerFailedError:
        return ServerFailedError(f"{self.name} {what}. It said last:\n{self.log() or '(nothing)'}")
