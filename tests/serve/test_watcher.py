"""The readers of the events: what happens to those that are slow, and to all when looking fails."""

import asyncio
import json
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any, cast

import pytest

import spark_rowtime as rt
from spark_rowtime.serve import watched
from spark_rowtime.serve import watcher as module
from spark_rowtime.serve.served import Served
from spark_rowtime.serve.watched import WatchedStream
from spark_rowtime.serve.watcher import Watcher


def run(work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    """Runs it in a thread of its own: the browser of other tests has an event loop in this one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(lambda: asyncio.run(asyncio.wait_for(work(), 120))).result()


def test_a_slow_reader_is_disconnected_and_others_go_on(orders: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SHORTEST_PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(module, "LONGEST_QUEUE", 1)

    async def work() -> tuple[int, int]:
        watcher = Watcher(Served([orders]))
        slow, fast = watcher.events(), watcher.events()
        assert (await anext(slow)).startswith(b"data: ")
        seen = 0
        with rt.openSink(orders, producer="Berlin") as sink:
            for second in range(10):
                sink.sendRowtimeBound(f"2026-01-05T10:00:{second:02}Z")
                sink.flush()
                while f"10:00:{second:02}Z".encode() not in await anext(fast):
                    seen += 1
        return len([message async for message in slow]), seen

    left, _ = run(work)
    assert left <= 1


def test_of_readers_that_come_at_once_no_more_than_may_are_told(orders: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "most_connections", lambda: 8)

    async def work() -> list[bool]:
        watcher = Watcher(Served([orders]))
        assert not watcher.full
        readers = [watcher.events() for _ in range(20)]
        first = await asyncio.gather(*(anext(reader, b"") for reader in readers))
        return [bool(message) for message in first]

    assert sum(run(work)) == 4


def test_when_looking_fails_readers_are_disconnected(orders: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> int:
        watcher = Watcher(Served([orders]))
        events = watcher.events()
        first = json.loads((await anext(events)).removeprefix(b"data: "))
        assert first["full"]

        def broken(self: WatchedStream) -> None:
            raise ValueError("a bug")

        monkeypatch.setattr(WatchedStream, "look", broken)
        rest = len([message async for message in events])
        watcher._task.exception()
        return rest

    assert run(work) <= 1


def test_what_comes_with_a_later_reader_is_told_to_the_earlier_ones(
    orders: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder that has lost its streams, and gets one again: whoever comes then is not the only one to learn of it."""
    monkeypatch.setattr(module, "SHORTEST_PAUSE_SECONDS", 60.0)
    paths, looks = list[str](), list[int]()

    def served() -> list[str]:
        looks.append(len(paths))
        return [*paths]

    async def work() -> bool:
        watcher = Watcher(cast("Served", SimpleNamespace(paths=served, tables=[])))
        early, late = watcher.events(), watcher.events()
        told = asyncio.create_task(anext(early))
        while len(looks) < 2:  # that of the reader itself, and the one after which the watcher pauses
            await asyncio.sleep(0.01)
        paths.append(orders)
        await anext(late)
        return b'"full": true' in await told

    assert run(work)


def test_who_comes_during_a_long_look_is_told_of_no_late_row_twice(
    orders: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watched, "TIMES_SECONDS", 0.0)
    served, asked, answered = Served([orders]), list[str](), threading.Event()
    why = served.why

    def slow(path: str) -> Any:
        asked.append(path)
        if len(asked) == 1:
            with rt.openSink(orders, producer="Berlin", onLate="reject") as sink:
                sink.sendRows([("2026-01-05T10:00:00Z", 1), ("2026-01-05T09:00:00Z", 1)])
        else:  # the look has the late row, and goes on
            answered.wait(60)
        return why(path)

    monkeypatch.setattr(served, "why", slow)

    async def work() -> list[Any]:
        watcher, late = Watcher(served), list[Any]()
        early, later = watcher.events(), watcher.events()
        await anext(early)
        while len(asked) < 2:
            await asyncio.sleep(0.01)
        for _ in range(2):  # what the page keeps
            message = json.loads((await anext(later)).removeprefix(b"data: "))
            answered.set()
            late = [*([] if message["full"] else late), *message["late"]]
        return late

    assert len(run(work)) == 1
