"""A writer dies just before any line of the local store's code, or in the middle of any write.

Every twelfth line once in CI; ROWTIME_KILLS=100 (or more): each line once, and so many more of all moments and of
torn writes.
"""

import random
import shutil
import signal
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from spark_rowtime.store.local import create_local, open_local
from spark_rowtime.store.memory import MemoryStore
from spark_rowtime.store.settings import StreamSettings
from tests.crash import writers
from tests.crash.tally import Tally
from tests.crash.victims import KILLED, Victim, how_many
from tests.crash.writers import Moment
from tests.store.streams import SCHEMA, at, names
from tests.store.visible import rows_of, visible

FEW = 8
TORN = -signal.SIGXFSZ


@cache
def states() -> list[dict[str, Any]]:
    """What the reference shows after each step of the story."""
    store = MemoryStore("memory://story", SCHEMA, StreamSettings(), now=lambda: 0)
    return [visible(store), *(visible(store) for _ in writers.story(store))]


def new_stream(path: str) -> None:
    create_local(path, SCHEMA, StreamSettings())


@pytest.fixture
def renewed(tmp_path: Path) -> Callable[[], str]:
    """Gives the path of an empty stream, the same each time."""
    new_stream(str(tmp_path / "empty"))

    def renew() -> str:
        shutil.rmtree(tmp_path / "s", ignore_errors=True)
        return str(shutil.copytree(tmp_path / "empty", tmp_path / "s"))

    return renew


def check(path: str, told: int, line: Tally) -> None:
    """The stream is as after what the writer has told of, or one step further; the next writer completes it."""
    store = open_local(path, now=lambda: 0)
    found, known, perhaps = visible(store), states()[told], states()[min(told + 1, len(states()) - 1)]
    line.fault()
    least, most = rows_of(known) & rows_of(perhaps), rows_of(known) | rows_of(perhaps)
    line.account(rows_of(found).elements(), least.elements(), most.elements())
    assert found in (known, perhaps)
    writers.again(open_local(path, now=lambda: 0))
    sent = what_a_sends()
    most = sent & rows_of(found) if store.horizon().seq else sent  # what gc has removed stays so
    line.account((rows_of(visible(store)) & sent).elements(), most.elements(), most.elements())
    assert store.rejected().num_rows == max(found["rejected"].num_rows, 1), "what is sent again is not late, but known"
    store.close()


def what_a_sends() -> Counter[tuple[str, int]]:
    return Counter(("a", at(time)) for trains, _ in writers.SENDS for train in trains for time in train)


def moments(work: Callable[..., object], path: str) -> list[Moment]:
    """The visits to the lines of the store's code, in order."""
    victim = Victim(writers.lines, work, path)
    ((seen,), code) = victim.end()
    assert code == 0
    return list(seen)


def chosen(found: list[Moment]) -> list[Moment]:
    """The moments to die at: the first visits to each line, and as many others as are asked for."""
    first, others = [one for one in found if one.visit == 1], [one for one in found if one.visit > 1]
    more = how_many(0)
    return (first if more else first[::12]) + random.Random(len(found)).sample(others, min(more, len(others)))


@pytest.mark.long
def test_a_writer_that_dies_before_any_line_of_the_store(
    renewed: Callable[[], str], tally: Callable[[str], Tally]
) -> None:
    """Segment bytes written and the catalog not, the catalog committed and the caller not told, in roll-over, ..."""
    path = renewed()
    found = moments(writers.tell, path)
    assert len(names(f"{path}/segments")) > 2, "segments were rolled over"
    for moment in chosen(found):
        path = renewed()
        heard, code = Victim(writers.killed_at, writers.tell, path, moment).end()
        assert code == KILLED, moment
        check(path, len(heard), tally("kill -9 of a writer before a line of the store"))


def test_a_writer_that_dies_in_the_middle_of_a_write(renewed: Callable[[], str], tally: Callable[[str], Tally]) -> None:
    """Segment, catalog or its log: at a limit on the size of files the system ends the process, and its write there."""
    died, sizes = 0, random.Random(7).sample(range(33_000, 160_000), how_many(FEW))
    for size in sizes:
        path = renewed()
        heard, code = Victim(writers.torn_at, writers.tell, path, size).end()
        assert code in (TORN, 0), (size, code)
        died += code == TORN
        check(path, len(heard), tally("a write torn at a byte"))
    assert died > len(sizes) // 3


def test_a_creation_that_dies_before_any_line(tmp_path: Path, tally: Callable[[str], Tally]) -> None:
    """There is a whole stream, or none and the way is free."""
    line = tally("kill -9 in createStream")
    for number, moment in enumerate(chosen(moments(writers.create, str(tmp_path / "whole")))):
        folder = tmp_path / str(number)
        heard, code = Victim(writers.killed_at, writers.create, str(folder / "s"), moment).end()
        assert code == KILLED, moment
        line.fault()
        if "s" not in (names(folder) if folder.exists() else []):
            assert not heard, "what was said to be there is there"
            new_stream(str(folder / "s"))
        writers.again(open_local(str(folder / "s")))
        store = open_local(str(folder / "s"))
        line.account(rows_of(visible(store)).elements(), what_a_sends().elements(), what_a_sends().elements())
        store.close()
