"""A Spark driver on a cluster, in a process of its own, which a test calls.

``python -m tests.cluster.driver`` reads from its standard input: the settings of the session as a JSON object on the
first line, then one call per line: the name of a function of tests.cluster.queries and its arguments as a JSON list.
It answers each with a line: ``["done", result]`` or ``["failed", error]``.
"""

import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Self

from pyspark.sql import SparkSession

from tests.cluster.standalone import ROOT, Cluster
from tests.sparksession import make_session


class DriverFailedError(Exception):
    """The error of a call, as Spark gave it."""


class Driver:
    """The process. Its work folder is ``cluster.driver``, which no executor sees."""

    def __init__(self, cluster: Cluster, **settings: str) -> None:
        self.cluster = cluster
        self._errors = (cluster.driver / "driver.log").open("ab")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.cluster.driver"],
            cwd=cluster.driver,
            env={
                **os.environ,
                **cluster.environment,
                "PYTHONPATH": str(ROOT),
                "SPARK_LOCAL_IP": cluster.network.address,
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            start_new_session=True,
        )
        self._say({**cluster.settings(), **settings})

    def call(self, function: str, *arguments: Any) -> Any:
        """Calls a function of tests.cluster.queries with the session; returns its result, which is JSON."""
        self.tell(function, *arguments)
        return self.answer()

    def tell(self, function: str, *arguments: Any) -> None:
        """The first half of a call."""
        self._say([function, *arguments])

    def answer(self) -> Any:
        """The other half. Raises DriverFailedError if the function raised an error."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, f"the driver has ended: {self.log()[-5000:]}"
        kind, value = json.loads(line)
        if kind == "failed":
            raise DriverFailedError(value)
        return value

    def answers(self, seconds: float = 0) -> bool:
        """Waits up to ``seconds``; returns whether the driver has answered or ended."""
        return bool(select.select([self.process.stdout], [], [], seconds)[0])

    def log(self) -> str:
        """What it has logged."""
        return Path(self._errors.name).read_text()

    def _say(self, value: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(value) + "\n")
        self.process.stdin.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def kill(self) -> None:
        """Kills Python and JVM together with SIGKILL."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self._errors):
            if pipe is not None:
                pipe.close()


def main() -> None:
    from tests.cluster import queries

    spark: SparkSession | None = None
    for line in sys.stdin:
        if spark is None:
            spark = make_session(**json.loads(line))
            continue
        function, *arguments = json.loads(line)
        try:
            answer = ["done", getattr(queries, function)(spark, *arguments)]
        except Exception as error:
            answer = ["failed", f"{type(error).__name__}: {error}"]
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
