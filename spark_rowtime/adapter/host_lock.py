"""The lock that keeps one adapter from being hosted twice at once."""

import hashlib
import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from spark_rowtime.errors import StoreUnavailableError
from spark_rowtime.store import in_database, open_store, without_file
from spark_rowtime.store.disk import FOLDER, lock_inside
from spark_rowtime.store.forks import Descriptor, no_fork

LOCK_POLL_SECONDS = 0.1
"""Seconds between two attempts to take a lock that another process holds."""
SHARED = "/tmp"  # noqa: S108  (only a folder in it is used that this user alone has)
"""The folder for temporary files of all users, where all processes of this one find each other."""


@contextmanager
def only_host(path: str, producer: str, patience: float, wait: Callable[[float], object]) -> Iterator[None]:
    """Holds the lock of one producer's host on one stream, which must exist.

    The operating system releases the lock when the process dies. If another process holds it, this one tries again
    for ``patience`` seconds, with ``wait`` between the attempts, and then raises StoreUnavailableError.
    """
    folder, name, mode = _lock_file(path, producer)
    with _usable(folder / name), no_fork():
        lock = Descriptor(_opened(folder, name, mode))
    try:
        while (other := _take(lock, folder / name)) is not None:
            patience -= LOCK_POLL_SECONDS
            if patience < 0:
                raise _hosted_already(path, producer, other)
            wait(LOCK_POLL_SECONDS)
        yield
    finally:
        lock.close()


def _take(lock: Descriptor, file: Path) -> str | None:
    """Takes the lock; returns the id of the process that has it instead."""
    with _usable(file):
        return lock.take()


@contextmanager
def _usable(file: Path) -> Iterator[None]:
    """An error of the file system says that the lock cannot be used (StoreUnavailableError)."""
    try:
        yield
    except OSError as error:
        raise StoreUnavailableError(
            f"The lock of a hosted adapter, {file}, cannot be used: {error}. Check the free space and the permissions "
            "of the folder."
        ) from error


def _lock_file(path: str, producer: str) -> tuple[Path, str, int]:
    """The folder, the name and the mode of the lock's file.

    It is in the stream's directory, or, if it has none, in a folder of this user: others could guess its name, and
    take it. A path of a stream in a database can be written in many ways, so the name is made of the stream's id.
    """
    local = without_file(path)
    if in_database(local):
        with open_store(local) as store:
            return _own_folder(), f"{_digest(f'{store.stream} {producer}')}.lock", 0o600
    if "://" not in local:
        return Path(local), f"host-{_digest(producer)}.lock", 0o666
    return _own_folder(), f"{_digest(f'{path} {producer} {os.getpid()}')}.lock", 0o600


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _own_folder() -> Path:
    """The folder for the locks of this user, which it makes; nobody else may look into it.

    It is the same for all processes, whatever their TMPDIR. Only where somebody else has taken its name, or nobody may
    write there, it is in the folder for temporary files.
    """
    folders = [Path(place) / f"rowtime-{os.getuid()}" for place in (SHARED, tempfile.gettempdir())]
    for folder in folders:
        with suppress(OSError):
            folder.mkdir(mode=0o700)
        with suppress(OSError):
            found = folder.lstat()
            if stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077:
                return folder
    shown = " and ".join(map(str, dict.fromkeys(folders)))
    raise StoreUnavailableError(
        f"The lock of a hosted adapter needs a folder that this user alone has (mode 0700), or others could hold it or "
        f"redirect it, and {shown} cannot be made, or is not such a folder. Remove it, or set TMPDIR to a folder "
        "of this user for all its processes."
    )


def _opened(folder: Path, name: str, mode: int) -> int:
    """Opens the file, which no link leads to, in the folder."""
    place = os.open(folder, FOLDER)
    try:
        return lock_inside(folder / name, place, mode)
    finally:
        os.close(place)


def _hosted_already(path: str, producer: str, pid: str) -> StoreUnavailableError:
    return StoreUnavailableError(
        f"Adapter {producer!r} is already hosted on {path}, by process {pid}. Two hosts would fence each other: "
        "end that process first, or give this adapter another producer name.",
        path=path,
        producer=producer,
        pid=pid,
    )
