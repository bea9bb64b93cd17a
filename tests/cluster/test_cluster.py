"""A query on a real cluster: feeds and readers here, the streams in PostgreSQL, tasks on machines of their own."""

from pathlib import Path
from typing import Any

import pytest

import spark_rowtime as rt
from spark_rowtime.store import open_store
from tests.cluster.driver import Driver
from tests.cluster.standalone import ROOT, Cluster
from tests.postgresserver import PostgresServer
from tests.streams import at, bound, drained, opened, send

pytestmark = pytest.mark.long


def test_executors_see_neither_the_disk_of_the_driver_nor_the_database(
    cluster: Cluster, driver: Driver, postgres: PostgresServer
) -> None:
    for place in (cluster.driver, cluster.shared):
        (place / "marker").touch()
    paths = [cluster.shared / "marker", cluster.driver / "marker", ROOT / "tests", ROOT / "spark_rowtime"]
    found = driver.call("sights", list(map(str, paths)), postgres.port)
    assert all(
        any(Path(seen["folder"]).is_relative_to(worker.folder / "work") for worker in cluster.workers) for seen in found
    )
    if not cluster.network.apart:
        pytest.skip("this process may not make networks and mounts: executors see what it sees")
    assert [(seen["sees"], seen["reaches"]) for seen in found] == [([str(paths[0])], False)] * 2


def test_windows_close_by_the_bound_across_restarts(cluster: Cluster, driver: Driver, postgres: PostgresServer) -> None:
    source, sink = postgres.url("cluster/orders"), postgres.url("cluster/hours")
    checkpoint = str(cluster.shared / "hours")
    rt.createStream(source, "rowtime TIMESTAMP NOT NULL, x INT")
    with opened(source, "feed", rowsImplyBounds=False) as feed:
        send(feed, ("9:10", 1), ("9:40", 1), ("10:05", 3), promise="10:00")
        driver.call("hourly", source, sink, checkpoint, {})
        with rt.openReader(sink) as reader:
            assert drained(reader) == [("10:00", 1, 2)]
            assert reader.getRowtimeBound() == bound("10:00", strict=True)
            send(feed, ("10:50", 3), promise="11:00")
            driver.call("hourly", source, sink, checkpoint, {})
            assert drained(reader) == [("11:00", 3, 2)]


@pytest.mark.parametrize(
    ("function", "expected"),
    [("recognized", [[], [("10:20", 1, 3)]]), ("joined", [[("09:10", 3, 3), ("09:40", 1, 1)], [("10:20", 2, 2)]])],
)
def test_operators_keep_their_state_on_executors(
    cluster: Cluster, driver: Driver, postgres: PostgresServer, function: str, expected: list[list[tuple[Any, ...]]]
) -> None:
    source, sink = (postgres.url(f"cluster/{function}-{name}") for name in ("in", "out"))
    rt.createStream(source, "rowtime TIMESTAMP NOT NULL, x INT")
    found = []
    with opened(source, "feed", rowsImplyBounds=False) as feed:
        send(feed, ("9:10", 3), ("9:40", 1), promise="10:00")
        driver.call(function, source, sink, str(cluster.shared / function))
        with rt.openReader(sink) as reader:
            found.append(drained(reader))
            send(feed, ("10:20", 2), promise="13:00")
            driver.call(function, source, sink, str(cluster.shared / function))
            found.append(drained(reader))
    assert found == expected


COLUMNS = "rowtime TIMESTAMP NOT NULL, x INT"


def filled(path: str, **settings: Any) -> str:
    """A stream of more rows than travel in messages."""
    rt.createStream(path, COLUMNS, **settings)
    with opened(path, "feed") as feed:
        feed.sendRows([(at("9:00"), n) for n in range(20_000)])
        feed.flush()
    return path


def numbers(path: str) -> list[int]:
    with rt.openReader(path, order="arrival") as reader:
        return sorted(x for train in reader for x in train.rows.column("x").to_pylist())


def test_many_rows_are_written_by_tasks_and_committed_by_the_driver(
    cluster: Cluster, driver: Driver, postgres: PostgresServer
) -> None:
    """Python workers on the executors make the trains, which travel to the commit."""
    source, sink = filled(postgres.url("cluster/many")), postgres.url("cluster/copied")
    rt.createStream(sink, COLUMNS, producers=["later"])
    driver.call("append", source, sink)
    driver.call("copy", source, sink, str(cluster.shared / "copied"), {})
    assert numbers(sink) == sorted([*range(20_000)] * 2)
    assert driver.call("rows", sink) == 40_000


def test_tasks_read_and_write_objects_of_a_location(
    cluster: Cluster, driver: Driver, postgres: PostgresServer, location: str
) -> None:
    name = location.partition(":")[0]
    source = filled(postgres.url(f"cluster/{name}"), location=location)
    sink = postgres.url(f"cluster/{name}-copied")
    rt.createStream(sink, COLUMNS, location=location)
    driver.call("copy", source, sink, str(cluster.shared / name), {})
    assert numbers(sink) == [*range(20_000)]
    for path, objects in ((source, 1), (sink, 2)):
        with open_store(path) as store:
            assert len(store.objects.sizes()) == objects, "each of two tasks has written one"
