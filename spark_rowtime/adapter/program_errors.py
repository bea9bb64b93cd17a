"""Tells errors of an adapter's program, which recur however often it is restarted, from failures of its feed."""

import sysconfig
from pathlib import Path
from types import FrameType

from spark_rowtime.errors import (
    ExtraNotInstalledError,
    InvalidOptionError,
    NotSerializableError,
    RowtimeAheadError,
    StreamCompleteError,
    UnknownOptionError,
)

ALWAYS = (
    *(SyntaxError, ImportError, InvalidOptionError, UnknownOptionError, NotSerializableError, StreamCompleteError),
    *(RowtimeAheadError, ExtraNotInstalledError, SystemError),
)
"""Errors that are taken for errors of the program wherever they are raised.

A client in C that calls Python may make a SystemError of a signal's exception, such as a KeyboardInterrupt.
"""
BY_PLACE = (TypeError, AttributeError, NameError, NotImplementedError)
"""Errors that are taken for errors of the program unless a library raises them.

A library's network code may raise a TypeError or an AttributeError when a connection ends ("'NoneType' object has no
attribute 'readline'"). This is a failure of the feed.
"""
_LIBRARIES = tuple(
    {Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib", "purelib", "platlib")}
)
_INSTALLED = ("site-packages", "dist-packages")


def is_program_error(error: BaseException, adapter: type) -> bool:
    """Whether ``error``, raised by an instance of ``adapter``, is an error of its program."""
    if isinstance(error, ALWAYS):
        return True
    return isinstance(error, BY_PLACE) and not _raised_by_library(error, adapter)


def _raised_by_library(error: BaseException, adapter: type) -> bool:
    trace = error.__traceback__
    if trace is None:
        return False
    while trace.tb_next is not None:
        trace = trace.tb_next
    ours = {_package(adapter.__module__), _package(__name__)}
    frame = trace.tb_frame
    return _package(frame.f_globals.get("__name__") or "") not in ours and _is_installed(frame)


def _package(module: str) -> str:
    return module.partition(".")[0]


def _is_installed(frame: FrameType) -> bool:
    """Whether the code of ``frame`` is in the standard library or among the installed packages."""
    name = frame.f_code.co_filename
    if name.startswith("<frozen "):
        return True
    file = Path(name).resolve()
    return any(part in _INSTALLED for part in file.parts) or any(file.is_relative_to(folder) for folder in _LIBRARIES)
