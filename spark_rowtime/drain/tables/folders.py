"""The folder beside the periods of Parquet files: the drain's state, its lock, and unfinished files."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from spark_rowtime.drain.properties import require_times
from spark_rowtime.drain.tables.loading import loading
from spark_rowtime.drain.tables.pattern import split_pattern
from spark_rowtime.errors import StoreUnavailableError
from spark_rowtime.store.disk import sync
from spark_rowtime.store.forks import Descriptor, no_fork
from spark_rowtime.types.json_values import load

FOLDER = "_rowtime"
"""Its name. Spark and others skip such names."""
STATE, _LOCK = "state.json", "lock"


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
            state = load(file.read_text())
        except FileNotFoundError:
            return {}
        if not isinstance(state, dict) or not all(isinstance(value, str) for value in state.values()):
            raise ValueError("it is no object with texts")
    require_times(state, f"parquet:{root}", str(file))
    return state


def write_whole(file: Path, text: str) -> None:
    """Replaces a file: after a crash it has the old text or the new one."""
    new = file.with_suffix(".new")
    new.write_text(text)
    sync(new)
    new.replace(file)
    sync(file.parent)


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


def locked(work: Path, target: str) -> Descriptor:
    """Makes the folder, and returns the descriptor of its lock; StoreUnavailableError if another drain has it."""
    with writing(target):
        work.mkdir(parents=True, exist_ok=True)
        with no_fork():
            lock = Descriptor(os.open(work / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666))
        try:
            if (pid := lock.take()) is not None:
                raise StoreUnavailableError(
                    f"Another drain writes to {target}: process {pid}. End it first.", path=target, pid=pid
                )
        except BaseException:
            lock.close()
            raise
    return lock
