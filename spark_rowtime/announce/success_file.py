"""SuccessFile: marks the folder of a complete period with an empty file, such as _SUCCESS."""

import os
from pathlib import Path

from spark_rowtime.announce.period import Period
from spark_rowtime.announce.target import NotTakenError
from spark_rowtime.errors import InvalidOptionError
from spark_rowtime.store.disk import sync

FILE_NAME = "_SUCCESS"
_LASTING = (PermissionError, NotADirectoryError, IsADirectoryError, FileExistsError)
"""Errors that a later attempt does not mend."""


class SuccessFile:
    """Creates an empty file for each period. A file that is there already is left as it is.

    The key of a period is its folder, or, if the last part begins with ``_`` or ``.``, the file. The file and the
    folders that were made for it are on the disk before the announcement counts as taken.
    """

    def announce(self, period: Period, call: str) -> None:  # noqa: ARG002
        """Creates the file."""
        file = file_of(period.key)
        try:
            _make(file)
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


def _make(file: Path) -> None:
    missing = [folder for folder in file.parents if not folder.exists()]
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("ab") as empty:
        os.fsync(empty.fileno())
    for folder in {file.parent, *(folder.parent for folder in missing)}:
        sync(folder)
