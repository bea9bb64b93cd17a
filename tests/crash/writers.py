"""The work of writers until they are killed."""

import os
import resource
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import count
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

from spark_rowtime.store import local
from spark_rowtime.store.base import Store
from spark_rowtime.store.local import copy_local, create_local, open_local
from spark_rowtime.store.settings import StreamSettings
from spark_rowtime.types.alteration import columns_to_add
from tests.store.streams import SCHEMA, Writer, place

LARGE = [6 + n / 1000 for n in range(500)]
SENDS: list[tuple[list[list[float]], dict[str, Any]]] = [
    ([[1, 2]], {"floor": 2, "checkpoint": "1"}),
    ([[3], [4, 5]], {"floor": 5, "late": [1.5], "checkpoint": "2", "disorder": "[5]"}),
    ([], {"floor": 6, "checkpoint": "3"}),
    ([LARGE], {"floor": 9, "checkpoint": "4"}),
    ([[10]], {}),
    ([[11, 12], [13]], {"floor": 14, "checkpoint": "6"}),
]
"""What the story's first producer sends: trains, and the other arguments of the commit."""
CODE = str(Path(local.__file__).parent)


class Moment(NamedTuple):
    """A visit to a line of the store's code. It is known by the line: how many others are run before it can differ from
    life to life, as where a slow one looks for removed segments once more."""

    file: str
    line: int
    visit: int


def story(store: Store) -> Iterator[None]:
    """The life of two producers and a reader; at each ``yield`` the caller knows that the last step is done."""
    writer = Writer(store, "a", session="first", lease=30_000_000)
    yield
    for trains, more in SENDS:
        writer.send(*trains, **more)
        yield
    beside = Writer(store, "b")
    yield
    beside.send([20], floor=20)
    yield
    store.renew("a", writer.epoch)
    yield
    store.keep("reader", place(4))
    yield
    store.detach("a")
    yield
    store.gc(age=0)
    yield
    writer.send([15], [19, 21], floor=21)  # 15 and 19 have become late
    yield
    beside.leave()
    yield
    writer.leave()
    yield
    store.forget("reader")
    yield
    store.gc(age=0)
    yield
    store.close()
    yield


def again(store: Store) -> None:
    """The next process under the name of ``a`` repeats the last commit that landed, and sends the rest."""
    writer = Writer(store, "a", session="next")
    writer.number = max(writer.number - 1, 0)
    for trains, more in SENDS[writer.number :]:
        writer.send(*trains, **more)
    store.close()


def open_still(path: str, durability: str = "process") -> Store:
    """The stream at ``path`` with a clock that stands still, and segments that are full at once.

    So the same lines are run each time, also where a process stands still for a while.
    """
    store = open_local(path, durability, now=lambda: 0)
    store._looked_at, local.store.REMOVED_SECONDS = -inf, inf  # it looks for removed segments once
    store._writer._full = 1
    return store


def tell(pipe: Any, path: str) -> None:
    """Runs the story, and reports each step."""
    for step, _ in enumerate(story(open_still(path)), 1):
        pipe.send(step)


def create(pipe: Any, path: str) -> None:
    """Creates a stream, and reports it."""
    create_local(path, SCHEMA, StreamSettings())
    pipe.send(1)


def lines(pipe: Any, work: Callable[..., object], path: str) -> None:
    """Does the work, and then reports the visits to lines of the store's code, in order."""
    seen: list[Moment] = []
    visits = Counter[tuple[str, int]]()

    def note(file: str, line: int) -> None:
        visits[file, line] += 1
        seen.append(Moment(os.path.relpath(file, CODE), line, visits[file, line]))

    class Mute:
        send = staticmethod(lambda _: None)

    sys.settrace(_on_each_line(note))
    work(Mute, path)
    sys.settrace(None)
    pipe.send(seen)


def killed_at(pipe: Any, work: Callable[..., object], path: str, moment: Moment) -> None:
    """Does the work until just before this visit to a line of the store's code."""
    visits = count(1)

    def note(file: str, line: int) -> None:
        if line == moment.line and os.path.relpath(file, CODE) == moment.file and next(visits) == moment.visit:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.settrace(_on_each_line(note))
    work(pipe, path)


def torn_at(pipe: Any, work: Callable[..., object], path: str, size: int) -> None:
    """Does the work until any file grows to ``size`` bytes. That write is torn there, and the process dies."""
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    work(pipe, path)


def _on_each_line(note: Callable[[str, int], None]) -> Any:
    def inside(frame: Any, event: str, _: object) -> Any:
        if event == "line":
            note(frame.f_code.co_filename, frame.f_lineno)
        return inside

    return lambda frame, _event, _arg: inside if frame.f_code.co_filename.startswith(CODE) else None


def copy(pipe: Any, path: str) -> None:
    """Copies a stream to a path beside it, and reports it."""
    copy_local(path, f"{path} copy")
    pipe.send(1)


def alter(pipe: Any, path: str) -> None:
    """Adds a column, and reports it."""
    store = open_local(path, now=lambda: 0)
    store.alter(columns_to_add("coupon STRING"))
    store.close()
    pipe.send(1)
