"""The folder beside the periods of Parquet files: the drain's state, its lock, and unfinished files.

Law (*nothing elsewhere*): whatever somebody has put into the folder of the periods, files are made, read and removed
below it alone: no link in it is followed.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from spark_rowtime.drain.properties import require_times
from spark_rowtime.drain.tables.loading import loading
from spark_rowtime.drain.tables.pattern import split_pattern
from spark_rowtime.errors import StoreUnavailableError
from spark_rowtime.store.disk import file_inside, folder_inside, lock_inside, new_file_inside
from spark_rowtime.store.forks import Descriptor, no_fork
from spark_rowtime.store.local.sparse import is_there
from spark_rowtime.types.json_values import load

FOLDER = "_rowtime"
"""Its name. Spark and others skip such names."""
STATE, _NEW, _LOCK = "state.json", "state.new", "lock"


def read_root_state(target: str) -> dict[str, str]:
    """Bound and position of the folders of a target, with or without a pattern."""
    return read_state(Path(split_pattern(target.removeprefix("parquet:"))[0]))


def read_state(root: Path) -> dict[str, str]:
    """Bound and position of the folders below ``root``; empty if no drain has written there.

    Raises StoreUnavailableError if the file cannot be read, StoreCorruptError if it is none that a drain has written.
    """
    file = root / FOLDER / STATE
    with loading(f"parquet:{root}", file):
        try:
            with folder_inside(root, FOLDER) as work, os.fdopen(file_inside(file, work, os.O_RDONLY)) as opened:
                if not is_there(opened.fileno(), 0, size := os.fstat(opened.fileno()).st_size):
                    raise ValueError("it is nearly all holes")
                state = load(opened.read(size))
        except FileNotFoundError:
            return {}
        if not isinstance(state, dict) or not all(isinstance(value, str) for value in state.values()):
            raise ValueError("it is no object with texts")
    require_times(state, f"parquet:{root}", str(file))
    return state


def write_state(root: Path, text: str) -> None:
    """Replaces the state: after a crash it has the old text or the new one."""
    with folder_inside(root, FOLDER) as work:
        with os.fdopen(new_file_inside(root / FOLDER / _NEW, work), "w") as new:
            new.write(text)
            new.flush()
            os.fsync(new.fileno())
        os.replace(_NEW, STATE, src_dir_fd=work, dst_dir_fd=work)
        os.fsync(work)


def new_file(root: Path, name: str) -> BinaryIO:
    """Makes an unfinished file of a period, and opens it for writing."""
    with folder_inside(root, FOLDER) as work:
        return os.fdopen(new_file_inside(root / FOLDER / name, work), "wb")


def publish(root: Path, name: str, folder: str) -> None:
    """Moves a finished file to the folder of its period. Both are on the disk when it returns."""
    with folder_inside(root, FOLDER) as work, folder_inside(root, folder, makes=True) as to:
        made = file_inside(root / FOLDER / name, work, os.O_RDONLY)
        try:
            os.fsync(made)
        finally:
            os.close(made)
        os.replace(name, name, src_dir_fd=work, dst_dir_fd=to)
        os.fsync(to)


def remove_unfinished(root: Path) -> None:
    """Removes the files of periods that a drain which ended has not finished."""
    with folder_inside(root, FOLDER) as work:
        for name in os.listdir(work):  # noqa: PTH208  (a descriptor)
            if name.endswith(".parquet"):
                os.unlink(name, dir_fd=work)


@contextmanager
def writing(target: str) -> Iterator[None]:
    """An error of the file system says that the folders cannot be written (StoreUnavailableError)."""
    try:
        yield
    except OSError as error:
        raise StoreUnavailableError(
            f"{target} cannot be written: {error}. Nothing is lost: start the drain again once there is room, or the "
            "cause is gone; it continues with the first period that is not complete.",
            path=target,
        ) from error


def locked(root: Path, target: str) -> Descriptor:
    """Makes the folder, and returns the descriptor of its lock; StoreUnavailableError if another drain has it."""
    with writing(target):
        root.mkdir(parents=True, exist_ok=True)
        with folder_inside(root, FOLDER, makes=True) as work, no_fork():
            lock = Descriptor(lock_inside(root / FOLDER / _LOCK, work))
        try:
            if (pid := lock.take()) is not None:
                raise StoreUnavailableError(
                    f"Another drain writes to {target}: process {pid}. End it first.", path=target, pid=pid
                )
        except BaseException:
            lock.close()
            raise
    return lock
