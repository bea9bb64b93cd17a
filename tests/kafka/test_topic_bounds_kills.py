"""kill -9 of a Spark driver that reads a topic by the bounds beside it: each row counts once, or is rejected once.

One kill in CI, and in `make test-night` one of a driver that derives the bounds; so many:
``ROWTIME_KILLS=50 python -m pytest tests/kafka/test_topic_bounds_kills.py``.
"""

import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import spark_rowtime as rt
from tests.crash.drivers import ROOT, logged
from tests.crash.tally import Tally
from tests.crash.victims import how_many
from tests.kafka.topic_bounds import TopicBounds, promise
from tests.sparksession import wait_for
from tests.streams import at, clock_of

MEASURES: list[Callable[[Path], int]] = [
    lambda folder: logged(folder, "offsets"),
    lambda folder: logged(folder, "commits"),
]
PARTITIONS = (0, 1)
"""Partition 2 is idle."""


def clock(minutes: int) -> str:
    return clock_of(datetime(2006, 9, 11, 8) + timedelta(minutes=minutes))


def end_of(time: str) -> str:
    """The end of the window of ten minutes into which a time falls."""
    moment = datetime.fromisoformat(at(time)[:-1])
    return clock_of(moment + timedelta(minutes=10 - moment.minute % 10))


def feed(topic_bounds: TopicBounds, sink: Any, dice: random.Random, rounds: range) -> list[tuple[int, int, str, str]]:
    """Sends ten minutes a round, a tenth of the rows late, and their bound. Returns partition, offset, time and key."""
    sent = []
    for number in rounds:
        for partition in PARTITIONS:
            first = topic_bounds.ends[topic_bounds.topics[0]][partition]
            minutes = [max(number * 10 + dice.randint(-1, 9) - 15 * (dice.random() < 0.1), 1) for _ in range(20)]
            rows = [(clock(minute), dice.choice("ab")) for minute in minutes]
            topic_bounds.put(partition, *rows)
            sent += [(partition, first + place, *row) for place, row in enumerate(rows)]
        promise(sink, clock(number * 10 + 10), topic_bounds.cut())
    return sent


