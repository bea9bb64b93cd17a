"""Watches the streams and tables while somebody looks, and tells each reader what has changed."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterable
from typing import Any

from starlette.concurrency import run_in_threadpool

from spark_rowtime.serve.call import ANSWER_SECONDS, NO_ANSWER, PATIENCE_SECONDS, Call, begun
from spark_rowtime.serve.connections import most_connections
from spark_rowtime.serve.served import Served
from spark_rowtime.serve.watched import WatchedStream
from spark_rowtime.serve.watched_table import WatchedTable
from spark_rowtime.types.json_values import plain

SHORTEST_PAUSE_SECONDS = 0.2
"""The pause between two looks at streams in which nothing happens."""
CPU_SHARE = 0.035
"""The share of a core that looking may take."""
MOST_CREDIT_SECONDS = 0.4
"""How much CPU time looking may save up while nothing happens, so that a change is seen soon."""
LONGEST_QUEUE = 50
"""A reader that is so many messages behind is disconnected. Its browser connects again, and gets the whole state."""
ALIVE_SECONDS = 15.0
"""After this time without a message a comment is sent, by which a connection that is gone is noticed."""
_COMMENT = b": nothing new\n\n"

_Queue = asyncio.Queue[bytes | None]
_Watched = WatchedStream | WatchedTable


class Watcher:
    """The streams and tables that are served, and those who read about them as server-sent events."""

    def __init__(self, served: Served) -> None:
        self._served = served
        self._watched: dict[str, _Watched] = {}
        self._looks: dict[str, Call[Any]] = {}
        """The looks that are under way."""
        self._silent: set[str] = set()
        """What was shown as not answering. Its next answer gives the whole."""
        self._in_part: set[str] = set()
        """What a reader has got in the midst of a look. The answer of this one gives the whole, too."""
        self._cpu_seconds = 0.0
        self._queues: set[_Queue] = set()
        self._looking = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None

    @property
    def full(self) -> bool:
        """Whether as many read as may: half of the connections, so that others are left for questions."""
        return len(self._queues) >= most_connections() // 2

    async def events(self) -> AsyncIterator[bytes]:
        """Yields the whole state of each stream, and then each change, until the reader disconnects."""
        queue: _Queue = asyncio.Queue()
        await self._add(queue)
        try:
            while (message := await self._next(queue)) is not None:
                yield message
        finally:
            self._queues.discard(queue)

    async def _next(self, queue: _Queue) -> bytes | None:
        try:
            return await asyncio.wait_for(queue.get(), ALIVE_SECONDS)
        except TimeoutError:
            return _COMMENT

    async def _add(self, queue: _Queue) -> None:
        """Adds a reader, between two looks: what it gets first is the state from which the next changes go on.

        One that came at the same time as others, and finds that these are as many as may, is disconnected.
        """
        async with self._looking:
            if self.full:
                _end(queue)
                return
            if not self._watched:
                self._tell(await run_in_threadpool(self._look))
            for message in await run_in_threadpool(self._whole):
                queue.put_nowait(message)
            self._queues.add(queue)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        """Looks until nobody reads. After an error that nobody expected, readers connect again rather than wait."""
        try:
            await self._look_again_and_again()
        finally:
            self.end()

    async def _look_again_and_again(self) -> None:
        credit, earned_at = MOST_CREDIT_SECONDS, time.monotonic()
        while self._queues:
            async with self._looking:
                messages, cost = await run_in_threadpool(self._measured_look)
                self._tell(messages)
            now = time.monotonic()
            credit = min(credit + CPU_SHARE * (now - earned_at), MOST_CREDIT_SECONDS) - cost
            earned_at = now
            await asyncio.sleep(max(SHORTEST_PAUSE_SECONDS, -credit / CPU_SHARE))

    def _tell(self, messages: Iterable[bytes]) -> None:
        for message in messages:
            for queue in list(self._queues):
                if queue.qsize() < LONGEST_QUEUE + len(self._watched):
                    queue.put_nowait(message)
                else:
                    self._queues.discard(queue)
                    _end(queue)

    def _measured_look(self) -> tuple[list[bytes], float]:
        begin, self._cpu_seconds = time.thread_time(), 0.0
        return self._look(), time.thread_time() - begin + self._cpu_seconds

    def _look(self) -> list[bytes]:
        """Looks at each stream and table; returns the changes."""
        paths, tables = self._served.paths(), self._served.tables
        gone = [path for path in self._watched if path not in paths and path not in tables]
        for path in paths:
            self._watched.setdefault(path, WatchedStream(path, self._served))
        for path in tables:
            self._watched.setdefault(path, WatchedTable(path, self._served))
        for path in gone:
            del self._watched[path]
            self._looks.pop(path, None)
            self._silent.discard(path)
            self._in_part.discard(path)
        removed = [event_of({"stream": path, "removed": True}) for path in gone]
        looks = begun(self._watched.values(), lambda watched: self._looks.pop(watched.path, None) or Call(watched.look))
        changes = (self._change(watched, look) for watched, look in looks if look is not None)
        return removed + [event_of(change) for change in changes if change is not None]

    def _whole(self) -> list[bytes]:
        self._in_part.update(self._looks)
        return [event_of(self._known(watched)) for watched in self._watched.values()]

    def _change(self, watched: _Watched, look: Call[Any]) -> Any:
        """Returns what a look has found; None if nothing has changed, or it goes on."""
        path = watched.path
        if not look.done_within(PATIENCE_SECONDS):
            self._looks[path] = look
            if path in self._silent or not look.lasts(ANSWER_SECONDS):
                return None
            self._silent.add(path)
            return self._known(watched)
        self._cpu_seconds += look.cpu_seconds
        change = look.result()
        if path in self._silent or path in self._in_part:
            self._silent.discard(path)
            self._in_part.discard(path)
            return watched.whole()
        return change

    def _known(self, watched: _Watched) -> Any:
        known = watched.whole()
        if watched.path in self._looks and not known["facts"]:
            self._silent.add(watched.path)
        return {**known, "error": NO_ANSWER} if watched.path in self._silent else known

    def end(self) -> None:
        """Disconnects all readers, so that the server can end."""
        for queue in self._queues:
            _end(queue)


def _end(queue: _Queue) -> None:
    while not queue.empty():
        queue.get_nowait()
    queue.put_nowait(None)


def event_of(message: Any) -> bytes:
    """Returns a message as a server-sent event. JSON has no line break."""
    text = json.dumps(message, ensure_ascii=False, allow_nan=False, default=plain)  # much faster than plain() on all
    return f"data: {text}\n\n".encode()
