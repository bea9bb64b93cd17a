"""kill -9 of Spark's Python workers beneath a query that lives: tasks, the sink's commit, the planner, their daemons.

Minutes, so by command: ``ROWTIME_KILLS=100 python -m pytest -s tests/crash -k workers``, each point and random moments.
"""

import os
import random
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

import spark_rowtime as rt
from tests.crash.driver import go_on, undisturbed
from tests.crash.drivers import LEFT, MID_BATCH, Account, Feed, growth, logged, phase, rows
from tests.crash.killing import IN_COMMIT, IN_TASK, WITH_OBJECTS, Hit
from tests.crash.numbers import MORE
from tests.crash.places import PLACES, location_of, stream_in
from tests.crash.tally import Tally
from tests.crash.victims import how_many
from tests.sparksession import NATIVE_READ, NATIVE_WRITE, running, start, wait_for

pytestmark = pytest.mark.skipif("ROWTIME_KILLS" not in os.environ, reason="minutes; ROWTIME_KILLS=4 has it")
FEW = 4
PLANNER = "pyspark.sql.streaming.python_streaming_source_runner"


@pytest.fixture
def spark(spark: SparkSession) -> SparkSession:
    """A session whose data source kills, beside that of the other tests."""
    return spark.newSession()


def finish(spark: SparkSession, folder: Path, account: Account) -> None:
    """The rest, and the whole undisturbed."""
    with running(go_on(spark, folder)) as last:
        last.processAllAvailable()
    undisturbed(spark, folder)
    account.close()


def workers(spark: SparkSession) -> dict[int, str]:
    """The Python processes beneath the session's JVM: process id, and the module that each runs."""
    jvm = spark.sparkContext._gateway.proc.pid
    parents = {int(entry.name): _stat(entry) for entry in Path("/proc").iterdir() if entry.name.isdecimal()}
    beneath = {pid for pid in parents if jvm in _ancestors(pid, parents)}
    modules = {pid: _module(pid) for pid in beneath}
    return {pid: module for pid, module in modules.items() if module.startswith("pyspark.")}


def _stat(entry: Path) -> int:
    try:
        return int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    except (FileNotFoundError, ProcessLookupError):
        return 0


def _ancestors(pid: int, parents: dict[int, int]) -> Iterator[int]:
    while pid := parents.get(pid, 0):
        yield pid


