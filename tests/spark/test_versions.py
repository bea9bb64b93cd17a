"""Each cell of docs/versions.md, under the Spark that is installed."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyspark
import pytest
from pyspark.errors import StreamingQueryException

from tests.spark.query_output import Watched
from tests.sparksession import wait_for
from tests.streams import Pipe, opened, send

PAGE = Path(__file__).resolve().parents[2] / "docs" / "versions.md"
MINUTES = tuple((f"10:{minute:02d}", minute) for minute in range(4))
EVOLUTION = "spark.sql.streaming.queryEvolution.enableSourceEvolution"
IDLE_PROGRESS = "spark.sql.streaming.noDataProgressEventInterval"
TURN_MS = 1500
"""A query without news asks for them in turns of two seconds; without a wait, in less than ten milliseconds."""
LIMITS = ("maxRowsPerTrigger", "maxBytesPerTrigger")


def limited(pipe: Pipe, **options: str) -> None:
    for name in LIMITS:
        with Watched().start(pipe.read("s", **{name: "1"}, **options)) as watched:
            assert watched.step() == [*MINUTES]
            assert [len(batch) for batch in watched.batches if batch] == [1] * len(MINUTES)


def available_now(pipe: Pipe, **options: str) -> None:
    watched, feed = Watched(), opened(pipe.path("s"), "second")
    watched.then = lambda: send(feed, ("11:00", 9))  # while it runs: not of this run
    watched.all_available(pipe.read("s", **options))
    assert watched.rows == [*MINUTES]
    assert len(watched.batches) == (len(MINUTES) if options.keys() & set(LIMITS) else 1)


def available_now_limited(pipe: Pipe, **options: str) -> None:
    available_now(pipe, maxRowsPerTrigger="1", **options)


def metrics(pipe: Pipe) -> None:
    with Watched().start(pipe.read("s")) as watched:
        watched.step()
        assert watched.query is not None
        source = wait_for(lambda: watched.query.lastProgress, "progress").sources[0]  # type: ignore[union-attr]
        assert source.metrics["bound"] == "2006-09-11T10:03:00Z"
        assert "seq" in source.latestOffset


def waits(pipe: Pipe) -> None:
    pipe.spark.conf.set(IDLE_PROGRESS, "0")
    try:
        with Watched().start(pipe.read("s")) as watched:
            watched.step()
            wait_for(lambda: watched.query.lastProgress.durationMs["latestOffset"] > TURN_MS, "a long wait")  # type: ignore[union-attr]
    finally:
        pipe.spark.conf.unset(IDLE_PROGRESS)


def named(pipe: Pipe) -> None:
    pipe.spark.conf.set(EVOLUTION, "true")
    try:
        frame = pipe.spark.readStream.format("rowtime").name("minutes").load(pipe.path("s"))
        assert Watched().all_available(frame).rows == [*MINUTES]
    finally:
        pipe.spark.conf.unset(EVOLUTION)


def ignoring(probe: Callable[..., None]) -> Callable[[Pipe], None]:
    return lambda pipe: probe(pipe, bounds="ignore")


PROBES: dict[str, Callable[[Pipe], None]] = {
    "`maxRowsPerTrigger`, `maxBytesPerTrigger`": limited,
    "`Trigger.AvailableNow`": available_now,
    "`Trigger.AvailableNow` with limits": available_now_limited,
    "metrics in the query's progress": metrics,
    "a query without news waits for some, and is not asked a hundred times a second": waits,
    "`readStream.name`, with source evolution": named,
    "`bounds=ignore`: `Trigger.AvailableNow`": ignoring(available_now),
    "`bounds=ignore`: `maxRowsPerTrigger`, `maxBytesPerTrigger`": ignoring(limited),
    "`bounds=ignore`: `Trigger.AvailableNow` with limits": ignoring(available_now_limited),
}


def cells() -> dict[str, str]:
    """What the page's first table says of each row under this version."""
    table = PAGE.read_text().split("\n\n| ")[1].split("\n\n")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    column = rows[0].index(".".join(pyspark.__version__.split(".")[:2]))
    return {row[0]: row[column] for row in rows[2:]}


@pytest.mark.smoke
@pytest.mark.each
@pytest.mark.parametrize("row", PROBES)
def test_a_cell(pipe: Pipe, row: str) -> None:
    said = cells()
    assert said.keys() == PROBES.keys()
    pipe.create("s", "x INT")
    with opened(pipe.path("s"), "first") as feed:
        for minute in MINUTES:
            send(feed, minute)
    assert said[row] == outcome(PROBES[row], pipe)


def outcome(probe: Callable[[Pipe], None], pipe: Pipe) -> Any:
    try:
        probe(pipe)
    except AttributeError as error:
        assert "DataStreamReader" in str(error)
        return "not in Spark"
    except StreamingQueryException as error:
        assert "InvalidOptionError" in str(error)
        assert any(name in str(error) for name in LIMITS)
        return "refused"
    return "yes"
