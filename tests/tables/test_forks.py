"""A process forks while it drains into a table."""

import gc
import threading

import pytest

import spark_rowtime as rt
from spark_rowtime.store import forks
from tests.store.forking import ended, forked
from tests.tables.lake import Lake
from tests.tables.test_drain import SCHEMA, fill

pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")


@pytest.fixture(autouse=True)
def filled(lake: Lake) -> None:
    rt.createStream(lake.stream, SCHEMA)
    fill(lake.stream, range(3, 8))


@pytest.mark.long
@pytest.mark.parametrize("kind", ["parquet", "iceberg"])
def test_a_child_changes_nothing_of_what_its_parent_drains(lake: Lake, kind: str) -> None:
    """Neither by a call, nor when it frees what it inherited: a file of Parquet is half written then."""
    with rt.openReader(lake.stream) as reader:
        sink = rt.openTableSink(lake.target(kind), reader.schema, maxRows=1)
        for train in reader:
            sink.sendRows(train.rows)
        inherited = [sink]

        def free() -> None:
            with pytest.raises(rt.SinkClosedError, match="this one was forked"):
                inherited[0].flush()
            inherited.pop().close()
            gc.collect()

        assert ended(forked(free)) == [0]
        sink.sendRowtimeBound(train.bound)
        sink.flush(checkpoint=reader.position)
        sink.close()
    assert lake.numbers(kind) == [3, 4, 5, 6, 7][: 4 if kind == "parquet" else 5]


def test_a_drain_that_was_forked_is_locked_by_its_process_alone(lake: Lake) -> None:
    """A child that lives on does not keep the folder locked."""
    with rt.openReader(lake.stream) as reader:
        sink, leave = rt.openTableSink(lake.target("parquet"), reader.schema), threading.Event()
    child = forked(leave.wait)
    try:
        sink.abandon()
        lake.drain("parquet")
    finally:
        forks.os.kill(child, 9)
        codes = ended(child)
    assert codes == [-9]
    assert lake.numbers("parquet") == [3, 4, 5, 6]


def test_a_lock_ends_with_its_drain_also_while_a_child_has_it_open(lake: Lake) -> None:
    """As a child does that was forked just now, and has closed nothing yet."""
    with rt.openReader(lake.stream) as reader:
        sink = rt.openTableSink(lake.target("parquet"), reader.schema)
    inherited = forks.os.dup(sink._lock.fd)
    sink.abandon()
    lake.drain("parquet")
    forks.os.close(inherited)
    assert lake.numbers("parquet") == [3, 4, 5, 6]


def test_a_child_drains_into_a_catalog_that_its_parent_has_open(lake: Lake) -> None:
    with rt.openReader(lake.stream) as reader, rt.openTableSink(lake.target("iceberg"), reader.schema) as sink:
        assert ended(forked(lambda: lake.drain("iceberg"))) == [0]
        sink.abandon()
    assert lake.numbers("iceberg") == [3, 4, 5, 6, 7]


def test_a_child_refuses_a_catalog_that_a_thread_was_using(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forks, "PATIENCE_SECONDS", 0.05)
    inside, leave = threading.Event(), threading.Event()

    def commit() -> None:
        with forks.no_fork("iceberg:lake"):
            inside.set()
            leave.wait()

    thread = threading.Thread(target=commit)
    thread.start()
    inside.wait()

    def refused() -> None:
        with pytest.raises(rt.ProcessForkedError, match="'lake'"):
            lake.drain("iceberg")
        lake.drain("parquet")

    assert ended(forked(refused)) == [0]
    leave.set()
    thread.join()
    lake.drain("iceberg")
