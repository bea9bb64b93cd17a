"""A process that copies a stream into a database until it is killed."""

import os
import signal
from collections.abc import Callable
from typing import Any

from spark_rowtime.store import copy_store
from spark_rowtime.store.location import to_location
from spark_rowtime.store.postgres import history


def copied_until(_pipe: Any, source: str, to: str, folder: str, count: int) -> None:
    """Copies, an event at a time, and dies before the ``count``-th step, or before the stream is made."""
    left = [count]
    history.PORTION_EVENTS = 1
    for name in ("_flush", "_write", "_make"):
        setattr(history._Import, name, _dying(getattr(history._Import, name), left, name == "_make"))
    copy_store(source, to, location=to_location(folder))


def _dying(function: Callable[..., Any], left: list[int], last: bool) -> Callable[..., Any]:
    def call(*arguments: Any) -> Any:
        left[0] -= 1
        if last or not left[0]:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*arguments)

    return call
