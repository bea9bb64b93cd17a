"""Ends sinks that were not closed, when they are garbage collected or when the process exits."""

import atexit
import os
import sys
import threading
import warnings
import weakref
from typing import Protocol

from spark_rowtime.errors import SinkNotClosedWarning

PATIENCE_SECONDS = 2.0
"""How long the thread in which a sink is collected waits for the sink's last commit.

The wait is limited, because that thread may hold a lock that the commit needs.
"""
EXIT_PATIENCE_SECONDS = 10.0
"""How long the exit of the process waits for a call or a last commit that another thread executes."""


class Unclosed(Protocol):
    """A sink that may still be open."""

    def end_unclosed(self) -> str:
        """Commits what may be committed, and frees what is open.

        Returns the text of a warning; it is empty if the sink was closed, or belongs to another process.
        """


_OPEN: "weakref.WeakSet[Unclosed]" = weakref.WeakSet()
_ENDING: "weakref.WeakSet[threading.Thread]" = weakref.WeakSet()
"""The threads in which collected sinks are being ended."""
_watching: int | None = None


def watch(sink: Unclosed) -> None:
    """Ends ``sink`` when the process exits, unless it was closed or collected before."""
    global _watching  # noqa: PLW0603  (a process has one exit)
    _OPEN.add(sink)
    if _watching != os.getpid():
        _watching = os.getpid()
        _at_exit()


def collected(sink: Unclosed) -> None:
    """Ends ``sink``, which is being garbage collected.

    This happens in a separate thread, because a collection may interrupt anything, such as a commit of another sink.
    """
    if sys.is_finalizing():  # no thread can start any more; Python 3.11 would wait for it forever
        _end(sink)
        return
    thread = threading.Thread(target=_end, args=(sink,), name="rowtime-unclosed", daemon=True)
    try:
        thread.start()
    except RuntimeError:  # the system has no more threads, or the interpreter exits
        _end(sink)
    else:
        _ENDING.add(thread)
        thread.join(PATIENCE_SECONDS)


def _at_exit() -> None:
    atexit.register(_end_all, os.getpid())
    multiprocessing = sys.modules.get("multiprocessing.util")
    if multiprocessing is not None:  # processes of multiprocessing exit without atexit
        multiprocessing.Finalize(None, _end_all, args=(os.getpid(),), exitpriority=0)


def _end_all(process: int) -> None:
    if process == os.getpid():
        for sink in list(_OPEN):
            try:
                _end(sink)
            except Exception:  # noqa: BLE001  (a warning may be an error; the other sinks must end, too)
                sys.excepthook(*sys.exc_info())
        for thread in list(_ENDING):
            thread.join(EXIT_PATIENCE_SECONDS)


def _end(sink: Unclosed) -> None:
    warning = sink.end_unclosed()
    if warning:
        warnings.warn(warning, SinkNotClosedWarning, stacklevel=1)


def not_closed(producer: str, path: str, leased: bool | None, outcome: str) -> str:
    """The text of the warning. ``outcome``: a sentence on what happened to the rows that were sent.

    ``leased``: whether the producer has a lease; None: this sink does not hold the stream's bound back any more.
    """
    until = {True: "until its lease ends", False: "until it is opened again, or detached"}
    holds = "" if leased is None else f" The producer holds the stream's bound back {until[leased]}."
    return (
        f"The sink of producer {producer!r} on {path} was not closed. {outcome}{holds} Write 'with rt.openSink(...) as "
        "sink:', or call close()."
    )


def _after_fork() -> None:
    _OPEN.clear()
    _ENDING.clear()


os.register_at_fork(after_in_child=_after_fork)
