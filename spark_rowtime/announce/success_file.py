"""SuccessFile: marks the folder of a complete period with an empty file, such as _SUCCESS."""

import itertools
import os
from pathlib import Path

from spark_rowtime.announce.period import Period
from spark_rowtime.announce.target import NotTakenError
from spark_rowtime.errors import InvalidOptionError
from spark_rowtime.store.disk import file_inside, folder_inside, sync

FILE_NAME = "_SUCCESS"
_LASTING = (PermissionError, NotADirectoryError, IsADirectoryError, FileExistsError)
"""Errors that a later attempt does not mend."""


class SuccessFile:
    """Creates an empty file for each period. A file that is there already is left as it is.

    The key of a period is its folder, or, if the last part begins with ``_`` or ``.``, the file. The file and the
    folders that were made for it are on the disk before the announcement counts as taken. Below the last folder without
    a time in its name, no link is followed.
    """

    def __init__(self, pattern: str) -> None:
        fixed = itertools.takewhile(lambda part: "%" not in part, Path(pattern).parts)
        self._root = Path(*fixed).expanduser()

    def announce(self, period: Period, call: str) -> None:  # noqa: ARG002
        """Creates the file."""
        file = file_of(period.key)
        try:
            _make(self._root, file.relative_to(self._root))
        except OSError as error:
            raise NotTakenError(
                f"{file} cannot be created: {error.strerror or error}.", temporary=not isinstance(error, _LASTING)
            ) from None


def require_local(pattern: str) -> None:
    """Raises InvalidOptionError for a URL: it would become a folder with a strange name."""
    if "://" in pattern:
        raise InvalidOptionError(
            f"to=success-file:{pattern} is a URL, but _SUCCESS files are written to a file system of this machine. "
            "From Python, give a function that writes to the object store.",
            option="to",
            value=pattern,
        )


def file_of(text: str) -> Path:
    """The file that a key names."""
    path = Path(text).expanduser()
    named = path.name.startswith(("_", ".")) and not text.endswith("/")
    return path if named else path / FILE_NAME


def _make(root: Path, inner: Path) -> None:
    missing = [folder for folder in (root, *root.parents) if not folder.exists()]
    root.mkdir(parents=True, exist_ok=True)
    with folder_inside(root, inner.parent, makes=True) as folder:
        fd = file_inside(root / inner, folder, os.O_WRONLY | os.O_CREAT)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
        os.fsync(folder)
    for made in missing:
        sync(made.parent)
