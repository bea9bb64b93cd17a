"""The native read path against the one through Python workers: the same rows in the same batches."""

import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, raise_error, udf, when
from pyspark.sql.streaming import StreamingQuery

import spark_rowtime as rt
from spark_rowtime.reader.release import Release
from spark_rowtime.spark.partition import LEAST_PARTITION_ROWS, PARTITION_ROWS, native_plan, partitioned
from spark_rowtime.store import create_store, open_store
from spark_rowtime.store.commits import Slice
from spark_rowtime.store.settings import StreamSettings
from spark_rowtime.types.schema import stream_schema
from tests.postgresserver import PostgresServer
from tests.spark.test_source import TYPES, VALUES
from tests.sparksession import NATIVE_READ, wait_for
from tests.streams import Pipe, at, opened, send

NARROW = "rowtime TIMESTAMP NOT NULL, x INT, s STRUCT<a: STRING, l: ARRAY<INT>>"


@pytest.fixture(autouse=True)
def switch(spark: SparkSession) -> Iterator[None]:
    """Back to native after each test; whatever a test did, nothing is left off the heap."""
    yield
    spark.conf.unset(NATIVE_READ)
    wait_for(lambda: not off_heap(spark), "the readers' memory to be given back")


def off_heap(spark: SparkSession) -> list[str]:
    """The allocators of readers that are not closed. Spark's own are left out: a Python task that fails leaves one."""
    allocators = spark._jvm.org.apache.spark.sql.util.ArrowUtils.rootAllocator().getChildAllocators()
    return [str(allocator) for allocator in allocators if allocator.getName() == "rowtime"]


def is_native(query: StreamingQuery) -> bool:
    """Only the native path reads in columns."""
    return "ColumnarToRow" in query._jsq.explainInternal(False)


class Twice:
    """A frame run to the end of what there is, natively and through Python, each from its checkpoint."""

    def __init__(self, frame: Callable[[], DataFrame], folder: Path) -> None:
        self.frame, self.folder = frame, folder
        self.rows_in: dict[bool, int] = {}

    def step(self) -> list[list[str]]:
        """The rows of each batch; both ways give the same."""
        native, python = self.run(True), self.run(False)
        assert native == python
        return native

    def run(self, native: bool, checkpoint: str = "") -> list[list[str]]:
        """One way, which is the one that was asked for."""
        frame = self.frame()
        frame.sparkSession.conf.set(NATIVE_READ, str(native).lower())
        batches: list[list[str]] = []
        writer = frame.writeStream.foreachBatch(lambda f, _: batches.append(sorted(map(repr, f.collect()))))
        writer = writer.option("checkpointLocation", str(self.folder / (checkpoint or str(native))))
        query = writer.trigger(availableNow=True).start()
        assert query.awaitTermination(240)
        if batches and batches[-1]:
            assert is_native(query) is native
        self.rows_in[native] = sum(progress.numInputRows for progress in query.recentProgress)
        return batches


def twice(pipe: Pipe, name: str, columns: str = "*", **options: Any) -> Twice:
    """The stream of that name, with some columns, under these options."""
    folder = pipe.folder / re.sub(r"\W+", "-", f"{name} {columns} {options}")
    return Twice(lambda: pipe.read(name, **options).selectExpr(columns), folder)


def flat(batches: list[list[str]]) -> list[str]:
    return [row for batch in batches for row in batch]


@pytest.mark.smoke
@pytest.mark.parametrize("order", ["arrival", "rowtime"])
def test_every_type_is_the_same_whole_and_in_part(pipe: Pipe, order: str) -> None:
    every_type_in_part(pipe, order)


@pytest.mark.night
def test_every_type_of_a_stream_in_a_database(database_pipe: Pipe) -> None:
    """Its rows travel with the partitions, so tasks read them without a Python worker."""
    every_type_in_part(database_pipe, "rowtime")


def every_type_in_part(pipe: Pipe, order: str) -> None:
    rt.createStream(pipe.path("s"), TYPES)
    values = sorted(VALUES, key=lambda row: row[0])
    with opened(pipe.path("s"), "feed", rowsImplyBounds=False) as sink:
        sink.sendRows(values[::-1] * 2)  # one train that is not sorted, of which each bound releases some
        both = twice(pipe, "s", order=order)
        sent = 0
        for row in values:
            sink.sendRowtimeBound(row[0])
            sink.flush()
            sent += len(flat(both.step()))
        assert sent == 2 * len(values)
    twice(pipe, "s", "rowtime", order=order).step()


