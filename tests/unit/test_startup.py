"""tests/startup: a Python process that Spark starts has a child do its work, and looks as if it did it itself."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sparksession import wait_for

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="abstract sockets, and signals of sockets, are Linux's")
STARTUP = Path(__file__).parents[1] / "startup"
WORKER = """
import os, sys, time
if __name__ == "__main__":
    print(sys.argv[1:], os.getcwd(), os.environ["MINE"], input())
    print("an error", file=sys.stderr)
    print(os.getpid(), os.getppid(), flush=True)
    if sys.argv[1] == "long":
        time.sleep(600)
    sys.exit(7)
"""


@pytest.fixture
def run() -> Iterator[subprocess.Popen[bytes]]:
    """A run of tests."""
    with subprocess.Popen(["sleep", "600"]) as process:
        yield process
        process.kill()


@pytest.fixture
def environment(tmp_path: Path, run: subprocess.Popen[bytes]) -> dict[str, str]:
    """For workers of a PySpark that is only WORKER."""
    package = tmp_path / "site" / "pyspark"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("__version__ = '4.3.0'\n")
    (package / "daemon.py").write_text(WORKER)
    path = os.pathsep.join([str(STARTUP), str(package.parent)])
    return {**os.environ, "PYTHONPATH": path, "ROWTIME_TEST_RUN": str(run.pid), "MINE": "a value"}


def started(environment: dict[str, str], folder: Path, argument: str) -> subprocess.Popen[str]:
    """A worker as Spark starts it."""
    pipe, command = subprocess.PIPE, [sys.executable, "-m", "pyspark.daemon", argument]
    return subprocess.Popen(
        command, env=environment, cwd=folder, stdin=pipe, stdout=pipe, stderr=pipe, text=True, process_group=0
    )


def test_a_worker_has_what_spark_has_given_it_and_ends_with_its_exit_code(
    environment: dict[str, str], tmp_path: Path
) -> None:
    parents = set()
    for argument in ("first", "second"):
        with started(environment, tmp_path, argument) as worker:
            printed, error = worker.communicate("a line\n")
        said, numbers = printed.splitlines()
        assert (said, error) == (f"['{argument}'] {tmp_path} a value a line", "an error\n")
        assert worker.returncode == 7
        parents.add(numbers.split()[1])
    assert len(parents) == 1
    assert not parents & {str(worker.pid), str(os.getpid())}


@pytest.mark.long
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_a_worker_that_is_killed_and_all_at_the_end_of_the_run(
    environment: dict[str, str], run: subprocess.Popen[bytes], tmp_path: Path, how: signal.Signals
) -> None:
    with started(environment, tmp_path, "long") as worker:
        assert worker.stdin is not None
        assert worker.stdout is not None
        print("a line", file=worker.stdin, flush=True)
        _, numbers = worker.stdout.readline(), worker.stdout.readline()
        child, parent = (Path("/proc") / number for number in numbers.split())
        worker.send_signal(how)
        wait_for(lambda: not child.exists(), "the child's end")
    run.kill()
    run.wait()
    wait_for(lambda: not parent.exists(), "the parent's end")
