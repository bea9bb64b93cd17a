"""The lock that keeps one adapter from being hosted twice at once."""

import fcntl
import hashlib
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from spark_rowtime.errors import StoreUnavailableError
from spark_rowtime.store import without_file
from spark_rowtime.store.forks import Descriptor, no_fork

LOCK_POLL_SECONDS = 0.1
"""Seconds between two attempts to take a lock that another process holds."""


@contextmanager
def only_host(path: str, producer: str, patience: float, wait: Callable[[float], object]) -> Iterator[None]:
    """Holds the lock of one producer's host on one stream, which must exist.

    The operating system releases the lock when the process dies. If another process holds it, this one tries again
    for ``patience`` seconds, with ``wait`` between the attempts, and then raises StoreUnavailableError.
    """
    file = _lock_file(path, producer)
    try:
        with no_fork():
            lock = Descriptor(os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666))
    except OSError as error:
        raise StoreUnavailableError(f"The lock of a hosted adapter, {file}, cannot be opened: {error}.") from error
    try:
        while not _locked(lock.fd):
            patience -= LOCK_POLL_SECONDS
            if patience < 0:
                raise _hosted_already(path, producer, os.pread(lock.fd, 100, 0).decode())
            wait(LOCK_POLL_SECONDS)
        os.ftruncate(lock.fd, 0)
        os.pwrite(lock.fd, str(os.getpid()).encode(), 0)
        yield
    finally:
        lock.close()


def _lock_file(path: str, producer: str) -> Path:
    """The lock's file: in the stream's directory, or, if it has none, in the directory for temporary files."""
    local = without_file(path)
    if "://" not in local:
        return Path(local) / f"host-{hashlib.sha256(producer.encode()).hexdigest()[:16]}.lock"
    where = f"{path} {producer} {os.getuid()} {os.getpid() if local.startswith('memory:') else ''}"
    return Path(tempfile.gettempdir()) / f"rowtime-{hashlib.sha256(where.encode()).hexdigest()[:16]}.lock"


def _locked(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _hosted_already(path: str, producer: str, pid: str) -> StoreUnavailableError:
    return StoreUnavailableError(
        f"Adapter {producer!r} is already hosted on {path}, by process {pid or '(starting)'}. Two hosts would fence "
        "each other: end that process first, or give this adapter another producer name.",
        path=path,
        producer=producer,
        pid=pid,
    )
