"""The sink's commits as runs and copies of one query would make them: in turn, each once. Without a Spark session."""

from contextlib import closing
from pathlib import Path

import pytest
from pyspark.sql.types import IntegerType, StructType, TimestampType

import spark_rowtime as rt
from spark_rowtime.spark.options import WRITE, Options
from spark_rowtime.spark.query_batch import REMEMBERED_RUNS, Batch
from spark_rowtime.spark.sink import RowtimeStreamWriter, TaskOutput
from spark_rowtime.store import open_store
from spark_rowtime.store.commits import Commit
from spark_rowtime.types.schema import rows_to_batch
from tests.streams import at

SCHEMA = StructType().add("rowtime", TimestampType(), nullable=False).add("x", IntegerType())


class Sink:
    """A stream, and the commits into it; a batch's one row has its number."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)
        rt.createStream(self.path, SCHEMA)

    def commit(self, run: str, number: int, offsets: str | None = None, stream: str | None = None) -> None:
        """``offsets``: of a batch that is not the same as that of the other runs."""
        store = open_store(self.path)
        rows = store.stage(rows_to_batch([(at("10:00"), number)], store.schema))
        ends = f"to {number}" if offsets is None else offsets
        output = TaskOutput(Batch("q", run, number, ends), {}, stream or store.stream, [rows])
        store.close()
        RowtimeStreamWriter(Options({"path": self.path}, WRITE), SCHEMA).commit([output], number)

    @property
    def landed(self) -> list[int]:
        with rt.openReader(self.path, order="arrival") as reader:
            return [row["x"] for train in reader for row in train.rows.to_pylist()]


@pytest.fixture
def sink(tmp_path: Path) -> Sink:
    """An empty stream."""
    return Sink(tmp_path / "out")


def test_in_turn(sink: Sink) -> None:
    for number in (0, 1, 1, 2):
        sink.commit("a", number)
    assert sink.landed == [0, 1, 2]
    with pytest.raises(rt.DataLostError, match=r"Batch 4 of query q .* only batches up to 2"):
        sink.commit("a", 4)
    with pytest.raises(rt.ProducerFencedError, match=r"Batch 1 of query q .* batch 2 has been written"):
        sink.commit("a", 1)
    assert sink.landed == [0, 1, 2]


@pytest.mark.parametrize("checkpoint", ["10", "offset 7", '{"runs": 7}', "[" * 100_000])
def test_a_producer_of_another_program_is_refused(sink: Sink, checkpoint: str) -> None:
    with closing(open_store(sink.path)) as store:
        made = store.attach("spark-q", "another program", "{}")
        store.commit(Commit(made.name, made.epoch, 1, checkpoint=checkpoint))
    with pytest.raises(rt.InvalidOptionError, match="is not one of a query"):
        sink.commit("a", 0)
    assert not sink.landed


def test_of_two_runs_the_later_goes_on(sink: Sink) -> None:
    sink.commit("a", 0)
    sink.commit("b", 0)
    sink.commit("b", 1)
    for number in (1, 2):
        with pytest.raises(rt.ProducerFencedError, match="another run of the query has written batch 1"):
            sink.commit("a", number)
    sink.commit("b", 2)
    assert sink.landed == [0, 1, 2]
    [producer] = rt.describeStream(sink.path).producers
    assert producer.epoch == 2, "the fenced run has taken nothing over"


def test_of_two_runs_that_begin_with_the_same_batch_one_goes_on(sink: Sink) -> None:
    sink.commit("a", 0)
    sink.commit("b", 0)
    sink.commit("a", 1)
    sink.commit("b", 1)
    sink.commit("b", 2)
    with pytest.raises(rt.ProducerFencedError):
        sink.commit("a", 2)
    assert sink.landed == [0, 1, 2]


def test_a_batch_of_a_copy_that_ends_elsewhere(sink: Sink) -> None:
    sink.commit("a", 0)
    sink.commit("a", 1)
    with pytest.raises(rt.ProducerFencedError, match="another part of the source"):
        sink.commit("b", 1, offsets="to 5")
    assert sink.landed == [0, 1]


def test_where_a_batch_ends_is_not_known_without_the_extension(sink: Sink) -> None:
    sink.commit("a", 0, offsets="")
    sink.commit("b", 0)
    sink.commit("b", 1)
    sink.commit("c", 1, offsets="")
    assert sink.landed == [0, 1]


def test_a_stream_that_was_replaced_while_the_batch_was_written(sink: Sink) -> None:
    with pytest.raises(rt.DataLostError, match="deleted and created again while a batch was written"):
        sink.commit("a", 0, stream="another")
    assert sink.landed == []


def test_only_the_last_runs_are_remembered(sink: Sink) -> None:
    for number in range(3 * REMEMBERED_RUNS):
        sink.commit(f"run {number}", number)
    [producer] = rt.describeStream(sink.path).producers
    assert (producer.checkpoint or "").count("run ") == REMEMBERED_RUNS
    with pytest.raises(rt.ProducerFencedError):
        sink.commit(f"run {2 * REMEMBERED_RUNS}", 3 * REMEMBERED_RUNS)
