"""Bounds never change a result, only when it appears: the same rows with ever fewer bounds, against batch."""

import random
from collections import Counter
from contextlib import ExitStack
from itertools import pairwise
from typing import Any, NamedTuple

import pytest
from pyspark.sql import DataFrame
from pyspark.sql.functions import col, count, expr, window

import spark_rowtime as rt
from tests.spark.watching import Watched, collected
from tests.streams import Pipe, opened, send

STEPS = 6
PRODUCERS = ("one", "two")
WINDOWS = {"tumbling": ("30 minutes", None), "hopping": ("1 hour", "20 minutes")}


class Step(NamedTuple):
    """One commit of one producer; its bound may be left out."""

    producer: str
    rows: list[tuple[str, int]]
    promise: str


def clock(minutes: int) -> str:
    return f"{minutes // 60}:{minutes % 60:02d}"


def script(chance: random.Random) -> list[Step]:
    """Rows in no order at or above their producer's promises, often exactly at one; on tens of minutes."""
    steps, promised = [], dict.fromkeys(PRODUCERS, 60)
    for number in range(STEPS):
        producer = PRODUCERS[number % 2] if number < 2 else chance.choice(PRODUCERS)
        least = promised[producer]
        times = [least + 10 * chance.randrange(7) for _ in range(chance.randrange(5))]
        promised[producer] += 10 * chance.randrange(1, 7)
        rows = [(clock(time), 10 * number + i) for i, time in enumerate(times)]
        steps.append(Step(producer, rows, clock(promised[producer])))
    return steps


class Variant:
    """The script in a stream of its own, with some of its bounds."""

    def __init__(self, pipe: Pipe, name: str, kept: set[int]) -> None:
        self.name, self.kept = name, kept
        self.path = pipe.create(name, "x INT")
        self.sinks = {p: opened(self.path, p, rowsImplyBounds=False) for p in PRODUCERS}
        self.seen: dict[tuple[Any, ...], int] = {}

    def send(self, number: int, step: Step) -> None:
        send(self.sinks[step.producer], *step.rows, promise=step.promise if number in self.kept else None)

    def close(self) -> None:
        """The only bound that every variant has; without it the last windows never come."""
        for sink in self.sinks.values():
            send(sink, promise="23:59")


def counted(frame: DataFrame, kind: str) -> DataFrame:
    windows = window("rowtime", *WINDOWS[kind]).alias("w")
    found = frame.groupBy(windows).agg(count("*").alias("n"), expr("max(x)").alias("last"))
    return found.select(col("w.end").alias("rowtime"), "n", "last")


@pytest.mark.parametrize("kind", WINDOWS)
@pytest.mark.parametrize("seed", [7])
def test_fewer_bounds_give_the_same_rows_later(pipe: Pipe, kind: str, seed: int) -> None:
    chance = random.Random(f"{kind} {seed}")
    steps = script(chance)
    half = set(chance.sample(range(STEPS), STEPS // 2))
    variants = [Variant(pipe, "all", set(range(STEPS))), Variant(pipe, "half", half), Variant(pipe, "none", set())]
    with ExitStack() as stack:
        queries = [Watched().start(counted(pipe.read(v.name), kind)) for v in variants]
        for query in queries:
            stack.enter_context(query)
        for number, step in enumerate([*steps, None]):
            for variant in variants:
                variant.close() if step is None else variant.send(number, step)
            for variant, query in zip(variants, queries, strict=True):
                for row in query.step():
                    assert row not in variant.seen, "a window comes once"
                    variant.seen[row] = number
    batch = collected(counted(pipe.spark.read.format("rowtime").load(variants[0].path), kind))
    cut = {"maxRowsPerTrigger": str(chance.randrange(1, 6))}
    for variant, query in zip(variants, queries, strict=True):
        assert rt.describeStream(variant.path).rejected == 0
        assert Counter(query.rows) == Counter(batch), variant.name
    again = Watched().all_available(counted(pipe.read("half", order="rowtime", **cut), kind))
    assert Counter(again.rows) == Counter(batch), f"half, {cut}"
    for more, fewer in pairwise(variants):
        assert all(more.seen[row] <= fewer.seen[row] for row in batch), f"{more.name}, {fewer.name}: {steps}"
    assert any(variants[0].seen[row] < variants[2].seen[row] for row in batch), "the bounds were of use"
