"""One cluster, and one driver on it, for all tests of this folder."""

from collections.abc import Iterator

import pytest

from tests.cluster.driver import Driver
from tests.cluster.machines import Network
from tests.cluster.standalone import Cluster
from tests.postgresserver import PostgresServer, started
from tests.s3server import S3Server, environment

PASSWORD = "s3cret-of-the-database"
"""In the environment of the driver, and of no executor."""


@pytest.fixture(scope="package")
def network() -> Iterator[Network]:
    with Network() as network:
        yield network


@pytest.fixture(scope="package")
def postgres(network: Network) -> Iterator[PostgresServer]:
    """A server in that network."""
    with started() as server:
        yield server


@pytest.fixture(scope="package")
def s3_environment(network: Network) -> dict[str, str]:
    """What the users of an S3 server need that all machines reach."""
    return environment(network.address)


@pytest.fixture(scope="package")
def cluster(
    tmp_path_factory: pytest.TempPathFactory, network: Network, s3_environment: dict[str, str]
) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("cluster"), network, s3_environment) as cluster:
        yield cluster


@pytest.fixture(scope="package")
def driver(cluster: Cluster) -> Iterator[Driver]:
    """A task that fails is not tried again. The driver has its web interface, and writes what that shows to a file."""
    (events := cluster.driver / "events").mkdir()
    ui = {"spark.ui.enabled": "true", "spark.ui.port": "0"}
    log = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": f"file://{events}"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PGPASSWORD", PASSWORD)
        begun = Driver(cluster, **{"spark.task.maxFailures": "1"}, **ui, **log)
    with begun as driver:
        yield driver


@pytest.fixture(params=["folder", "s3"])
def location(request: pytest.FixtureRequest, cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A location that all machines reach: a folder that they share, and a bucket."""
    if request.param == "folder":
        yield f"file://{cluster.shared}/rows"
        return
    pytest.importorskip("moto")
    for name, value in cluster.environment.items():
        monkeypatch.setenv(name, value)
    server = S3Server(cluster.network.address)
    yield "s3://rows/cluster"
    server.stop()