@pytest.mark.long
@pytest.mark.parametrize("columns", ["x", "s.a", "size(s.l) AS n", "rowtime", "1 AS one"])
def test_pruned_columns(pipe: Pipe, columns: str) -> None:
    rt.createStream(pipe.path("s"), NARROW)
    with opened(pipe.path("s"), "feed", rowsImplyBounds=False) as sink:
        send(sink, ("10:02", 1, ("a", [1, 2])), ("10:00", None, None), ("10:01", 3, (None, [])), promise="9:00")
        send(sink, promise="10:01")
        assert len(flat(twice(pipe, "s", columns, order="rowtime").step())) == 2


OPTIONS: list[dict[str, Any]] = [
    {"maxBytesPerTrigger": 2000},
    {"order": "rowtime", "startingPosition": at("10:05"), "hold": "30 seconds", "maxRowsPerTrigger": 5},
]


@pytest.mark.night
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_random_streams_of_several_producers_over_restarts(pipe: Pipe, options: dict[str, Any]) -> None:
    rt.createStream(pipe.path("s"), NARROW)
    dice = random.Random(str(options))
    both = twice(pipe, "s", **options)
    sinks = [
        opened(pipe.path("s"), "in order"),
        opened(pipe.path("s"), "late", lateness="4 minutes", onLate="reject", durability="power"),
        opened(pipe.path("s"), "any order", rowsImplyBounds=False),
    ]
    handed_out = 0
    for minute in (0, 6, 12):
        for sink in sinks:
            for half in (0, 3):
                sent = rows(dice, minute + half, 6)
                sink.sendRows(sent if sink is sinks[0] else dice.sample(sent, len(sent)))
                sink.flush()
        sinks[2].sendRowtimeBound(at(f"10:{minute + 3:02d}"))
        sinks[2].flush()
        count = len(flat(both.step()))
        assert both.rows_in == {True: count, False: count}
        handed_out += count
    assert handed_out
    for sink in sinks:
        sink.close()
    both.step()
    files = len(list(Path(pipe.path("s"), "segments").iterdir()))
    assert files == 2, "sinks of one process and one durability share a file; the query reads several"


def rows(dice: random.Random, minute: int, count: int) -> list[tuple[Any, ...]]:
    """Sorted rows with nulls, within three minutes from that one on."""
    times = sorted(f"10:{minute + dice.randrange(3):02d}:{dice.randrange(60):02d}" for _ in range(count))
    return [(at(t), dice.choice([None, n]), dice.choice([None, (str(n), [n, None])])) for n, t in enumerate(times)]


def test_a_batch_that_is_run_again_may_take_the_other_path(pipe: Pipe) -> None:
    path = pipe.create("s", "x INT")
    sink = opened(path, "feed", rowsImplyBounds=False)
    send(sink, ("10:03", 1), ("10:01", 2), ("10:02", 3), promise="10:02")
    both = twice(pipe, "s", order="rowtime")
    first = both.step()
    for file in (both.folder / "True" / "commits").glob("*0*"):
        file.unlink()
    assert both.run(False, "True") == first
    send(sink, promise="10:03")
    assert len(flat(both.run(True, "False"))) == 1


@pytest.mark.parametrize("damage", ["flip", "cut", "gone"])
def test_damage_is_named_in_the_same_words(pipe: Pipe, damage: str) -> None:
    path = pipe.create("s", "x INT")
    with opened(path, "it's") as sink:
        send(sink, ("10:00", 1))
        send(sink, ("10:01", 2))
    [file] = Path(path, "segments").iterdir()
    bytes_ = bytearray(file.read_bytes())
    bytes_[-40] ^= 1
    if damage == "gone":
        file.unlink()
    else:
        file.write_bytes(bytes_ if damage == "flip" else bytes_[:-40])
    said = set()
    for native in (True, False):
        with pytest.raises(StreamingQueryException) as caught:
            twice(pipe, "s").run(native)
        said |= set(re.findall(r"StoreCorruptError: (.*? from a copy\.)", str(caught.value)))
    [text] = said
    train = 2 if damage == "gone" else 3
    for part in (str(file), "offset ", f'train {train} of "it\'s"'):
        assert part in text


@pytest.mark.long
def test_rows_of_a_database_whose_bytes_are_damaged(database_pipe: Pipe, postgres: PostgresServer) -> None:
    """The same error on both ways."""
    path = database_pipe.create("s", "x INT")
    with opened(path, "feed") as sink:
        send(sink, ("10:00", 1))
    postgres.execute(
        "UPDATE rowtime.trains SET bytes = set_byte(bytes, length(bytes) - 9, 9) WHERE stream = "
        f"(SELECT id FROM rowtime.streams WHERE name = '{path.partition('rowtime/')[2]}')"
    )
    said = set()
    for native in (True, False):
        with pytest.raises(StreamingQueryException) as caught:
            twice(database_pipe, "s").run(native)
        said |= set(re.findall(r"StoreCorruptError: (.*? from a backup\.)", str(caught.value)))
    assert len(said) == 1, said
    assert f"{path}: the checksum does not match; so train 2 of 'feed' cannot be read" in said.pop()


