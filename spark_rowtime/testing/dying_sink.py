"""DyingSink and DyingSinks: a sink or consumer, or several sinks, that kill their process at one of their calls."""

import os
import signal
from typing import Any

from spark_rowtime.adapter.sinks import Sinks
from spark_rowtime.producer.sink import StreamSink

CALLS = ("sendRow", "sendRows", "sendRowtimeBound", "flush")
"""The calls at which a process may die."""


class _Calls:
    """Counts calls, and kills the process (SIGKILL) at number ``dies_at``, before or after the call takes place."""

    def __init__(self, dies_at: int | None, before: bool) -> None:
        self._dies_at, self._before = dies_at, before
        self.count = 0

    def counted(self, call: Any) -> Any:
        def counted(*args: Any, **keywords: Any) -> Any:
            self.count += 1
            if self.count == self._dies_at and self._before:
                os.kill(os.getpid(), signal.SIGKILL)
            result = call(*args, **keywords)
            if self.count == self._dies_at:
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        return counted


class DyingSink:
    """Passes every call on to ``sink``, counts those of CALLS, and kills the process (SIGKILL) at one of them.

    ``dies_at``: the number of the call, from 1; None: never. ``before``: whether the process dies before the call is
    passed on, or after it. ``among``: the calls of which these are a part.
    """

    def __init__(
        self, sink: Any, dies_at: int | None = None, *, before: bool = True, among: _Calls | None = None
    ) -> None:
        self._sink, self._calls = sink, among or _Calls(dies_at, before)

    @property
    def calls(self) -> int:
        """The number of calls so far."""
        return self._calls.count

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._sink, name)
        return self._calls.counted(found) if name in CALLS else found


class DyingSinks:
    """Passes every call on to a ``Sinks``. The calls of all the sinks that it opens are counted together."""

    def __init__(self, sinks: Sinks, dies_at: int | None = None, *, before: bool = True) -> None:
        self._sinks, self._calls = sinks, _Calls(dies_at, before)
        self.opened: list[StreamSink] = []

    @property
    def calls(self) -> int:
        """The number of calls so far, of all sinks."""
        return self._calls.count

    @property
    def producers(self) -> tuple[str, ...]:
        """The names of the producers that are open."""
        return self._sinks.producers

    def open(self, producer: str, **options: Any) -> DyingSink:
        """Opens a producer."""
        self.opened.append(self._sinks.open(producer, **options))
        return DyingSink(self.opened[-1], among=self._calls)
