"""The disk: what survives a power failure, and folders that others may write into, without following their links."""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
FILE = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
"""To open a pipe would wait for who is at its other end."""
_NO_FILE = {errno.ELOOP, errno.EISDIR, errno.ENXIO}
_NO_FOLDER = {errno.ELOOP, errno.ENOTDIR}
"""What the system says of a link or a pipe, and of something else that is there, in place of a file or a folder."""


def sync(path: Path) -> None:
    """Puts a file, or the names in a folder, on the disk."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


@contextmanager
def folder_inside(root: Path, inner: str | Path, *, makes: bool = False) -> Iterator[int]:
    """Yields a descriptor of the folder ``inner`` below ``root``.

    ``root`` may be reached by links. One below it is refused, by a FileExistsError that names it. With ``makes``,
    folders that are not there are made, and their names are on the disk.
    """
    place, fd = root, os.open(root, FOLDER)
    try:
        for part in Path(inner).parts:
            place, above = place / part, fd
            fd = _folder_in(place, above, makes)
            os.close(above)
        yield fd
    finally:
        os.close(fd)


def _folder_in(place: Path, of: int, makes: bool) -> int:
    if makes:
        with suppress(FileExistsError):
            os.mkdir(place.name, dir_fd=of)
        os.fsync(of)
    try:
        return os.open(place.name, FOLDER | os.O_NOFOLLOW, dir_fd=of)
    except OSError as error:
        if error.errno in _NO_FOLDER:
            raise _strange(place, "folder") from None
        raise


def file_inside(place: Path, of: int, flags: int, mode: int = 0o666) -> int:
    """Opens the file ``place`` in its folder ``of``. Raises FileExistsError, which names it, if it is no file."""
    try:
        fd = os.open(place.name, flags | FILE, mode, dir_fd=of)
    except OSError as error:
        if error.errno in _NO_FILE:
            raise _strange(place, "file") from None
        raise
    if stat.S_ISREG(os.fstat(fd).st_mode):
        return fd
    os.close(fd)
    raise _strange(place, "file")


def new_file_inside(place: Path, of: int) -> int:
    """Makes the file ``place`` in its folder ``of``, in place of what has the name, and opens it for writing."""
    with suppress(FileNotFoundError):
        os.unlink(place.name, dir_fd=of)
    return file_inside(place, of, os.O_WRONLY | os.O_CREAT | os.O_EXCL)


def lock_inside(place: Path, of: int, mode: int = 0o666) -> int:
    """Opens the file ``place`` in its folder ``of``, for a lock. It is written to, so it has no other name."""
    fd = file_inside(place, of, os.O_RDWR | os.O_CREAT, mode)
    if os.fstat(fd).st_nlink == 1:
        return fd
    os.close(fd)
    raise OSError(errno.EEXIST, f"{place} has another name elsewhere: remove it")


def _strange(place: Path, what: str) -> OSError:
    return OSError(
        errno.EEXIST, f"{place} is no {what}, but a link, which is not followed, or something else: remove it"
    )
