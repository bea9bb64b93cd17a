"""S16, s-Server's joins: orders with their trades up to ten minutes later. Each side's bound frees the other's state.

``arrived`` is what a query has written at a step, ``released`` what a reader gets in order of rowtime: the
document's table. A row that is released later than there says so.
"""

from itertools import chain
from typing import Any, NamedTuple

import pytest

import spark_rowtime as rt
from tests.streams import Pipe, bound, drained, opened, send

JOIN = """
    SELECT {rowtime} AS rowtime,
        o.id AS order_id, o.ticker AS ordered, o.amount AS wanted, t.id AS trade_id, t.ticker AS traded, t.amount AS got
    FROM {{orders}} o {how} JOIN {{trades}} t
    ON o.id = t.id AND t.rowtime BETWEEN o.rowtime AND o.rowtime + INTERVAL 10 MINUTES"""

ORDERS = [("10:00", 1, "ORCL", 100), ("10:03", 2, "YHOO", 25)]
UNMATCHED = ("10:00", 0, "IBM", 110)
TRADES = [("10:02", 1, "ORCL", 60), ("10:04", 2, "YHOO", 25), ("10:07:30", 1, "ORCL", 30)]
LATE_TRADE = ("10:12", 1, "ORCL", 10)

CLOSE = 6
"""The step after the table's: closing bounds on both sides."""


class Feeds:
    """Orders and trades."""

    def __init__(self, pipe: Pipe, orders: list[tuple[Any, ...]]) -> None:
        columns = "id INT, ticker STRING, amount INT"
        self.orders, self.trades = (opened(pipe.create(name, columns)) for name in ("orders", "trades"))
        self.first = orders

    def step(self, number: int) -> None:
        """The rows and bounds of a step of the document's table."""
        match number:
            case 1:
                send(self.orders, *self.first)
            case 2:
                send(self.trades, *TRADES)
            case 3:
                send(self.trades, promise="10:11")
            case 4:
                send(self.orders, promise="10:10")
            case 5:
                send(self.trades, LATE_TRADE)
            case _:
                send(self.orders, promise="11:00")
                send(self.trades, promise="11:00")


class Query(NamedTuple):
    """``arrived``: rows by step; ``released``: the same by the step at which they come in order of rowtime."""

    how: str
    rowtime: str
    orders: list[tuple[Any, ...]]
    arrived: dict[int, list[tuple[Any, ...]]]
    released: dict[int, list[tuple[Any, ...]]]


NONE = (None, None, None)
ORCL = (1, "ORCL", 100)
YHOO = (2, "YHOO", 25, 2, "YHOO", 25)
FIRST = [("10:00", *ORCL, 1, "ORCL", 30), ("10:00", *ORCL, 1, "ORCL", 60)]
SECOND = ("10:03", *YHOO)
TRADED_60, TRADED_30 = ("10:02", *ORCL, 1, "ORCL", 60), ("10:07:30", *ORCL, 1, "ORCL", 30)
NO_TRADE = ("10:00", 0, "IBM", 110, *NONE)
NO_ORDER = ("10:12", *NONE, 1, "ORCL", 10)

QUERIES = {
    "query 1": Query(
        "INNER", "o.rowtime", ORDERS, {2: [*FIRST, SECOND]}, {2: FIRST, 3: [SECOND]}
    ),  # as the table has it
    # The table has SECOND at step 4. At step 2 orders are at 10:03, and no trade from then to 10:04 has been seen.
    "query 2": Query(
        "INNER",
        "t.rowtime",
        ORDERS,
        {2: [TRADED_60, ("10:04", *YHOO), TRADED_30]},
        {2: [TRADED_60, ("10:04", *YHOO)], 4: [TRADED_30]},
    ),
    # As query 1; NO_TRADE at step 3, as in the table. NO_ORDER is due when Orders has passed 10:12: with the close.
    "query 3": Query(
        "FULL OUTER",
        "coalesce(o.rowtime, t.rowtime)",
        [UNMATCHED, *ORDERS],
        {2: [*FIRST, SECOND], 3: [NO_TRADE], CLOSE: [NO_ORDER]},
        {2: FIRST, 3: [NO_TRADE, SECOND], CLOSE: [NO_ORDER]},
    ),
}


def in_order(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Sorted; equal rowtimes have no order among them."""
    return sorted(rows, key=lambda row: [(value is not None, value) for value in row])


@pytest.mark.parametrize("name", QUERIES)
def test_s16_joins(pipe: Pipe, name: str) -> None:
    query = QUERIES[name]
    feeds = Feeds(pipe, query.orders)
    text = JOIN.format(rowtime=query.rowtime, how=query.how)
    pipe.run(pipe.spark.sql(text, orders=pipe.read("orders"), trades=pipe.read("trades")))
    arrived, released, reader = {}, {}, None
    for step in range(1, CLOSE + 1):
        feeds.step(step)
        released[step] = pipe.step()
        reader = reader or rt.openReader(pipe.path("out"), order="arrival")
        arrived[step] = in_order(drained(reader))
    assert {step: rows for step, rows in arrived.items() if rows} == query.arrived
    assert {step: in_order(rows) for step, rows in released.items() if rows} == query.released
    times = [row[0] for row in chain.from_iterable(released.values())]
    assert times == sorted(times), "the stream is in order"
    assert pipe.bound is not None
    assert pipe.bound > bound("10:12")
