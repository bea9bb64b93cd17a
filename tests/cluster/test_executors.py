"""What must be on the executors, and the errors where it is not."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import spark_rowtime as rt
from tests.cluster.driver import Driver, DriverFailedError
from tests.cluster.standalone import PACKAGE, Cluster
from tests.postgresserver import PostgresServer
from tests.sparksession import NATIVE_READ, NATIVE_WRITE
from tests.streams import at, drained, opened, send

pytestmark = pytest.mark.long

UNLIKE = [
    f"spark-rowtime {rt.__version__}, but on the executor's machine",
    f"pip install spark-rowtime=={rt.__version__}",
]


@pytest.fixture
def package(cluster: Cluster) -> Iterator[Path]:
    """The package as the executors find it, which the test may change."""
    if not cluster.network.apart:
        pytest.skip("this process may not make mounts: executors find the package where this process has it")
    place, kept = cluster.site / PACKAGE, cluster.site / "kept"
    shutil.copytree(place, kept)
    yield place
    shutil.rmtree(place, ignore_errors=True)
    kept.rename(place)


@pytest.fixture
def orders(postgres: PostgresServer, request: pytest.FixtureRequest) -> str:
    """A stream in the database with an hour that is complete."""
    return filled(postgres.url(f"executors/{request.node.name}"))


def filled(path: str, rows: int = 2) -> str:
    rt.createStream(path, "rowtime TIMESTAMP NOT NULL, x INT")
    with opened(path, "feed") as feed:
        feed.sendRows([(at("9:10"), 1)] * rows)
        send(feed, promise="10:00")
        feed.flush()
    return path


@pytest.fixture
def fails(driver: Driver, cluster: Cluster, tmp_path: Path) -> Callable[..., str]:
    """Calls a query that fails, with a checkpoint of its own if it takes one; its error."""

    def call(function: str, *arguments: Any) -> str:
        checkpoint = str(cluster.shared / f"{tmp_path.name}-{len(list(cluster.shared.iterdir()))}")
        with pytest.raises(DriverFailedError) as caught:
            driver.call(function, *(checkpoint if a is Ellipsis else a for a in arguments))
        return str(caught.value)

    return call


def test_few_rows_need_no_package_on_the_executors(
    package: Path, orders: str, driver: Driver, cluster: Cluster, fails: Callable[..., str]
) -> None:
    """Only the jar, which Spark ships. What runs in Python says what is missing."""
    shutil.rmtree(package)
    driver.call("hourly", orders, f"{orders}-out", str(cluster.shared / "few"), {})
    with rt.openReader(f"{orders}-out") as reader:
        assert drained(reader) == [("10:00", 1, 2)]
    errors = [fails("rows", orders)]
    for way in (NATIVE_READ, NATIVE_WRITE):
        errors.append(fails("copy", orders, f"{orders}-{way}", ..., {way: "false"}))
    for error in errors:
        assert all(part in error for part in (*UNLIKE, "is not installed for")), error


def test_another_version_on_the_executors(package: Path, orders: str, fails: Callable[..., str]) -> None:
    init = package / "__init__.py"
    init.write_text(init.read_text().replace(f'__version__ = "{rt.__version__}"', '__version__ = "0.0.7"'))
    error = fails("copy", orders, f"{orders}-out", ..., {NATIVE_WRITE: "false"})
    assert all(part in error for part in (*UNLIKE, "is version 0.0.7 for")), error


def test_a_stream_in_a_directory_of_the_driver(
    cluster: Cluster, postgres: PostgresServer, fails: Callable[..., str]
) -> None:
    """Reading, natively and by Python, and writing many rows. Nothing is created on an executor's disk."""
    if not cluster.network.apart:
        pytest.skip("this process may not make mounts: executors see its disk")
    path, many = filled(str(cluster.driver / "orders.rowtime")), filled(postgres.url("executors/many"), 30_000)
    errors = [
        fails("copy", path, f"{many}-1", ..., {}),
        fails("copy", path, f"{many}-2", ..., {NATIVE_READ: "false"}),
        fails("rows", path),
        fails("copy", many, str(cluster.driver / "new.rowtime"), ..., {}),
        fails("append", many, path),
    ]
    for error in errors:
        assert "StoreUnavailableError" in error, error
        assert "is in a directory of the driver's machine, which the executor on" in error
        assert "postgresql://host:port/database/stream" in error
