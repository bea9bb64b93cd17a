"""Random lives of a table and a query over it: an oracle says the floor of each batch, and which rows are late.

More lives: ``ROWTIME_LAKEHOUSE_LIVES=50 pytest --hypothesis-profile=explore tests/lakehouse/test_oracle.py``.
"""

import json
import os
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.lakehouse.orders import Orders, hourly, late
from tests.spark.observed_query import Repeated, clock_of_micros, micros

LIVES = int(os.environ.get("ROWTIME_LAKEHOUSE_LIVES", "2"))
START, MINUTE = micros("10:00"), 60_000_000
AHEAD = st.lists(st.integers(0, 90), max_size=3)
COMMANDS = st.one_of(
    *[st.tuples(st.just("write"), AHEAD, st.integers(0, 40))] * 3,
    st.tuples(st.just("stray"), st.lists(st.integers(-60, 60), min_size=1, max_size=3)),
    st.tuples(st.just("optimize")),
    *[st.tuples(st.just("step"))] * 2,
    st.tuples(st.just("restart"), st.booleans()),
)


def lively(commands: list[Any]) -> bool:
    """Whether something of each kind happens."""
    kinds = Counter(command for command, *_ in commands)
    return min(kinds["write"], kinds["step"]) >= 3 and min(kinds["stray"], kinds["restart"], kinds["optimize"]) >= 1


class Life:
    """A table with a writer of bounds and others, and two queries: its rows, and its windows.

    ``log`` has of each commit its rows in the order of their files, and its bound, ``numbers`` the number under which
    the table has it; minutes count from ``START``. While the queries run, each commit is a batch of both; those before
    a start are one, or as many as the limit makes of them. So the same rows are late in both.
    """

    def __init__(self, orders: Orders, folder: Path, files: int) -> None:
        self.orders = orders
        self.log: list[tuple[list[list[int]], int | None]] = [([], None)]
        self.numbers, self.is_running = [-1], False
        self.floor = 0
        self.write([1], 0)
        rows = orders.rows(maxFilesPerTrigger=files)
        self.plain, self.windows = Repeated(rows, folder / "plain"), Repeated(hourly(rows), folder / "windows")
        self.late: dict[int, int] = {}

    def write(self, ahead: list[int], step: int) -> None:
        """Rows at the bound or above, and the next bound."""
        rows = [self.floor + minutes for minutes in ahead]
        self.floor += step
        self.put(rows, self.floor)

    def stray(self, around: list[int]) -> None:
        """Rows of somebody who knows nothing of the bound, of any time."""
        self.put([max(self.floor + minutes, -500) for minutes in around], None)

    def put(self, rows: list[int], bound: int | None) -> None:
        clocks = [(clock_of_micros(START + row * MINUTE), "k") for row in rows]
        said = None if bound is None else clock_of_micros(START + bound * MINUTE)
        self.numbers.append(self.orders.put(*clocks, bound=said))
        self.log.append(([rows] if rows else [], bound))
        if self.is_running:
            self.step()

    def optimize(self) -> None:
        """A commit without new rows, if there are files to join."""
        from deltalake import DeltaTable

        self.orders.sql("OPTIMIZE ORDERS")
        self.log += [([], None)] * (DeltaTable(self.orders.path).version() + 1 - len(self.log))

    def step(self) -> None:
        for query in (self.plain, self.windows):
            if not self.is_running:
                query.__enter__()
            query.step()
        self.is_running = True

    def restart(self, crashed: bool) -> None:
        """Both queries stop until the next step; ``crashed``: their last batches run again."""
        self.step()
        self.end()
        for query in (self.plain, self.windows):
            if crashed and query.first:
                query.lose_commit()

    def end(self) -> None:
        if self.is_running:
            self.late |= late(self.plain)
            self.plain.__exit__()
            self.windows.__exit__()
        self.is_running = False

    def floors(self, offset: dict[str, Any]) -> int | None:
        """The newest bound of the versions that an offset has passed."""
        if offset["isStartingVersion"]:
            return None
        return self.newest(offset["reservoirVersion"])

    def newest(self, passed: int) -> int | None:
        """The newest bound of so many commits; None without one."""
        bounds = [bound for _, bound in self.log[:passed] if bound is not None]
        return bounds[-1] if bounds else None

    def check(self) -> None:
        """Compares each batch of the plain query with the oracle, and all windows with what was not late."""
        before = None
        seen: Counter[int] = Counter()
        for batch, (rows, promised) in sorted(self.plain.first.items()):
            offset = json.loads((self.plain.checkpoint / "offsets" / str(batch)).read_text().splitlines()[-1])
            floor = self.floors(offset)
            expected = {} if floor is None else {"ts": clock_of_micros(START + floor * MINUTE)}
            assert promised == expected, (batch, offset)
            least = -(10**9) if before is None else before
            got = [(micros(clock) - START) // MINUTE for clock, _ in rows]
            assert all(row >= least for row in got), (batch, got, before)
            before = floor
            seen.update(got)
        everything = Counter(row for files, _ in self.log for file in files for row in file)
        missing = everything - seen
        assert not seen - everything
        assert all(row < self.floor for row in missing)
        assert sum(self.late.values()) == sum(missing.values())
        promised_to = self.floors(offset)
        closed = Counter(START // MINUTE // 60 * 60 + row // 60 * 60 for row in seen.elements())
        windows = {start: count for _, (rows, _) in sorted(self.windows.first.items()) for (start, _), _, count in rows}
        whole = {
            clock_of_micros(minute * MINUTE): count
            for minute, count in closed.items()
            if promised_to is not None and minute + 60 <= START // MINUTE + promised_to
        }
        assert windows == whole


def lived(life_of: Callable[[Path, int], Life], folder: Path) -> None:
    """Lives of random commands, of which each ends with batches that run again."""

    @settings(max_examples=LIVES, phases=(Phase.generate,), suppress_health_check=[HealthCheck.filter_too_much])
    @given(st.lists(COMMANDS, min_size=10, max_size=16).filter(lively), st.sampled_from([1, 2, 1000]))
    def live(commands: list[Any], files: int) -> None:
        life = life_of(Path(tempfile.mkdtemp(dir=folder)), files)
        try:
            for command, *arguments in commands:
                getattr(life, command)(*arguments)
            life.restart(crashed=True)
            life.step()
        finally:
            life.end()
        life.check()

    live()


@pytest.mark.long
def test_each_batch_has_the_floor_of_the_oracle(spark: Any, tmp_path: Path) -> None:
    lived(lambda folder, files: Life(Orders(spark, folder), folder, files), tmp_path)
