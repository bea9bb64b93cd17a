"""Where adapters are looked for: on Python's path, last of all in the current folder, and in a child not there at all.

Whoever can put a file into the folder in which a program was started must not replace a module of it by that.
"""

import os
import sys
from pathlib import Path

_VARIABLE = "PYTHONPATH"


def add_current_folder() -> None:
    """Lets modules of the current folder be imported that are nowhere else."""
    here = _current_folder()
    if here and "" not in sys.path and here not in sys.path:
        sys.path.append(here)


def move_current_folder_back() -> None:
    """Puts the current folder behind all others, where Python has put it first, as with ``python -m``."""
    rest = _without_current_folder()
    if len(rest) < len(sys.path):
        sys.path[:] = [*rest, *filter(None, [_current_folder()])]


def for_child() -> str:
    """Returns the ``PYTHONPATH`` of a child: the path of this process, in its order, without the current folder."""
    return os.pathsep.join(_without_current_folder())


def _current_folder() -> str:
    """Empty if somebody has removed it."""
    try:
        return str(Path.cwd())
    except FileNotFoundError:
        return ""


def _without_current_folder() -> list[str]:
    """Returns Python's path; the current folder is there only if PYTHONPATH names it."""
    here = _current_folder()
    if not here:
        return [entry for entry in sys.path if entry]
    named = [str(Path(entry).absolute()) for entry in os.environ.get(_VARIABLE, "").split(os.pathsep) if entry]
    return [entry for entry in sys.path if entry and (entry != here or here in named)]
