"""What a Python worker of Spark is spared: work before and after each task whose result is the same each time."""

import gc
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from zipimport import zipimporter


def settle() -> None:
    """Called in a worker by each task of this library.

    Spark 4.0 and 4.1 have each worker forget before each task where modules are, since files may have been added, and
    Python 3.11 then reads the lists of files in PySpark's archive and in Spark's jar again: tenths of a second. After
    each task every Spark has the worker look for garbage among all that its modules have made.
    """
    for finder in sys.path_importer_cache.values():
        if isinstance(finder, zipimporter) and "invalidate_caches" not in vars(finder):
            setattr(finder, "invalidate_caches", _if_changed(finder))  # noqa: B010  (of this one, not of the class)
    _keep_modules()


def _if_changed(finder: zipimporter) -> Callable[[], None]:
    """Returns what reads the list of files again if the archive is another one by then."""
    known: tuple[int, int, int] | None = None  # the list may be of an earlier one than is there now

    def invalidate_caches() -> None:
        nonlocal known
        now = _file(finder.archive)
        if now is None or now != known:
            known = now
            zipimporter.invalidate_caches(finder)

    return invalidate_caches


def _file(archive: str) -> tuple[int, int, int] | None:
    try:
        found = Path(archive).stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


@cache
def _keep_modules() -> None:
    """Garbage is not looked for among what there is now, once in a process."""
    gc.collect()
    gc.freeze()
