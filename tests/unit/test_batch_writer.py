"""A batch write that fails leaves the stream as it was: it waits for the same producers."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import StructField, StructType, TimestampType
from unit_support import new_sink, us, when

import spark_rowtime as rt
from spark_rowtime.producer.sink import StreamSink
from spark_rowtime.spark.batch_writer import RowtimeBatchWriter
from spark_rowtime.spark.options import WRITE_BATCH, Options
from spark_rowtime.store import open_store
from spark_rowtime.store.local.store import LocalStore
from spark_rowtime.store.record import ProducerInfo

SCHEMA = StructType([StructField("rowtime", TimestampType())])
FAR = when("2090-01-01T00:00:00")


NewPath = Callable[..., str]


@pytest.fixture
def stream(tmp_path: Path) -> NewPath:
    """Creates a stream on disk, with these settings: Spark uses none in memory."""

    def new(**settings: Any) -> str:
        path = str(tmp_path / "hours.rowtime")
        rt.createStream(path, "rowtime TIMESTAMP NOT NULL", **settings)
        return path

    return new


def write(path: str, *times: object, producer: str = "nightly") -> None:
    writer = RowtimeBatchWriter(Options({"path": path, "producer": producer}, WRITE_BATCH), SCHEMA)
    rows = pa.RecordBatch.from_pydict({"rowtime": pa.array(list(times), pa.timestamp("us", "UTC"))})
    writer.commit([writer.write(iter([rows]))])


def status(path: str, producer: str) -> str:
    found = open_store(path).producer(producer)
    assert found is not None
    return found.status.value


def test_who_was_expected_is_waited_for_after_a_write_that_failed(stream: NewPath) -> None:
    path = stream(producers=["nightly", "live"], maxAhead="1 hour")
    live = new_sink(path, "live")
    live.sendRowtimeBound(when("12:00"))
    with pytest.raises(rt.RowtimeAheadError):
        write(path, when("10:00"), FAR)
    assert rt.describeStream(path).bound is None
    assert open_store(path).snapshot().records["nightly"].lease is None, "nobody who was expected is given up"
    write(path, when("10:00"))
    assert rt.describeStream(path).rows == 1
    assert open_store(path).head().floor == us("12:00")
    live.close()


def test_who_joined_for_the_write_alone_holds_nobody_after_it_failed(stream: NewPath) -> None:
    path = stream(maxAhead="1 hour")
    live = new_sink(path, "live")
    with pytest.raises(rt.RowtimeAheadError):
        write(path, FAR)
    live.sendRowtimeBound(when("12:00"))
    assert (status(path, "nightly"), open_store(path).head().floor) == ("detached", us("12:00"))
    live.close()


def test_who_has_taken_the_producer_over_keeps_it(stream: NewPath, monkeypatch: pytest.MonkeyPatch) -> None:
    path, sinks = stream(), list[StreamSink]()
    kind = type(open_store(path))
    attach = kind.attach

    def attach_and_lose(store: LocalStore, producer: str, *others: Any) -> ProducerInfo:
        info = attach(store, producer, *others)
        if not sinks:
            monkeypatch.setattr(kind, "attach", attach)
            sinks.append(new_sink(path, producer, order={"rowsImplyBounds": False}))
        return info

    monkeypatch.setattr(kind, "attach", attach_and_lose)
    with pytest.raises(rt.ProducerFencedError):
        write(path, when("10:00"))
    assert status(path, "nightly") == "attached"
    sinks[0].close()
