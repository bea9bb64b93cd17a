"""Recognises in a task whether it sees the directory of a stream, as the driver does, or runs on another machine."""

import os
import socket
from pathlib import Path
from typing import NamedTuple, Self

from spark_rowtime.errors import StoreUnavailableError
from spark_rowtime.store import in_database, without_file
from spark_rowtime.store.steady_clock import boot_id


class DirectoryMark(NamedTuple):
    """Which folder the driver sees above the directory of a stream: machine, device and inode.

    It stays the same when the stream is created, or deleted.
    """

    path: str
    folder: str
    machine: str
    device: int
    inode: int

    @classmethod
    def of(cls, path: str) -> Self | None:
        """Returns the mark of the stream at ``path``, on the driver; None if it is in no directory."""
        if in_database(path):
            return None
        above = Path(os.path.realpath(without_file(path))).parents
        folder = next(folder for folder in above if folder.exists())
        return cls(path, str(folder), _machine(), *_numbers(str(folder)))

    def require_same(self) -> None:
        """Raises StoreUnavailableError if this process sees another folder there, or none."""
        if (_machine(), *_numbers(self.folder)) != (self.machine, self.device, self.inode):
            raise StoreUnavailableError(
                f"The stream {self.path} is in a directory of the driver's machine, which the executor on "
                f"{socket.gethostname()} does not see. On a cluster, use a stream in a database: rt.copyStream copies "
                "it to postgresql://host:port/database/stream. Or run Spark on that machine alone (master local[*]).",
                path=self.path,
            )


def _machine() -> str:
    """Returns what differs between two machines, as long as neither starts again."""
    return boot_id() or socket.gethostname()


def _numbers(folder: str) -> tuple[int, int]:
    try:
        found = Path(folder).stat()
    except OSError:
        return 0, 0
    return found.st_dev, found.st_ino
