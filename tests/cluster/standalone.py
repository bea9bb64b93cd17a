"""A Spark standalone cluster for tests: a master and two workers, each on a machine of its own."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Self

import pyspark

from tests.cluster.machines import Machine, Network
from tests.javaoptions import SHARING

ROOT = Path(__file__).parents[2]
PACKAGE = "spark_rowtime"
SPARK_HOME = Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent)
WORKERS = 2
START_SECONDS = 240.0


class Cluster:
    """A running cluster. ``shared`` is the folder that all machines see; ``driver`` is that of the driver alone.

    Workers import this project from a folder of their own, ``site``. ``environment`` is set for them and for drivers.
    """

    def __init__(self, folder: Path, network: Network, environment: Mapping[str, str] = MappingProxyType({})) -> None:
        self.network, self.folder, self.environment = network, folder, environment
        self.shared, self.driver, self.site = (folder / name for name in ("shared", "driver", "site"))
        for place in (self.shared, self.driver, self.site):
            place.mkdir()
        shutil.copytree(ROOT / PACKAGE, self.site / PACKAGE, ignore=shutil.ignore_patterns("__pycache__", "jars"))
        hidden = [self.driver, ROOT / "tests", *places_of_the_package()]
        self._master = network.machine(folder / "master", hidden)
        self.workers = [network.machine(folder / f"worker-{n}", hidden) for n in range(WORKERS)]
        where = ("--host", self._master.address, "--port", "0", "--webui-port", "0")
        self._launch(self._master, self._url, "master.Master", *where)
        self.url = str(self._url())
        for worker in self.workers:
            self.start(worker)

    def start(self, worker: Machine) -> None:
        """Starts a worker, also one that was killed, and waits until the master knows it."""
        known = worker.log().count("registered with master") if (worker.folder / "log").exists() else 0
        resources = ("--cores", "1", "--memory", "600m", "--work-dir", str(worker.folder / "work"))
        where = ("--host", worker.address, "--webui-port", "0")
        command = ("worker.Worker", *where, *resources, self.url)
        self._launch(worker, lambda: worker.log().count("registered with master") > known, *command)

    def _launch(self, machine: Machine, answers: Callable[[], object], program: str, *arguments: str) -> None:
        environment = {
            "SPARK_HOME": str(SPARK_HOME),
            "SPARK_LOCAL_IP": machine.address,
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": SHARING,
            "PYTHONPATH": str(self.site),
            **self.environment,
        }
        command = [str(SPARK_HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{program}", *arguments]
        machine.start(command, answers, START_SECONDS, **environment)

    def _url(self) -> str | None:
        found = re.search(r"Starting Spark master at (spark://[\d.]+:\d+)", self._master.log())
        return found[1] if found else None

    def settings(self) -> dict[str, str]:
        """The settings of a driver, apart from those that ``rt.configure`` makes."""
        return {
            "spark.master": self.url,
            "spark.driver.host": self.network.address,
            "spark.driver.bindAddress": self.network.address,
            "spark.driver.memory": "600m",
            "spark.executor.memory": "512m",
            "spark.executor.extraJavaOptions": SHARING,
            "spark.python.worker.reuse": "false",  # a worker keeps what it has imported
        }

    def close(self) -> None:
        """Ends all processes of the cluster."""
        for machine in (*self.workers, self._master):
            machine.kill()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def places_of_the_package() -> list[Path]:
    """The folders from which a Python process on this machine could import this project: source tree, installed."""
    found = subprocess.run(
        [sys.executable, "-c", f"import {PACKAGE}; print({PACKAGE}.__path__[0])"],
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
    )
    return sorted({ROOT / PACKAGE, *map(Path, found.stdout.split())})
