"""One cluster, and one driver on it, for all tests of this folder."""

from collections.abc import Iterator

import pytest

from tests.cluster.driver import Driver
from tests.cluster.machines import Network
from tests.cluster.standalone import Cluster


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Network() as network, Cluster(tmp_path_factory.mktemp("cluster"), network) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def driver(cluster: Cluster) -> Iterator[Driver]:
    once = {"spark.task.maxFailures": "1"}  # a task that fails is not tried again
    with Driver(cluster, **once) as driver:
        yield driver
