"""Adapters that are hosted for a stream in PostgreSQL: by a call, by the command, and as a process of their own."""

import os
import signal
import subprocess
import sys
from typing import Any

import pytest

import spark_rowtime as rt
from spark_rowtime.adapter.process import AdapterProcess
from tests.landed import landed

FEED = "tests.spark.hosted_feed:Feed"


@pytest.fixture
def path(postgres: Any, request: pytest.FixtureRequest) -> str:
    url: str = postgres.url(f"adapters/{request.node.name}")
    return url


def check(path: str) -> None:
    """All that the feed has to say is there once, with its checkpoint."""
    assert landed(path, order="rowtime") == [0, 1, 2]
    (producer,) = rt.describeStream(path).producers
    assert (producer.accepted, producer.checkpoint) == (3, "3")


def test_by_a_call_which_goes_on_from_the_checkpoint(path: str) -> None:
    rt.createStream(path, "rowtime TIMESTAMP NOT NULL, n BIGINT")
    with rt.openSink(path, producer="feed") as sink:
        sink.sendRow(("2006-09-11T10:00:00Z", 0))
        sink.flush(checkpoint="1")
    rt.runAdapter(FEED, path, producer="feed")
    check(path)


def test_by_the_command(path: str) -> None:
    command = [sys.executable, "-m", "spark_rowtime.cli", "run", FEED, path, "--create"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    check(path)


def test_as_a_process_that_is_killed_and_started_again(path: str) -> None:
    rt.createStream(path, "rowtime TIMESTAMP NOT NULL, n BIGINT")
    first, second = AdapterProcess(FEED, path), None
    try:
        os.kill(first.pid, signal.SIGKILL)
        assert first._process.wait(240) == -signal.SIGKILL
        with pytest.raises(rt.RowtimeError, match="ended with code -9"):
            first.check()
        second = AdapterProcess(FEED, path)
        assert second._process.wait(240) == 0
        second.check()
    finally:
        for process in (first, second):
            if process is not None:
                process.stop()
    check(path)
