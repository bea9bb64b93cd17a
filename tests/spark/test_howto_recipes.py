"""The queries of docs/howto/recipes.md: streamed they give what they give in batch."""

import random
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import DataFrame

from tests.documents.blocks import ROOT, blocks
from tests.spark.operator_streams import after_noon, output, restart
from tests.streams import Pipe, opened, send

PAGE = ROOT / "docs" / "howto" / "recipes.md"
COLUMNS = {
    "orders": "product STRING, units INT, currency STRING, amount INT",
    "rates": "currency STRING, rate DOUBLE",
}
RECIPES = ["newest", "first", "top3", "cumulated", "priced"]


def recipe(name: str) -> Callable[..., DataFrame]:
    """The function of that name on the page."""
    names: dict[str, Any] = {}
    for block in blocks(PAGE):
        if block.code.startswith(("from ", "def ")):
            exec(block.code, names)
    found: Callable[..., DataFrame] = names[name]
    return found


@pytest.mark.parametrize("name", RECIPES)
def test_streamed_equals_batch(pipe: Pipe, name: str) -> None:
    chance, query = random.Random(4711), recipe(name)
    paths = {stream: pipe.create(stream, columns) for stream, columns in COLUMNS.items()}
    inputs = list(paths)[: 2 if name == "priced" else 1]
    frame = query(*map(pipe.read, inputs))
    pipe.run(frame)
    with opened(paths["orders"], rowsImplyBounds=False) as orders, opened(paths["rates"]) as rates:
        for hour in range(3):
            rates.sendRows([(after_noon(hours=hour), "USD", 0.5 + hour)])
            orders.sendRows([order(chance, hour) for _ in range(60)])
            for sink in (orders, rates):
                sink.sendRowtimeBound(after_noon(hours=hour, minutes=59))
                send(sink)
            assert all(row["rowtime"] < after_noon(hours=hour, minutes=59) for row in output(pipe))
        restart(pipe, frame)
        for sink in (orders, rates):
            sink.sendRowtimeBound(after_noon(hours=9))
            send(sink)
        found = output(pipe)
    batch = query(*(pipe.spark.read.format("rowtime").load(paths[stream]) for stream in inputs))
    told = [row.asDict() for row in batch.collect()]
    assert len(found) > 8
    assert sorted(map(values, found)) == sorted(map(values, told))


def order(chance: random.Random, hour: int) -> tuple[Any, ...]:
    time = after_noon(hours=hour, minutes=chance.randrange(59, 119))
    return (time, chance.choice("ABCDE"), chance.randrange(20), chance.choice(("USD", "JPY")), chance.randrange(9))


def values(row: dict[str, Any]) -> tuple[str, ...]:
    return tuple(str(v.timestamp() if hasattr(v, "timestamp") else v) for v in row.values())