def driver(topic_bounds: TopicBounds, folder: Path, *how: str) -> subprocess.Popen[bytes]:
    command = [
        sys.executable,
        "-m",
        "tests.kafka.topic_bounds_driver",
        str(folder),
        topic_bounds.kafka.bootstrap,
        topic_bounds.topics[0],
    ]
    with (folder / "driver.log").open("ab") as log:
        return subprocess.Popen(
            [*command, *how],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def killed(topic_bounds: TopicBounds, folder: Path, dice: random.Random, *how: str) -> None:
    """Runs a driver, and kills it with its JVM and its Python processes a few batches later, somewhere in a batch."""
    measure = dice.choice(MEASURES)
    wanted = measure(folder) + dice.randint(1, 3)
    process = driver(topic_bounds, folder, *how)
    try:
        wait_for(lambda: measure(folder) >= wanted or process.poll() is not None, "batches", 240)
        assert process.poll() is None, (folder / "driver.log").read_text()[-5000:]
    finally:
        os.killpg(process.pid, 9)
        process.wait()


@pytest.mark.long
def test_each_row_of_a_topic_counts_once_or_is_rejected_once(
    kafka: Any, tmp_path: Path, tally: Callable[[str], Tally]
) -> None:
    line = tally("kill -9 of a Spark driver beside a topic")
    dice = random.Random(int(os.environ.get("ROWTIME_SEED", "1")))
    topic_bounds, sent, rounds = TopicBounds(None, kafka, tmp_path), [], 3
    with closing(topic_bounds.sink()) as sink:
        for kill in range(how_many(1)):
            sent += feed(topic_bounds, sink, dice, range(kill * rounds, (kill + 1) * rounds))
            killed(topic_bounds, tmp_path, dice)
            line.fault()
        sent += feed(topic_bounds, sink, dice, range(how_many(1) * rounds, (how_many(1) + 1) * rounds))
        promise(sink, clock((how_many(1) + 2) * rounds * 10), topic_bounds.cut())
        assert driver(topic_bounds, tmp_path, "end").wait(560) == 0, (tmp_path / "driver.log").read_text()[-5000:]
    rejected = {(partition, offset): (time, key) for partition, offset, time, key, _ in topic_bounds.rejected}
    assert len(rejected) == len(topic_bounds.rejected), "none is kept twice"
    assert 0 < len(rejected) < len(sent) / 5
    rows = {(partition, offset): (time, key) for partition, offset, time, key in sent}
    assert rejected.items() <= rows.items()
    counted = Counter((end_of(time), key) for place, (time, key) in rows.items() if place not in rejected)
    with rt.openReader(str(tmp_path / "counts.rowtime")) as reader:
        found = [row for train in reader for row in train.rows.to_pylist()]
    there = Counter({(clock_of(row["rowtime"]), row["k"]): row["count"] for row in found})
    line.account(there.elements(), counted.elements(), [*counted.elements()])
    assert len(found) == len(counted), "none is output twice"


def drift(topic_bounds: TopicBounds, dice: random.Random, rounds: range) -> dict[tuple[int, int], tuple[str, str]]:
    """Sends ten minutes a round into each partition, a tenth of the rows later than the watch allows."""
    sent = {}
    for number in rounds:
        for partition in (0, 1, 2):
            first = topic_bounds.ends[topic_bounds.topics[0]][partition]
            minutes = [number * 10 + place // 2 - 15 * (dice.random() < 0.1) + 20 for place in range(20)]
            rows = [(clock(minute), dice.choice("ab")) for minute in minutes]
            topic_bounds.put(partition, *rows)
            sent |= {(partition, first + place): row for place, row in enumerate(rows)}
    return sent


@pytest.mark.night
def test_a_driver_that_derives_the_bounds_is_killed(kafka: Any, tmp_path: Path, tally: Callable[[str], Tally]) -> None:
    """Its watch dies with it. The next one goes on; no row is lost or counted twice, and no window opens again."""
    line = tally("kill -9 of a Spark driver that hosts a watch")
    dice = random.Random(int(os.environ.get("ROWTIME_SEED", "1")))
    topic_bounds, sent, rounds = TopicBounds(None, kafka, tmp_path), {}, 4
    for kill in range(how_many(1)):
        sent |= drift(topic_bounds, dice, range(kill * rounds, (kill + 1) * rounds))
        killed(topic_bounds, tmp_path, dice, "watch")
        line.fault()
    sent |= drift(topic_bounds, dice, range(how_many(1) * rounds, (how_many(1) + 1) * rounds))
    assert driver(topic_bounds, tmp_path, "watch", "end").wait(560) == 0, (tmp_path / "driver.log").read_text()[-5000:]
    rejected = {(partition, offset): (time, key) for partition, offset, time, key, _ in topic_bounds.rejected}
    assert len(rejected) == len(topic_bounds.rejected), "none is kept twice"
    assert 0 < len(rejected) < len(sent) / 5
    assert rejected.items() <= sent.items()
    with rt.openReader(str(tmp_path / "counts.rowtime")) as reader:
        found = [row for train in reader for row in train.rows.to_pylist()]
    last = rt.describeStream(topic_bounds.bounds).bound.time.replace(tzinfo=None)
    counted = Counter((end_of(time), key) for place, (time, key) in sent.items() if place not in rejected)
    closed = Counter(
        {(end, key): n for (end, key), n in counted.items() if datetime.fromisoformat(at(end)[:-1]) <= last}
    )
    there = Counter({(clock_of(row["rowtime"]), row["k"]): row["count"] for row in found})
    line.account(there.elements(), closed.elements(), [*closed.elements()])
    assert len(found) == len(closed) > 6, "none is output twice"
