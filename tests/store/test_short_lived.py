"""A stream whose store objects live for one commit each, as those of Spark's sink do, with retainAge."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from spark_rowtime.store.local import LocalStore, create_local, open_local
from spark_rowtime.store.retention import LIMIT_PARTS
from spark_rowtime.store.settings import StreamSettings
from spark_rowtime.store.steady_clock import Reading
from tests.store.streams import EMPTY, SCHEMA, SECOND, Writer
from tests.store.test_bounded_gc import long_log

AGE = 800 * SECOND
PART = AGE // LIMIT_PARTS
STEP_INSTRUCTIONS = 100


class ShortLived:
    """Commits to a stream, each through a store object of its own."""

    def __init__(self, path: Path, events: int) -> None:
        self.path, self.time, self.rows = str(path), 0, 1.0
        create_local(self.path, SCHEMA, StreamSettings(retainAge=AGE))
        with_log = self.opened()
        long_log(with_log, events)
        with_log.close()

    def opened(self) -> LocalStore:
        return open_local(self.path, steady=lambda: Reading("boot", self.time), now=lambda: 0)

    def commit(self) -> int:
        """Commits a row. Returns how many instructions SQLite executed for it, in steps."""
        store, steps = self.opened(), [0]

        def count() -> int:
            steps[0] += 1
            return 0

        writer = Writer(store, "busy")
        store._catalog._db.set_progress_handler(count, STEP_INSTRUCTIONS)
        self.rows += 1
        writer.send([self.rows], floor=self.rows)
        store._catalog._db.set_progress_handler(None, 0)
        store.close()
        return steps[0]


@pytest.fixture
def make(tmp_path: Path) -> Callable[[int], ShortLived]:
    return lambda events: ShortLived(tmp_path / f"{events} events", events)


def test_a_commit_reads_no_log(make: Callable[[int], ShortLived]) -> None:
    """What it costs does not depend on the events that are there, where none is old enough."""
    few, many = make(10), make(10_000)
    for stream in (few, many):
        stream.commit()
        stream.time += SECOND
    assert [few.commit() for _ in range(5)] == pytest.approx([many.commit() for _ in range(5)], abs=5)


def test_a_commit_reads_no_log_while_a_reader_keeps_old_rows(make: Callable[[int], ShortLived]) -> None:
    """Each of them finds that nothing may go; once in a part of the age is enough."""
    few, many = make(10), make(10_000)
    for stream in (few, many):
        store = stream.opened()
        store.keep("reader", EMPTY)
        store.close()
        stream.time += 2 * AGE
        stream.commit()
    assert [few.commit() for _ in range(5)] == pytest.approx([many.commit() for _ in range(5)], abs=5)


def test_rows_are_removed_once_in_a_part_of_the_age_whoever_commits(make: Callable[[int], ShortLived]) -> None:
    stream = make(3)
    removed = []
    for _ in range(4 * LIMIT_PARTS):
        stream.time += PART // 2
        stream.commit()
        store = stream.opened()
        removed.append(store.horizon().rows)
        store.close()
    changes = [n for n, (before, after) in enumerate(pairwise(removed)) if before != after]
    assert removed[2 * LIMIT_PARTS - 2] == 0, "nothing is old yet"
    assert removed[-1] == 3 + 2 * LIMIT_PARTS, "all that was older than the age at the last removal"
    assert {after - before for before, after in pairwise(changes)} == {2}
