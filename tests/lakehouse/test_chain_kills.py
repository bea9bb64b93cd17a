"""kill -9 of each query of a chain of three: each row and each window once, and no bound before its rows.

One kill of each in CI; ``ROWTIME_KILLS=50`` has so many in all, at other moments with another ``ROWTIME_SEED``.
"""

import os
import random
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from tests.crash.victims import how_many
from tests.lakehouse.chain import ALL, TABLES, Chain
from tests.lakehouse.commits import LOG, require_lawful
from tests.lakehouse.drivers import Drivers, said, started
from tests.lakehouse.orders import Orders
from tests.streams import clock_of

AHEAD = 4


def clock(minutes: int) -> str:
    return clock_of(datetime(2006, 9, 11, 8) + timedelta(minutes=minutes))


class Shop:
    """Puts orders into the first table, some of which no query counts; a commit each ten minutes of their times."""

    def __init__(self, orders: Orders, dice: random.Random) -> None:
        self.orders, self.dice, self.step = orders, dice, 0
        self.sent: Counter[tuple[str, str]] = Counter()

    def feed(self) -> None:
        """Puts a commit if the first query has not much left to read."""
        if self.step < len(list((self.orders.folder / TABLES[0] / LOG).glob("*.json"))) + AHEAD:
            self.put()

    def put(self) -> None:
        dice, minute = self.dice, self.step * 10
        rows = [(clock(minute + dice.randint(0, 9)), dice.choice(["a", "b", "noise"])) for _ in range(5)]
        self.step += 1
        self.orders.put(*rows, bound=clock(self.step * 10))
        self.sent.update(row for row in rows if row[1] != "noise")


def rows(table: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = DeltaTable(str(table)).to_pyarrow_table().to_pylist()
    return found


@pytest.mark.long
def test_each_row_and_each_window_is_there_once(spark: Any, tmp_path: Path) -> None:
    dice = random.Random(int(os.environ.get("ROWTIME_SEED", "1")))
    shop, chain = Shop(Orders(spark, tmp_path), dice), Chain(spark, tmp_path)
    chain.made()
    with Drivers(chain) as drivers:
        for number in range(how_many(len(TABLES))):
            print(drivers.killed(TABLES[number % len(TABLES)], dice, shop.feed))
    shop.orders.put(bound=clock(shop.step * 10 + 120))
    assert started(tmp_path, ALL).wait(300) == 0, said(tmp_path, ALL)
    assert Counter((clock_of(row["at"]), row["k"]) for row in rows(tmp_path / "silver")) == shop.sent
    for table, key in (("gold", ("end", "k")), ("day", ("end",))):
        windows = rows(tmp_path / table)
        assert len({tuple(row[part] for part in key) for row in windows}) == len(windows), f"{table} has a window twice"
        assert sum(row["count"] for row in windows) == shop.sent.total()
    for table, column in (("silver", "at"), ("gold", "end"), ("day", "end")):
        assert require_lawful(tmp_path / table, column) > 0
