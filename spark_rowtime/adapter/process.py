"""Hosts an adapter in a child process, beside a Spark query."""

import json
import os
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Mapping
from contextlib import suppress

from spark_rowtime.adapter.search_path import for_child
from spark_rowtime.errors import RowtimeError

_KEPT_OUTPUT_LINES = 20
_PRINT_SECONDS = 10
"""How long the end of the child's output is waited for: a grandchild may keep the pipe open."""
_FROM_PARENT = ("--until-stdin-ends", "--arguments-from-stdin")


class AdapterProcess:
    """A child process that hosts an adapter. It ends when its standard input ends, thus also when this process dies.

    The stream must exist. The process has the same module search path as this one, in the same order, but not the
    current folder, unless PYTHONPATH names it. ``arguments`` are the adapter's, as texts; ``producer`` is the name
    under which it sends, None: ``spec``. The maker calls ``check()`` from time to time, and ``stop()`` at the end.

    A thread copies the child's output to this process's stderr, and keeps the last lines for ``check``.
    """

    def __init__(
        self, spec: str, path: str, arguments: Mapping[str, str] | None = None, producer: str | None = None
    ) -> None:
        self._spec = spec
        self._last: deque[str] = deque(maxlen=_KEPT_OUTPUT_LINES)
        name = [] if producer is None else [f"--producer={producer}"]
        self._process = subprocess.Popen(  # noqa: S603  (no shell; Spark's source has checked that the class may be run)
            [sys.executable, "-P", "-m", "spark_rowtime.cli", "run", spec, path, *name, *_FROM_PARENT],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PYTHONPATH": for_child()},
            text=True,
            errors="replace",
        )
        self._tell(arguments or {})
        self._printer = threading.Thread(target=self._pass_on, name=f"rowtime-{spec}", daemon=True)
        self._printer.start()

    def _tell(self, arguments: Mapping[str, str]) -> None:
        """Sends the arguments through the pipe: other users of the machine can read a process's command line."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # the process has failed already; ``check`` says why
            self._process.stdin.write(json.dumps(dict(arguments)) + "\n")
            self._process.stdin.flush()

    @property
    def pid(self) -> int:
        """The process's id."""
        return self._process.pid

    def check(self) -> None:
        """Raises RowtimeError, with the last output, if the process has failed; the end of the feed is no failure."""
        code = self._process.poll()
        if code:
            self._printer.join(_PRINT_SECONDS)
            output = "".join(self._last).strip() or "(nothing)"
            raise RowtimeError(
                f"The process of adapter {self._spec!r} ended with code {code}. Correct what its last output "
                f"shows, and start the query again:\n{output}",
                adapter=self._spec,
                code=code,
            )

    def ended(self, seconds: float) -> bool:
        """Whether the process has come to the end of its feed, or does within so many seconds.

        Raises what ``check`` raises.
        """
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
        self.check()
        return self._process.poll() is not None

    def stop(self, grace: float = 10) -> None:
        """Ends the adapter, whose producer stays attached; kills the process after ``grace`` seconds."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # the process has ended, and what it was told is left in the pipe
            self._process.stdin.close()
        try:
            self._process.wait(grace)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._printer.join(_PRINT_SECONDS)

    def _pass_on(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                self._last.append(line)
                sys.stderr.write(line)
