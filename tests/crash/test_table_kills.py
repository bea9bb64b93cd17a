"""kill -9 of drains into tables at random moments; the rows are read by DuckDB, which did not write them.

A few times in CI; ``ROWTIME_KILLS=100 python -m pytest tests/crash/test_table_kills.py`` for the table of
docs/guarantees.md.
"""

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

import spark_rowtime as rt
from tests.crash import tabled
from tests.crash.checks import kill_at_random
from tests.crash.tally import Tally
from tests.crash.victims import Victim, how_many
from tests.tables.lake import FORMATS, Lake

FEW = 2
MINUTES_EACH = 7
START = 1_767_610_800_000_000
"""2026-01-05T11:00:00Z in microseconds."""


@pytest.mark.each
@pytest.mark.parametrize("kind", FORMATS)
def test_a_drain_into_a_table_killed_at_random_moments(
    tmp_path: Path, tally: Callable[[str], Tally], kind: str
) -> None:
    """Rows come between the kills; what the table has is never more than was sent, and in the end it is all of it."""
    lake, dice, line = Lake(tmp_path), random.Random(kind), tally(f"kill -9 of a drain into {kind}")
    rt.createStream(lake.stream, "rowtime TIMESTAMP NOT NULL, n BIGINT")
    sent = 0
    sink = rt.openSink(lake.stream, producer="shop", linger="0 s")
    for _ in range(how_many(FEW)):
        sent = more(sink, sent, 60 + dice.randrange(60))
        victim = Victim(tabled.drain_into, lake.stream, lake.target(kind), lake.catalog, True)
        assert kill_at_random(victim, dice, patience=0.5)
        line.fault()
        found = there(lake, kind)
        line.account(found, [], range(sent))
        assert rows_below_the_bound(lake, kind, sent) <= Counter(found), "what the table calls complete is there"
    sink.close(complete=True)
    assert Victim(tabled.drain_into, lake.stream, lake.target(kind), lake.catalog, False).end()[1] == 0
    line.account(there(lake, kind), range(sent), range(sent))


def more(sink: rt.StreamSink, sent: int, count: int) -> int:
    """Sends so many rows, seven minutes apart, some with a commit of their own; returns the number of all."""
    for n in range(sent, sent + count):
        sink.sendRow((rt.RowtimeBound.fromFloor(START + n * MINUTES_EACH * 60_000_000).time, n))
        if n % 5 == 0:
            sink.flush()
    sink.flush()
    return sent + count


def there(lake: Lake, kind: str) -> list[int]:
    """The numbers in the table; none while it has not been made."""
    return lake.numbers(kind) if lake.made(kind) else []


def rows_below_the_bound(lake: Lake, kind: str, sent: int) -> Counter[int]:
    bound = lake.bound(kind)
    return (
        Counter() if bound is None else Counter(n for n in range(sent) if START + n * MINUTES_EACH * 60_000_000 < bound)
    )
