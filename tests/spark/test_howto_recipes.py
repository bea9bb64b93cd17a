"""The queries of docs/howto/recipes.md: streamed they give what they give in batch."""

import random
from collections.abc import Callable
from contextlib import ExitStack
from datetime import datetime
from typing import Any

import pytest
from pyspark.sql import DataFrame

from tests.documents.blocks import ROOT, blocks
from tests.spark.operator_streams import after_noon, output, restart, told
from tests.streams import Pipe, clock_of, opened, send

PAGE = ROOT / "docs" / "howto" / "recipes.md"
COLUMNS = {
    "orders": "product STRING, units INT, currency STRING, amount INT",
    "rates": "currency STRING, rate DOUBLE",
    "messages": "id INT, units INT",
}
INPUTS = {"priced": ["orders", "rates"], "once": ["messages"], "once_in_a_while": ["messages"]}
"""The streams that a recipe reads, where they are not the orders alone."""
AT_ONCE = ["once"]
"""The recipes whose rows come out when they are new, before the bound has passed them."""
RECIPES = ["newest", "first", "top3", "cumulated", "lagged", "led", "sessions", "hourly", *INPUTS]


def recipe(name: str) -> Callable[..., DataFrame]:
    """The function of that name on the page."""
    names: dict[str, Any] = {}
    for block in blocks(PAGE):
        if block.code.startswith(("from ", "def ")):
            exec(block.code, names)
    found: Callable[..., DataFrame] = names[name]
    return found


@pytest.mark.long
@pytest.mark.parametrize("name", RECIPES)
def test_streamed_equals_batch(pipe: Pipe, name: str) -> None:
    chance, query = random.Random(4711), recipe(name)
    paths = {stream: pipe.create(stream, columns) for stream, columns in COLUMNS.items()}
    inputs = INPUTS.get(name, ["orders"])
    frame = query(*map(pipe.read, inputs))
    pipe.run(frame)
    with ExitStack() as stack:
        sinks = {stream: stack.enter_context(opened(path, rowsImplyBounds=False)) for stream, path in paths.items()}
        for hour in range(3):
            sinks["rates"].sendRows([(after_noon(hours=hour), "USD", 0.5 + hour)])
            sinks["orders"].sendRows([order(chance, hour) for _ in range(60)])
            sinks["messages"].sendRows([message(chance, hour) for _ in range(60)])
            promise(sinks, after_noon(hours=hour, minutes=59))
            released = [row["rowtime"] < after_noon(hours=hour, minutes=59) for row in output(pipe)]
            assert all(released) or name in AT_ONCE
        restart(pipe, frame)
        promise(sinks, after_noon(hours=9))
        found = output(pipe)
    batch = query(*(pipe.spark.read.format("rowtime").load(paths[stream]) for stream in inputs))
    told = [row.asDict() for row in batch.collect()]
    assert len(found) > 8
    assert sorted(map(values, found)) == sorted(map(values, told))


def promise(sinks: dict[str, Any], time: datetime) -> None:
    for sink in sinks.values():
        sink.sendRowtimeBound(time)
        send(sink)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("lagged", [("12:01", "A", 1, None), ("12:02", "B", 5, None), ("12:03", "A", 2, 1), ("12:09", "A", 3, 2)]),
        ("led", [("12:03", "A", "12:01", 1, 2), ("12:09", "A", "12:03", 2, 3)]),
    ],
)
def test_the_row_before_and_the_row_after(pipe: Pipe, name: str, expected: list[tuple[Any, ...]]) -> None:
    path = pipe.create("orders", "product STRING, units INT")
    with opened(path) as sink:
        send(sink, ("12:01", "A", 1), ("12:02", "B", 5), ("12:03", "A", 2), ("12:09", "A", 3))
    rows = recipe(name)(pipe.spark.read.format("rowtime").load(path)).orderBy("rowtime").collect()
    assert [tuple(clock_of(v) if isinstance(v, datetime) else v for v in row) for row in rows] == expected


def test_open_windows_are_marked_and_final_ones_are_those_of_the_query(pipe: Pipe) -> None:
    path = pipe.create("orders", COLUMNS["orders"])
    pipe.run(recipe("hourly")(pipe.read("orders")))
    open_hour = ("13:59:59.999999", "B", 4)
    with opened(path, rowsImplyBounds=False) as sink:
        send(sink, ("12:10", "A", 1, "USD", 1), ("13:10", "B", 4, "USD", 1), ("12:50", "A", 2, "USD", 1))
        assert marked(pipe, path) == {False: {("12:59:59.999999", "A", 3), open_hour}}
        send(sink, promise="13:00")
        assert marked(pipe, path) == {True: set(told(pipe)), False: {open_hour}}
        assert told(pipe) == [("12:59:59.999999", "A", 3)]


def marked(pipe: Pipe, path: str) -> dict[bool, set[tuple[Any, ...]]]:
    """The results so far, by whether they are final."""
    found: dict[bool, set[tuple[Any, ...]]] = {}
    for time, product, units, final in recipe("so_far")(pipe.spark, path).collect():
        found.setdefault(final, set()).add((clock_of(time), product, units))
    return found


def order(chance: random.Random, hour: int) -> tuple[Any, ...]:
    time = after_noon(hours=hour, minutes=chance.randrange(59, 119))
    return (time, chance.choice("ABCDE"), chance.randrange(20), chance.choice(("USD", "JPY")), chance.randrange(9))


def values(row: dict[str, Any]) -> tuple[str, ...]:
    return tuple(str(v.timestamp() if hasattr(v, "timestamp") else v) for v in row.values())


def message(chance: random.Random, hour: int) -> tuple[Any, ...]:
    """Often the same as another one, or at another time."""
    number = chance.randrange(12)
    return (after_noon(hours=hour, minutes=59 + 5 * chance.randrange(12)), number, number * number)