def test_more_rows_of_a_database_than_a_plan_carries_are_read_by_python(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, how = postgres.url("native/large"), Release("arrival")
    rt.createStream(path, "rowtime TIMESTAMP NOT NULL, x INT")
    with opened(path, "feed") as sink:
        send(sink, ("10:00", 1))
    with open_store(path) as store:
        ends = how.earliest(store), how.latest(store)
        assert native_plan(store, how, *ends, columns=2, parallelism=2)["partitions"]
        monkeypatch.setattr("spark_rowtime.spark.partition.CARRIED_BYTES", 100)
        assert native_plan(store, how, *ends, columns=2, parallelism=2) == {}


@pytest.mark.night
def test_a_reader_that_is_left_early_and_one_that_fails_give_their_memory_back(pipe: Pipe) -> None:
    path = pipe.create("s", "x INT")
    with rt.openSink(path, maxTrainRows=100) as sink:
        sink.sendRows([(at(f"10:{n // 60:02d}:{n % 60:02d}"), n) for n in range(1000)])
    assert len(flat(Twice(lambda: pipe.read("s").limit(150), pipe.folder / "limit").step())) == 150
    slow = udf(lambda x: x, "int")
    assert len(flat(Twice(lambda: pipe.read("s").select(slow("x")).limit(1), pipe.folder / "udf").step())) == 1
    fails = pipe.read("s").select(when(col("x") == 555, raise_error("enough")).otherwise(col("x")))
    with pytest.raises(StreamingQueryException, match="enough"):
        Twice(lambda: fails, pipe.folder / "fails").run(True)
    wait_for(lambda: not off_heap(pipe.spark), "the readers' memory to be given back")


def test_an_allocator_that_is_not_closed_is_seen(spark: SparkSession) -> None:
    root = spark._jvm.org.apache.spark.sql.util.ArrowUtils.rootAllocator()
    allocator = root.newChildAllocator("rowtime", 0, 1024)
    try:
        assert len(off_heap(spark)) == 1
    finally:
        allocator.close()


def test_a_stream_in_memory_is_not_planned_natively() -> None:
    path = "memory://native"
    create_store(path, stream_schema("rowtime TIMESTAMP NOT NULL, x INT"), StreamSettings())
    with rt.openSink(path) as sink:
        sink.sendRow((at("10:00"), 1))
    store, how = open_store(path), Release("arrival")
    assert native_plan(store, how, how.earliest(store), how.latest(store), columns=2, parallelism=2) == {}


def test_partitions_are_even_and_use_the_cores_where_it_is_worth_it() -> None:
    def sizes(parallelism: int, *rows: int, row_bytes: int = 40) -> list[int]:
        pieces = [Slice(n, "p", count, 0, 0, count * row_bytes, None) for n, count in enumerate(rows)]
        return [sum(piece.rows for piece in part) for part in partitioned(pieces, parallelism)]

    assert sizes(2) == []
    assert sizes(8, 10, 20) == [30]
    assert sizes(2, *[LEAST_PARTITION_ROWS] * 4) == [2 * LEAST_PARTITION_ROWS] * 2
    assert sizes(100, *[LEAST_PARTITION_ROWS] * 4) == [LEAST_PARTITION_ROWS] * 4
    assert sizes(1, *[LEAST_PARTITION_ROWS] * 8) == [PARTITION_ROWS] * 2
    assert sizes(1, *[1000] * 4, row_bytes=100_000) == [1000] * 4, "wide rows count by their bytes"


def test_a_python_function_gets_the_rows_of_all_trains(pipe: Pipe) -> None:
    """From 4.3 on Spark keeps a batch of Arrow's own columns beyond its reader's next one, when its memory is freed."""
    pipe.create("s", "x BIGINT, name STRING")
    with opened(pipe.path("s")) as sink:
        for n in range(40):
            send(sink, *((f"12:{n:02d}", 50 * n + i, f"name {50 * n + i}") for i in range(50)))
    same = udf(lambda x: x, "bigint")
    rows: list[Any] = []
    frame = pipe.read("s").withColumn("y", same("x")).where("y IS NOT NULL").select("x", "y", "name")
    writer = frame.writeStream.foreachBatch(lambda f, _: rows.extend(tuple(row) for row in f.collect()))
    query = writer.option("checkpointLocation", str(pipe.folder / "c")).trigger(availableNow=True).start()
    assert query.awaitTermination(240)
    assert sorted(rows) == [(x, x, f"name {x}") for x in range(2000)]
