"""The folders of a stream's directory, and the files in them.

Law (*nothing elsewhere*): whatever somebody has put into the directory, files are made, written and removed in the
stream's own folders alone, under the names of segments. Each call opens the folder that it uses, without following a
link, and names files relative to it.

A folder counts if its owner is that of the directory: who may write there, as a group does, could move another user's
folder to its place. Files have no such rule, since each user of a group makes some.
"""

import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from spark_rowtime.errors import StoreCorruptError, StreamNotFoundError
from spark_rowtime.store.disk import FILE, FOLDER, file_inside

SEGMENTS, FREE = "segments", "free"
"""The folders of a stream: its segments, and an empty marker file per segment that is free for appending."""
_NAME = re.compile(r"[0-9a-f]{16}\.arrow")


def new_name() -> str:
    """Returns the name of a new segment."""
    return os.urandom(8).hex() + ".arrow"


def absolute(path: str) -> Path:
    """Returns the path from the root on. Raises StreamNotFoundError if the current folder is gone."""
    try:
        return Path(path).absolute()
    except FileNotFoundError:
        raise StreamNotFoundError(
            f"{path} is a path from the current folder on, which somebody has removed. Change to another folder, or "
            "give a whole path.",
            path=path,
        ) from None


def is_segment(name: object) -> bool:
    """Whether it is the name of a segment. The catalog may name anything."""
    return isinstance(name, str) and _NAME.fullmatch(name) is not None


@contextmanager
def folder(stream: Path, name: str) -> Iterator[int]:
    """Yields a descriptor of the folder ``name`` of the stream. Raises StoreCorruptError if it is not the stream's."""
    directory = os.open(stream, FOLDER)
    try:
        fd = _opened(stream, name, directory)
    finally:
        os.close(directory)
    try:
        yield fd
    finally:
        os.close(fd)


def _opened(stream: Path, name: str, directory: int) -> int:
    found, owner = os.stat(name, dir_fd=directory, follow_symlinks=False), os.fstat(directory).st_uid
    if not stat.S_ISDIR(found.st_mode):
        raise not_of_stream(stream / name, "is a link or a file, and not a folder")
    fd = os.open(name, FOLDER | os.O_NOFOLLOW, dir_fd=directory)
    uid = os.fstat(fd).st_uid
    if uid != owner:
        os.close(fd)
        raise not_of_stream(stream / name, _of_another(uid, owner))
    return fd


def names(of: int) -> list[str]:
    """Returns the names of segments in a folder, sorted. Other names are nobody's concern."""
    return sorted(name for name in os.listdir(of) if is_segment(name))


def others(of: int) -> list[str]:
    """Returns what else is in a folder."""
    return sorted(set(os.listdir(of)) - set(names(of)))


def there(name: str, of: int) -> bool:
    """Whether a file of this name is in the folder."""
    try:
        return is_segment(name) and stat.S_ISREG(os.stat(name, dir_fd=of, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return False


def open_file(name: str, of: int, flags: int) -> int:
    """Opens a file of the folder. Raises FileNotFoundError if there is none; nor is a link, a pipe or a folder one."""
    if is_segment(name):
        with suppress(FileExistsError):
            return file_inside(Path(name), of, flags)
    raise FileNotFoundError(name)


def make_file(name: str, of: int) -> int:
    """Makes a file that is not there, and opens it."""
    return os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL | FILE, 0o666, dir_fd=of)


def mark(name: str, free: int) -> None:
    """Marks a segment as free."""
    with suppress(FileExistsError):
        os.close(make_file(name, free))


def remove(name: str, of: int) -> bool:
    """Removes a file of the folder. Returns False if there is none."""
    if not there(name, of):
        return False
    try:
        os.unlink(name, dir_fd=of)
    except FileNotFoundError:
        return False
    return True


def require_catalog(file: Path) -> None:
    """Raises StoreCorruptError if SQLite would follow what somebody else has put beside or in place of the catalog.

    SQLite opens files by their path. It rolls a journal back, and then removes a file that the journal names. No stream
    has a journal.
    """
    owner = os.stat(file.parent).st_uid  # noqa: PTH116
    for name in ("", "-wal", "-shm", "-journal"):
        one = f"{file}{name}"
        try:
            found = os.lstat(one)
        except FileNotFoundError:
            continue
        if name == "-journal" or not stat.S_ISREG(found.st_mode):
            raise not_of_stream(Path(one), "is not a file of a stream")
        if not name and found.st_uid != owner:
            raise not_of_stream(Path(one), _of_another(found.st_uid, owner))


def not_of_stream(place: Path, what: str) -> StoreCorruptError:
    """The error for something in the directory that the stream has not made."""
    return StoreCorruptError(
        f"{place} {what}: somebody has changed the directory of the stream. Nothing was written there. Find out who "
        "may write into it, and restore the directory from a copy.",
        file=str(place),
    )


def _of_another(uid: int, owner: int) -> str:
    return f"belongs to the user {uid}, and the stream's directory to {owner} (chown -R gives both to one)"
