"""The command in processes of its own: killed before and after the answer, hanging, and two of one name.

A few kills in CI; ``ROWTIME_KILLS=100 python -m pytest tests/announce/test_kills.py`` makes that many.
"""

import itertools
import os
import random
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from queue import Queue

from tests.announce.server import Asked, Say, Server
from tests.announce.streams import stream_with
from tests.crash.victims import how_many
from tests.sparksession import wait_for

FEW = 4
HOURS = 12


def started(path: str, url: str, *options: str) -> "subprocess.Popen[str]":
    program = [sys.executable, "-m", "spark_rowtime.cli", "announce", path, "--every", "1h", "--to", url, *options]
    return subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def hours_of(asked: Sequence[Asked]) -> list[int]:
    return [int(one.json["key"][11:13]) for one in asked]


def test_killed_before_or_after_the_answer_no_hour_is_left_out_and_the_order_is_kept(
    tmp_path: Path, server: Server
) -> None:
    dice, killed, repeated = random.Random(1), 0, 0
    for run in itertools.count():
        folder = tmp_path / str(run)
        folder.mkdir()
        path = stream_with("2006-09-11T00:40:00Z", bound=f"2006-09-11T{HOURS}:00:00Z", at=folder)
        server.asked.clear()
        server.taken.clear()
        code = None
        while code != 0:
            server.script.clear()
            if killed < how_many(FEW):
                server.script.extend([Say()] * dice.randrange(HOURS) + [Say(kill=dice.choice(["before", "after"]))])
            server.victim = (pid := Queue[int]()).get
            process = started(path, server.url)
            pid.put(process.pid)
            _, errors = process.communicate()
            code = process.returncode
            assert code in (0, -signal.SIGKILL), errors
            killed += code != 0
        asked = hours_of(server.asked)
        repeated += len(asked) - HOURS
        assert [hour for hour, _ in itertools.groupby(asked)] == [*range(HOURS)]
        assert sorted(set(hours_of(server.taken))) == [*range(HOURS)]
        if killed >= how_many(FEW):
            break
    assert repeated <= killed, "a kill repeats at most the one call that it has hit"


def test_a_second_process_of_the_name_is_refused_and_takes_over_when_the_first_has_died(
    tmp_path: Path, server: Server
) -> None:
    path = stream_with("2006-09-11T00:40:00Z", bound="2006-09-11T03:00:00Z", at=tmp_path)
    server.script.extend([Say(), Say(hang=True)])
    with started(path, server.url, "--follow", "--timeout", "10 minutes") as first:
        wait_for(lambda: len(server.asked) == 2, "the second call")
        with started(path, server.url) as second:
            _, errors = second.communicate()
        assert second.returncode == 1
        assert f"already runs on {path}, in process {first.pid}" in errors
        os.kill(first.pid, signal.SIGKILL)
        first.communicate()
    with started(path, server.url) as third:
        third.communicate()
    assert hours_of(server.asked) == [0, 1, 1, 2]


def test_sigterm_ends_it(tmp_path: Path, server: Server) -> None:
    path = stream_with("2006-09-11T00:40:00Z", bound="2006-09-11T03:00:00Z", at=tmp_path)
    with started(path, server.url, "--follow", "--json") as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(3)]
        process.send_signal(signal.SIGTERM)
        process.communicate()
    assert process.returncode == 143
    assert '"key": "2006-09-11T02:00:00"' in lines[2]
