"""A query on a real cluster: feeds and readers here, the streams in PostgreSQL, tasks on machines of their own."""

import pytest

import spark_rowtime as rt
from tests.cluster.driver import Driver
from tests.cluster.standalone import ROOT, Cluster
from tests.postgresserver import PostgresServer
from tests.streams import at, bound, drained, opened, send


def test_executors_see_neither_the_disk_of_the_driver_nor_the_database(
    cluster: Cluster, driver: Driver, postgres: PostgresServer
) -> None:
    for place in (cluster.driver, cluster.shared):
        (place / "marker").touch()
    paths = [cluster.shared / "marker", cluster.driver / "marker", ROOT / "tests", ROOT / "spark_rowtime"]
    found = driver.call("sights", list(map(str, paths)), postgres.port)
    machines = {str(worker.folder) for worker in cluster.workers}
    assert {seen["folder"].partition("/work/")[0] for seen in found} <= machines
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


def test_many_rows_are_written_by_tasks_and_committed_by_the_driver(
    cluster: Cluster, driver: Driver, postgres: PostgresServer
) -> None:
    """More than travel in messages, so Python workers on the executors make the trains."""
    source, sink = postgres.url("cluster/many"), postgres.url("cluster/copied")
    rt.createStream(source, "rowtime TIMESTAMP NOT NULL, x INT")
    with opened(source, "feed") as feed:
        feed.sendRows([(at("9:00"), n) for n in range(20_000)])
        feed.flush()
    rt.createStream(sink, "rowtime TIMESTAMP NOT NULL, x INT", producers=["later"])
    driver.call("append", source, sink)
    driver.call("copy", source, sink, str(cluster.shared / "copied"), {})
    with rt.openReader(sink, order="arrival") as reader:
        found = sorted(x for train in reader for x in train.rows.column("x").to_pylist())
    assert found == sorted([*range(20_000)] * 2)
    assert driver.call("rows", sink) == 40_000
