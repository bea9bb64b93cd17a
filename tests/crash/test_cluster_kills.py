"""kill -9 of machines of a cluster with its executors, and of the driver, while a query runs over PostgreSQL.

Minutes, so by command, at random moments (others with ROWTIME_SEED=2):
``ROWTIME_KILLS=20 python -m pytest -s tests/crash -k cluster``.
"""

import os
import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.cluster.driver import Driver, DriverFailedError
from tests.cluster.machines import Network
from tests.cluster.standalone import Cluster
from tests.crash.drivers import Account, Feed, growth
from tests.crash.places import in_database
from tests.crash.tally import Tally
from tests.crash.victims import how_many
from tests.postgresserver import PostgresServer, started
from tests.sparksession import wait_for

FEW = 2
pytestmark = pytest.mark.skipif("ROWTIME_KILLS" not in os.environ, reason="minutes; ROWTIME_KILLS=2 has it")
OBJECTS = {"postgresql": "", "folder": ", objects in a folder"}
WORKER, DRIVER = "a worker of a Spark cluster, with its executor", "the driver on a Spark cluster"


class Run:
    """A query on a cluster, and those that may die: its driver, and the machines of the workers."""

    def __init__(self, cluster: Cluster, folder: Path, seed: int) -> None:
        self.cluster, self._folder, self._dice = cluster, folder, random.Random(seed)
        self._driver = Driver(cluster)

    def some_way(self, native: bool) -> None:
        """Starts the query, and waits for so many steps of its batches, and a moment more."""
        self._driver.tell("go_on", str(self._folder), native)
        goal = growth(self._folder) + self._dice.randint(1, 6)
        wait_for(lambda: growth(self._folder) >= goal or self._driver.answers(), "the query's batches")
        self._driver.answers(self._dice.uniform(0, 0.3))

    def kill_worker(self) -> None:
        """Spark runs the tasks again on the other machine; or the query fails, and goes on from its checkpoint."""
        worker = self._dice.choice(self.cluster.workers)
        worker.kill()
        try:
            self._driver.answer()
        except DriverFailedError as error:
            print(f"the query failed: {str(error)[:200]}")
        self.cluster.start(worker)

    def kill_driver(self) -> None:
        self._driver.kill()
        self._driver = Driver(self.cluster)

    def finish(self) -> None:
        """The rest, and the whole undisturbed."""
        self._driver.call("go_on", str(self._folder), True)
        self._driver.call("undisturbed", str(self._folder))

    def close(self) -> None:
        self._driver.kill()


@pytest.fixture
def network() -> Iterator[Network]:
    with Network() as network:
        yield network


@pytest.fixture
def postgres(network: Network) -> Iterator[PostgresServer]:
    """A server in that network."""
    with started() as server:
        yield server


@pytest.mark.parametrize("place", ["postgresql", "folder"])
def test_machines_of_a_cluster_killed_at_random_moments(
    tmp_path: Path, network: Network, postgres: PostgresServer, tally: Callable[[str], Tally], place: str
) -> None:
    seed = int(os.environ.get("ROWTIME_SEED", "1"))
    with ExitStack() as stack:
        cluster = stack.enter_context(Cluster(tmp_path, network))
        location = f"file://{cluster.shared}/rows" if place == "folder" else None
        folder = in_database(cluster.shared / place, postgres.url(), location)
        feed, run = Feed(folder, seed), Run(cluster, folder, seed)
        stack.callback(run.close)
        accounts = [Account(folder, tally(f"kill -9 of {who}{OBJECTS[place]}")) for who in (WORKER, DRIVER)]
        for turn in range(how_many(FEW)):
            feed.send(3)
            run.some_way(native=turn % 4 < 2)
            (run.kill_worker, run.kill_driver)[turn % 2]()
            accounts[turn % 2].killed()
        feed.send(2)
        run.finish()
        for account in accounts:
            account.close()