def _module(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().rstrip("\0").rpartition("\0")[2]
    except (FileNotFoundError, ProcessLookupError):
        return ""


@pytest.mark.parametrize("place", PLACES)
def test_workers_killed_at_each_point_of_a_batch(
    spark: SparkSession, tmp_path: Path, tally: Callable[[str], Tally], place: str, placed: Callable[[Path, str], Path]
) -> None:
    """Of a task that has staged its rows, and of the commit. The query fails; started again, it goes on."""
    folder, line = placed(tmp_path / "streams", place), f"kill -9 of a Python worker of Spark{PLACES[place]}"
    feed, account = Feed(folder), Account(folder, tally(f"{line}: task, commit"))
    for point, where in LEFT.items():
        feed.send(2)
        Hit(point, batch := logged(folder, "commits") + 2).lay(stream_in(folder, "counts"))
        with running(go_on(spark, folder)) as hit, pytest.raises(StreamingQueryException):
            hit.processAllAvailable()
        assert (logged(folder, "offsets"), phase(folder)) == (batch, where)
        account.killed()
    for point in (IN_TASK, IN_COMMIT) if location_of(folder) else ():
        feed.send(5)
        Hit(point + WITH_OBJECTS, logged(folder, "offsets") + 1).lay(stream_in(folder, "counts"))
        with running(go_on(spark, folder)) as hit, pytest.raises(StreamingQueryException):
            hit.processAllAvailable()
        assert phase(folder) == MID_BATCH
        account.killed()
    finish(spark, folder, account)


def test_the_planner_killed(spark: SparkSession, tmp_path: Path, tally: Callable[[str], Tally]) -> None:
    """The worker that serves latestOffset and partitions as long as the query lives."""
    feed, account = Feed(tmp_path), Account(tmp_path, tally("kill -9 of the Python planner of a Spark query"))
    feed.send(2)
    with running(go_on(spark, tmp_path)) as hit:
        hit.processAllAvailable()
        os.kill(planner(spark), signal.SIGKILL)
        feed.send(2)
        with pytest.raises(StreamingQueryException, match=r"StoreUnavailableError: .* continues from its checkpoint"):
            hit.processAllAvailable()
    account.killed()
    finish(spark, tmp_path, account)


@pytest.mark.parametrize("native", ["true", "false"])
@pytest.mark.parametrize("place", ["directory", "folder", "s3"])
def test_workers_killed_at_random_moments(
    spark: SparkSession,
    tmp_path: Path,
    tally: Callable[[str], Tally],
    native: str,
    place: str,
    placed: Callable[[Path, str], Path],
) -> None:
    """``native=false``: rows are read and written by Python workers, too."""
    seed, folder = int(os.environ.get("ROWTIME_SEED", "1")), placed(tmp_path / "streams", place)
    dice, feed, who = random.Random(seed), Feed(folder, seed), Counter[str]()
    account = Account(folder, tally(f"kill -9 of any Python worker of Spark{PLACES[place]} at a random moment"))
    for switch in (NATIVE_READ, NATIVE_WRITE):
        spark.conf.set(switch, native)
    for _ in range(how_many(FEW) // 2):
        feed.send(2)
        with running(go_on(spark, folder)) as hit:
            who[kill_one(spark, hit, folder, dice)] += 1
        account.killed()
    finish(spark, folder, account)
    print(f"killed: {dict(who)}")


def kill_one(spark: SparkSession, hit: StreamingQuery, folder: Path, dice: random.Random) -> str:
    """Some way into its batches kills some worker; its module, and whether the query failed for it."""
    goal = growth(folder) + dice.randint(0, 3)
    wait_for(lambda: growth(folder) >= goal or is_idle(hit), "the query's batches")
    try:
        hit.awaitTermination(dice.uniform(0.001, 0.3))
        there = wait_for(lambda: workers(spark), "a worker")  # none may live between two batches
        pid, module = dice.choice(sorted(there.items()))
        os.kill(pid, signal.SIGKILL)
        hit.processAllAvailable()
    except ProcessLookupError:
        return "had ended"
    except StreamingQueryException:
        return f"{module}, failed"
    return f"{module}, went on"


def is_idle(query: StreamingQuery) -> Any:
    """Whether it waits for data, or has ended."""
    return not query.isActive or query.status["message"] == "Waiting for data to arrive"


def test_a_hosted_adapter_goes_on_after_its_planner_was_killed(
    spark: SparkSession, tmp_path: Path, tally: Callable[[str], Tally]
) -> None:
    """It ends with the planner, whose child it is; the next planner's resumes from its checkpoint."""
    path, out = str(tmp_path / "numbers.rowtime"), str(tmp_path / "out.rowtime")
    line, dice, kills = tally("kill -9 of a planner that hosts an adapter"), random.Random(1), how_many(2)
    frame = spark.readStream.format("rowtime").option("adapter", "tests.crash.numbers:Numbers").load(path)
    for _ in range(kills):
        with running(start(frame, out, tmp_path / "checkpoint")) as hit:
            wait_for_rows(path, dice.randrange(1, MORE))
            os.kill(planner(spark), signal.SIGKILL)
            with pytest.raises(StreamingQueryException):
                hit.processAllAvailable()
        line.fault()
    with running(start(frame, out, tmp_path / "checkpoint")) as last:
        wait_for_rows(path, MORE)
        last.processAllAvailable()
    numbers = [n for _, n in rows(path)]
    line.account([n for _, n in rows(out)], numbers, range((kills + 1) * MORE))
    assert sorted(numbers) == list(range(len(numbers)))
    assert rt.describeStream(out).bound == rt.describeStream(path).bound


def planner(spark: SparkSession) -> int:
    """The process of the only query that runs."""
    [found] = [pid for pid, module in workers(spark).items() if module == PLANNER]
    return found


def wait_for_rows(path: str, more: int) -> None:
    """Waits until the stream has so many rows more."""
    goal = rt.describeStream(path).rows + more
    wait_for(lambda: rt.describeStream(path).rows >= goal, f"{more} rows of the adapter")
