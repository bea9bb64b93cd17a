"""kill -9 of each query of a chain of three, over tables of either format."""

import os
import random
from collections import Counter
from datetime import datetime, timedelta
from itertools import cycle, islice

from tests.crash.victims import how_many
from tests.lakehouse.chain import BOUNDS, TABLES, Chain
from tests.lakehouse.commits import require_lawful
from tests.lakehouse.drivers import Drivers
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
        if self.step < self.orders.tables.versions(TABLES[0]) + AHEAD:
            self.put()

    def put(self) -> None:
        dice, minute = self.dice, self.step * 10
        rows = [(clock(minute + dice.randint(0, 9)), dice.choice(["a", "b", "noise"])) for _ in range(5)]
        self.step += 1
        self.orders.put(*rows, bound=clock(self.step * 10))
        self.sent.update(row for row in rows if row[1] != "noise")


def survive(orders: Orders) -> None:
    """Kills each query of a chain, the last one first, since none waits for those behind it; then all go on.

    Each row and each window must be there once, and no bound before its rows.
    """
    dice = random.Random(int(os.environ.get("ROWTIME_SEED", "1")))
    shop, chain = Shop(orders, dice), Chain(orders.spark, orders.folder, orders.tables)
    chain.made()
    with Drivers(chain) as drivers:
        for name in islice(cycle(reversed(TABLES)), how_many(len(TABLES))):
            print(drivers.killed(name, dice, shop.feed))
    orders.put(bound=clock(shop.step * 10 + 120))
    for name in TABLES:
        chain.start(name, availableNow=True).awaitTermination()
    require_once(chain, shop.sent)
    for table, column in BOUNDS.items():
        assert require_lawful(chain.tables.commits(table, column)) > 0


def require_once(chain: Chain, sent: Counter[tuple[str, str]]) -> None:
    silver = chain.tables.rows("silver").to_pylist()
    assert Counter((clock_of(row["at"]), row["k"]) for row in silver) == sent
    for table, key in (("gold", ("end", "k")), ("day", ("end",))):
        windows = chain.tables.rows(table).to_pylist()
        assert len({tuple(row[part] for part in key) for row in windows}) == len(windows), f"{table} has a window twice"
        assert sum(row["count"] for row in windows) == sent.total()
