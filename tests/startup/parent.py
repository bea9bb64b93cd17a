"""A process that imports what Python workers of Spark need, and has a child for each that asks; see forked.py.

python parent.py NAME PROCESS        at the abstract socket of this name, until the process ends
"""

import contextlib
import fcntl
import gc
import importlib
import marshal
import os
import runpy
import selectors
import signal
import socket
import sys
import time
from functools import partial
from pathlib import Path
from typing import NamedTuple

from forked import LENGTH_BYTES

IMPORTED = (
    *("pyspark.daemon", "pyspark.worker", "pyspark.sql.streaming.python_streaming_source_runner"),
    *("pyspark.sql.worker.create_data_source", "pyspark.sql.worker.lookup_data_sources"),
    *("pyspark.sql.worker.plan_data_source_read", "pyspark.sql.worker.write_into_data_source"),
    *("pyspark.sql.worker.python_streaming_sink_runner", "pyspark.sql.worker.commit_data_source_write"),
    "pyspark.sql.streaming.transform_with_state_driver_worker",
    *("spark_rowtime.spark.datasource", "spark_rowtime.spark.source", "spark_rowtime.spark.sink", "pandas"),
)
ASKED = 128
"""So many may ask while the parent imports."""
PATIENCE = Path(__file__).parents[1] / "patience.py"
KILLED = 128
"""The exit code of a child that a signal has ended, as a shell has it, without the number of the signal."""


class Request(NamedTuple):
    """What a child is to do: what the process that asks has."""

    arguments: list[str]
    environment: dict[str, str]
    path: list[str]
    folder: str

    def run(self) -> None:
        """Runs the module as ``python -m`` does."""
        os.environ.clear()
        os.environ.update(self.environment)
        time.tzset()
        os.chdir(self.folder)
        sys.path[:] = [self.folder, *self.path]
        sys.argv, sys.orig_argv = self.arguments, [sys.executable, "-m", *self.arguments]
        module = self.arguments[0]
        sys.modules.pop(module, None)  # no module is imported yet when it is run
        runpy.run_module(module, run_name="__main__", alter_sys=True)


class Parent:
    """It has a child for each process that asks."""

    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self._waiting = selectors.DefaultSelector()
        self._waiting.register(listener, selectors.EVENT_READ, self._fork)

    def serve(self, run: str) -> Request | None:
        """Returns in each child, with what it is to do; in the parent, when the process ``run`` has ended."""
        while Path(f"/proc/{run}").exists():
            for key, _ in self._waiting.select(timeout=1):
                if request := key.data():
                    return request
        return None

    def _fork(self) -> Request | None:
        connection, _ = self._listener.accept()
        try:
            length, streams, _, _ = socket.recv_fds(connection, LENGTH_BYTES, 3)
            request = Request(*marshal.loads(connection.recv(int.from_bytes(length), socket.MSG_WAITALL)))
        except (EOFError, OSError):  # it was killed before it had asked
            connection.close()
            return None
        child = os.fork()
        if child:
            ends = os.pidfd_open(child)
            self._waiting.register(ends, selectors.EVENT_READ, partial(self._ended, child, ends, connection))
        else:
            self._become(connection, streams)
        for stream in streams:
            os.close(stream)
        return None if child else request

    def _become(self, connection: socket.socket, streams: list[int]) -> None:
        """A child has these streams, and nothing of the parent. It is ended if the other side of the connection is."""
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
        self._waiting.close()
        self._listener.close()
        end_without(connection.detach())

    def _ended(self, child: int, ends: int, connection: socket.socket) -> None:
        """The process that waits for this child ends as the child has ended."""
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        with connection, contextlib.suppress(OSError):
            connection.send(bytes([code if code >= 0 else KILLED - code]))
        self._waiting.unregister(ends)
        os.close(ends)


def end_without(connection: int) -> None:
    """Has this process ended by SIGTERM once the other side of the connection is closed."""
    fcntl.fcntl(connection, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(connection, fcntl.F_SETSIG, signal.SIGTERM)
    fcntl.fcntl(connection, fcntl.F_SETFL, fcntl.fcntl(connection, fcntl.F_GETFL) | os.O_ASYNC)


def main(name: str, run: str) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"\0{name}")  # fails where another one was faster
        listener.listen(ASKED)
        for module in IMPORTED:
            with contextlib.suppress(ImportError):
                importlib.import_module(module)
        with contextlib.suppress(ImportError):  # no spark_rowtime is there
            runpy.run_path(str(PATIENCE))["wait_long_for_locks"]()
        gc.collect()
        gc.freeze()
        request = Parent(listener).serve(run)
    if request:
        request.run()


if __name__ == "__main__":
    main(*sys.argv[1:])
