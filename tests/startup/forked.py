"""Lets Python workers of Spark be children of one process that has their imports (tests/startup/parent.py). Linux.

Spark starts a Python process for each source of a query, and a third of what a short query costs are the imports there:
PySpark, PyArrow, NumPy, spark_rowtime. In the jobs of tests such a process asks another one, which has them, for a
child. The child does the work, with the arguments, the environment, the folder and the standard streams of the process
that asks. That one waits for it, and ends with its exit code; if it is killed, the child is ended.
"""

import contextlib
import marshal
import os
import socket
import sys
import time
import zlib
from typing import Any

LENGTH_BYTES = 8
FAILED = b"\1"
POLL_SECONDS = 0.01


def work_in_child(run: str) -> None:
    """Lets a child do the work of this process, and ends with its exit code; returns if nobody can be asked.

    The parent of that child ends with the process ``run``.
    """
    with contextlib.suppress(ConnectionError), _connection(run, _name()) as connection:
        request = marshal.dumps([sys.orig_argv[2:], dict(os.environ), sys.path, os.getcwd()])
        socket.send_fds(connection, [len(request).to_bytes(LENGTH_BYTES)], [0, 1, 2])
        connection.sendall(request)
        os._exit(ord(connection.recv(1) or FAILED))


def _name() -> str:
    """The same for processes that import the same packages, are of one user, and see the same files."""
    packages = [_folder(name) for name in ("pyspark", "spark_rowtime")]
    return str(zlib.crc32(repr((sys.executable, packages, os.getuid(), os.readlink("/proc/self/ns/mnt"))).encode()))


def _folder(package: str) -> str:
    """The folder that this process imports a package from."""
    folders = (os.path.realpath(folder) for folder in sys.path)
    return next((folder for folder in folders if os.path.isdir(os.path.join(folder, package))), "")


def _connection(run: str, name: str) -> socket.socket:
    """To the parent, which is started if there is none. Raises ConnectionError if it ends."""
    address, connection, parent = f"\0rowtime-{run}-{name}", socket.socket(socket.AF_UNIX), None
    while connection.connect_ex(address):
        parent = parent or _start(address[1:], run)
        if parent.poll() is not None:
            raise ConnectionError
        time.sleep(POLL_SECONDS)
    return connection


def _start(*arguments: str) -> Any:
    import subprocess

    program = [sys.executable, os.path.join(os.path.dirname(__file__), "parent.py"), *arguments]
    nothing = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
    return subprocess.Popen(program, start_new_session=True, **nothing)
