"""DyingSink: a sink or consumer that kills its process at one of its calls."""

import os
import signal
from typing import Any

CALLS = ("sendRow", "sendRows", "sendRowtimeBound", "flush")
"""The calls at which a process may die."""


class DyingSink:
    """Passes every call on to ``sink``, counts those of CALLS, and kills the process (SIGKILL) at one of them.

    ``dies_at``: the number of the call, from 1; None: never. ``before``: whether the process dies before the call is
    passed on, or after it.
    """

    def __init__(self, sink: Any, dies_at: int | None = None, *, before: bool = True) -> None:
        self._sink, self._dies_at, self._before = sink, dies_at, before
        self.calls = 0

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._sink, name)
        return self._counted(found) if name in CALLS else found

    def _counted(self, call: Any) -> Any:
        def counted(*args: Any, **keywords: Any) -> Any:
            self.calls += 1
            if self.calls == self._dies_at and self._before:
                os.kill(os.getpid(), signal.SIGKILL)
            result = call(*args, **keywords)
            if self.calls == self._dies_at:
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        return counted
