"""How far a partition is read from its end is known to who describes the stream."""

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from prometheus_client import generate_latest

import spark_rowtime as rt
from spark_rowtime.cli import main
from spark_rowtime.kafka import partition_reader
from spark_rowtime.kafka.consumption import Consumption
from spark_rowtime.serve.call import SharedCalls
from spark_rowtime.serve.metrics import registry_of
from spark_rowtime.serve.served import Served
from spark_rowtime.serve.state import read_shown
from tests.kafka.feeds import moment, read


def lag(path: str) -> dict[str, int | None]:
    return {producer.name: producer.lag for producer in rt.describeStream(path).producers}


def test_a_partition_that_stands_lags_by_what_has_come_since(
    kafka: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The decoder waits for what is never there; meanwhile more messages come, until the test ends it."""
    monkeypatch.setattr(partition_reader, "LAG_SECONDS", 0.0)
    path, topic = str(tmp_path / "s"), kafka.topic(partitions=2)
    seen: list[int] = []

    def decode(found: Any) -> Any:
        if int(found.value()) == 3:
            raise rt.MessageNotReadyError("It is never there.")
        return moment(int(found.value())), int(found.value())

    def step(consumption: Consumption) -> None:
        whole(consumption)
        if lag(path).get(f"{topic}-0") == 7 and not seen:
            seen.append(7)
            kafka.send(topic, [{"value": str(n), "partition": 0} for n in range(10, 15)])
        elif lag(path) == {f"{topic}-0": 12, f"{topic}-1": 0}:
            raise rt.KafkaUnavailableError("the test has seen it")

    whole = Consumption._step
    monkeypatch.setattr(Consumption, "_step", step)
    kafka.send(topic, [{"value": str(n), "partition": n // 10} for n in range(12)])
    with pytest.raises(rt.KafkaUnavailableError, match="has seen it"):
        read(kafka, path, topic, decoder=decode)
    assert seen == [7]
    shown = " ".join(CliRunner().invoke(main, ["describe", path]).output.split())
    assert "12 messages behind the end of its partition, at its last commit" in shown
    metrics = generate_latest(registry_of(Served([path]), SharedCalls(read_shown))).decode()
    assert f'rowtime_producer_lag_messages{{producer="{topic}-0",stream="{path}"}} 12.0' in metrics


def test_a_checkpoint_that_is_none_of_kafkas_has_no_lag(tmp_path: Path) -> None:
    path = str(tmp_path / "s")
    rt.createStream(path, "rowtime TIMESTAMP NOT NULL")
    with closing(rt.openSink(path, producer="a")) as sink:
        for text in ("7", '{"topicId": "x", "offset": 1}', '{"topicId": 1, "offset": "x", "end": 3}', "[" * 5000):
            sink.flush(checkpoint=text)
            assert lag(path) == {"a": None}
