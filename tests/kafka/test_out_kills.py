"""kill -9 of a drain into a topic, and of the broker under it, at random moments; a consumer reads what is committed.

A few times in CI; ``ROWTIME_KILLS=100 python -m pytest tests/kafka/test_out_kills.py`` for the table of
docs/guarantees.md.
"""

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import spark_rowtime as rt
from tests.crash.checks import kill_at_random
from tests.crash.tally import FAULTS, Tally
from tests.crash.victims import Victim, how_many
from tests.kafka.drains import drain_into
from tests.kafka.topics import messages, rows_and_bound

START = 1_767_610_800_000_000
"""2026-01-05T11:00:00Z in microseconds."""
MINUTE = 60_000_000


class Pipeline:
    """A stream that gets rows, and the topic that it is drained into."""

    def __init__(self, kafka: Any, folder: Path) -> None:
        self.kafka, self.topic, self.stream = kafka, kafka.topic(), str(folder / "orders.rowtime")
        rt.createStream(self.stream, "rowtime TIMESTAMP NOT NULL, n BIGINT")
        self._sink = rt.openSink(self.stream, producer="shop", linger="0 s")
        self.sent = 0

    def more(self, count: int) -> None:
        """Sends so many rows, a minute apart, some with a commit of their own."""
        for n in range(self.sent, self.sent + count):
            self._sink.sendRow((rt.RowtimeBound.fromFloor(START + n * MINUTE).time, n))
            if n % 5 == 0:
                self._sink.flush()
        self._sink.flush()
        self.sent += count

    def drain(self, dying: bool) -> Victim:
        return Victim(drain_into, self.stream, f"kafka://{self.kafka.bootstrap}/{self.topic}", dying)

    def check(self, line: Tally) -> None:
        """Each row is there at most once, and all of those that the bound of every partition closes."""
        found, bound = rows_and_bound(messages(self.kafka.bootstrap, self.topic, hanging=True))
        closed = [n for n in range(self.sent) if bound is not None and START + n * MINUTE < bound]
        line.account(found, closed, range(self.sent))

    def end(self, line: Tally) -> None:
        """Drains the rest, after which every row is there once, and each partition says that it is complete."""
        self._sink.close(complete=True)
        assert self.drain(dying=False).end()[1] == 0
        found = messages(self.kafka.bootstrap, self.topic)
        assert all(partition and partition[-1].headers.get("rowtime.strict") == b"true" for partition in found)
        numbers, _ = rows_and_bound(found)
        line.account(numbers, range(self.sent), range(self.sent))
        assert Counter(numbers) == Counter(range(self.sent))


@pytest.mark.long
def test_a_drain_into_a_topic_killed_at_random_moments(kafka: Any, tmp_path: Path) -> None:
    dice, line = random.Random("drain"), FAULTS.setdefault("kill -9 of a drain into a topic of Kafka", Tally())
    pipeline = Pipeline(kafka, tmp_path)
    for _ in range(how_many(4)):
        pipeline.more(60 + dice.randrange(60))
        assert kill_at_random(pipeline.drain(dying=True), dice, patience=1)
        line.fault()
        pipeline.check(line)
    pipeline.end(line)


@pytest.mark.night
def test_a_broker_that_is_killed_under_a_drain_at_random_moments(kafka: Any, tmp_path: Path) -> None:
    """The drain goes on when the broker is back, or it has ended with an error and another one goes on."""
    pipeline, line = Pipeline(kafka, tmp_path), FAULTS.setdefault("kill -9 of Kafka's broker under a drain", Tally())
    kill_brokers(pipeline, line, how_many(1))


def kill_brokers(pipeline: Pipeline, line: Tally, times: int) -> None:
    """Kills a broker and starts it again, so many times, while a drain runs."""
    dice, drain = random.Random("broker"), pipeline.drain(dying=True)
    for _ in range(times):
        pipeline.more(100 + dice.randrange(100))
        if not drain.listen(3, len(drain.heard) + 1 + dice.randrange(8)):
            drain.end()
            drain = pipeline.drain(dying=True)
        drain.listen(dice.uniform(0, 0.05))
        pipeline.kafka.kill()
        line.fault()
        pipeline.kafka.start()
        pipeline.check(line)
    drain.kill()
    pipeline.end(line)
