"""An interrupt of a call on a stream in memory, before any of its lines: it is done whole or not at all."""

import itertools
import linecache
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from spark_rowtime.bounds.topic_cut import CutBound, TopicCut
from spark_rowtime.store import create_store, open_store
from spark_rowtime.store.settings import StreamSettings
from tests.store.streams import SCHEMA, Writer, at
from tests.store.visible import visible

NAMES = itertools.count()
CUT = TopicCut({"orders": {0: 3}})
NEVER = ("with ", "try:", "self.state.deciding = False")


def interrupted(call: Callable[[], object], line: int) -> bool:
    """Whether the call was interrupted, before the line with that number of those that it runs in the store's files.

    Not before those in NEVER: no signal's handler runs there, and a block would not be left.
    """
    left = line

    def before_line(frame: Any, event: str, _: object) -> Any:
        nonlocal left
        if "/spark_rowtime/store/memory" not in frame.f_code.co_filename:
            return None
        text = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
        left -= event == "line" and not text.lstrip().startswith(NEVER)
        if left < 0:
            sys.settrace(None)
            raise KeyboardInterrupt
        return before_line

    sys.settrace(before_line)
    try:
        call()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(None)
    return False


class Scene:
    """A stream, the same each time, and a commit with rows, some of them late, and a bound behind a cut."""

    def __init__(self) -> None:
        path = f"memory://interrupts {next(NAMES)}"
        create_store(path, SCHEMA, StreamSettings(retainRejected=1))
        self.store: Any = open_store(path)
        self.store.now = lambda: 10**15
        feed, gone, other = (Writer(self.store, name) for name in ("feed", "gone", "other"))
        feed.send([1, 2], floor=2)
        gone.send([3], floor=3)
        gone.leave()
        other.send(floor=9, late=[1])
        self.next = replace(feed.commit([4, 5], floor=5, late=[1]), bounds=(CutBound(at(6) or 0, CUT),))
        self.waits = threading.Thread(target=self.store.wait, args=(self.store.head().seq, 60), daemon=True)
        self.waits.start()

    def commit(self) -> None:
        self.store.commit(self.next)

    def gc(self) -> None:
        self.store.now = lambda: 10**16
        self.store.gc(size=0)

    def shown(self) -> Any:
        now = self.store.snapshot(full=True)
        return visible(self.store), replace(now, path="", stream="", wall=0, uptime=0, moved=None)


@pytest.mark.parametrize("call", [Scene.commit, Scene.gc])
def test_a_call_that_was_interrupted_is_done_whole_or_not_at_all_and_may_be_repeated(
    call: Callable[[Scene], None],
) -> None:
    before, after = Scene(), Scene()
    call(after)
    shown = (before.shown(), after.shown())
    assert shown[0] != shown[1]
    for line in itertools.count():
        scene = Scene()
        if not interrupted(partial(call, scene), line):
            break
        assert call is Scene.gc or scene.shown() in shown, line
        call(scene)
        assert scene.shown() == shown[1], line
        if call is Scene.commit:
            scene.waits.join(30)
            assert not scene.waits.is_alive(), "somebody who waits for the next event was not woken"
    assert line > 50
