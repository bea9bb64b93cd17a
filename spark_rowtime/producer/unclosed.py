"""Sinks that nobody closed: they are ended when they are garbage collected, or when the process exits."""

import atexit
import os
import sys
import threading
import warnings
import weakref
from typing import Protocol

from spark_rowtime.errors import SinkNotClosedWarning

PATIENCE_SECONDS = 2.0
"""How long the thread in which a sink is collected waits for its last commit. It may hold a lock that this needs."""
EXIT_PATIENCE_SECONDS = 10.0
"""How long the exit of the process waits for a call, or a last commit, that another thread is in."""


class Unclosed(Protocol):
    """A sink that may still be open."""

    def end_unclosed(self) -> str:
        """Commits what may be committed, and frees what is open.

        What to warn of; empty where the sink was closed, or is another process's.
        """


_OPEN: "weakref.WeakSet[Unclosed]" = weakref.WeakSet()
_ENDING: "weakref.WeakSet[threading.Thread]" = weakref.WeakSet()
"""The threads in which collected sinks are being ended."""
_watching: int | None = None


def watch(sink: Unclosed) -> None:
    """When the process exits, ``sink`` is ended, unless it was closed or collected before."""
    global _watching  # noqa: PLW0603  (a process has one exit)
    _OPEN.add(sink)
    if _watching != os.getpid():
        _watching = os.getpid()
        _at_exit()


def collected(sink: Unclosed) -> None:
    """Ends ``sink``, which is being garbage collected.

    In a thread of its own: a collection may come in the midst of anything, such as a commit of another sink.
    """
    thread = threading.Thread(target=_end, args=(sink,), name="rowtime-unclosed", daemon=True)
    try:
        thread.start()
    except RuntimeError:  # no more threads, or the interpreter ends
        _end(sink)
    else:
        _ENDING.add(thread)
        thread.join(PATIENCE_SECONDS)


def _at_exit() -> None:
    atexit.register(_end_all, os.getpid())
    multiprocessing = sys.modules.get("multiprocessing.util")
    if multiprocessing is not None:  # its processes end without atexit
        multiprocessing.Finalize(None, _end_all, args=(os.getpid(),), exitpriority=0)


def _end_all(process: int) -> None:
    if process == os.getpid():
        for sink in list(_OPEN):
            _end(sink)
        for thread in list(_ENDING):
            thread.join(EXIT_PATIENCE_SECONDS)


def _end(sink: Unclosed) -> None:
    said = sink.end_unclosed()
    if said:
        warnings.warn(said, SinkNotClosedWarning, stacklevel=1)


def not_closed(producer: str, path: str, leased: bool, outcome: str) -> str:
    """The text of the warning. ``outcome``: what became of the rows that were sent."""
    until = "until its lease ends" if leased else "until it is opened again, or detached"
    return (
        f"The sink of producer {producer!r} on {path} was not closed. {outcome} The producer holds the stream's bound "
        f"back {until}. Write 'with rt.openSink(...) as sink:', or call close() in the end."
    )


def _after_fork() -> None:
    _OPEN.clear()
    _ENDING.clear()


os.register_at_fork(after_in_child=_after_fork)
