"""Bounded: the connections of the server, of which nobody can hold all, or one for ever by doing nothing."""

import asyncio
import resource
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

REQUEST_SECONDS = 5.0
"""How long a client may take to send a whole request, and to take what it has asked for."""
_LEAST, _MOST, _SHARE = 16, 256, 4


def most_connections() -> int:
    """How many connections there may be: a share of the files that this process may open, as streams need some."""
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return max(_LEAST, min(files // _SHARE, _MOST)) if files > 0 else _MOST


class Bounded(H11Protocol):
    """One connection.

    Laws: a client that has not sent a whole request, or does not take an answer, for REQUEST_SECONDS is disconnected. A
    connection that comes when there are as many as there may be takes the place of the one that has waited longest
    without a request; where none waits, it is refused.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._limit: asyncio.TimerHandle | None = None
        self._stuck: asyncio.TimerHandle | None = None
        self.since = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Called with a new connection."""
        super().connection_made(transport)
        self.since = self.loop.time()
        self._watch()
        if len(self.connections) > most_connections():
            waiting = [one for one in self.connections if isinstance(one, Bounded) and one.waits]
            oldest = min(waiting, key=lambda one: one.since)
            self.connections.discard(oldest)
            oldest.transport.abort()

    @property
    def waits(self) -> bool:
        """Whether no request is under way."""
        return self.cycle is None or self.cycle.response_complete

    def data_received(self, data: bytes) -> None:
        """Called with what the client has sent."""
        super().data_received(data)
        self._watch()

    def _watch(self) -> None:
        """Counts the time from the first byte of a request to its last."""
        if not self.waits:
            self._end(self._limit)
            self._limit = None
        elif self._limit is None:
            self._limit = self.loop.call_later(REQUEST_SECONDS, self._late)

    def on_response_complete(self) -> None:
        """Called when an answer is complete."""
        self.since = self.loop.time()
        super().on_response_complete()

    def _late(self) -> None:
        self._limit = None
        if self.waits:
            self.transport.abort()

    def pause_writing(self) -> None:
        """Called when the client does not take what is sent."""
        self._stuck = self.loop.call_later(REQUEST_SECONDS, self.transport.abort)
        super().pause_writing()

    def resume_writing(self) -> None:
        """Called when it takes it again."""
        self._end(self._stuck)
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Called at the end of the connection."""
        self._end(self._limit)
        self._end(self._stuck)
        super().connection_lost(exc)

    @staticmethod
    def _end(timer: asyncio.TimerHandle | None) -> None:
        if timer is not None:
            timer.cancel()
