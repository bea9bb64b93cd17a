"""The disk: what survives a power failure."""

import os
from pathlib import Path


def sync(path: Path) -> None:
    """Puts a file, or the names in a folder, on the disk."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
