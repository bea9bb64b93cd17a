"""kill -9 of a Spark driver, its Python and its JVM, at each point of a batch and at random moments.

A driver takes 8 s to start and more, so CI has two of the four points within a batch. All of them, and so many queries
that are killed at random moments, four to a driver (others with ROWTIME_SEED=2), and where they were:
``ROWTIME_KILLS=100 python -m pytest -s tests/crash -k drivers``.
"""

import os
import random
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from spark_rowtime.store import open_store
from tests.crash.drivers import BETWEEN, LEFT, MID_BATCH, Account, Driver, Feed, landed, logged, phase
from tests.crash.killing import BEFORE_COMMIT, IN_COMMIT, IN_TASK, WITH_OBJECTS, Hit, stopped
from tests.crash.orphans import named_objects
from tests.crash.places import PLACES, location_of, stream_in
from tests.crash.tally import Tally
from tests.crash.victims import how_many
from tests.sparksession import wait_for

QUERIES = 4
"""In a driver that is killed at a random moment: each of them is somewhere else."""
MEASURES: list[Callable[[Path], int]] = [
    lambda folder: logged(folder, "offsets"),
    lambda folder: landed(stream_in(folder, "counts")),
    lambda folder: logged(folder, "commits"),
]
LINE = "kill -9 of a Spark driver: {}"
IN_CI = "s3"
"""The place of which CI has a kill of a driver over PostgreSQL: most can be left behind there."""
IN_DATABASE = [place for place in PLACES if place != "directory"] if "ROWTIME_KILLS" in os.environ else [IN_CI]
WITHIN = LEFT if "ROWTIME_KILLS" in os.environ else {point: LEFT[point] for point in (IN_TASK, IN_COMMIT)}
"""The points of a batch, and where it is when its driver dies there."""


@pytest.mark.long
@pytest.mark.timeout(600)  # five drivers; beside much else each of them takes a minute and more
def test_a_driver_killed_at_each_point_of_a_batch(tmp_path: Path, tally: Callable[[str], Tally]) -> None:
    feed, accounts = Feed(tmp_path), [Account(tmp_path, tally(LINE.format(point))) for point in (*WITHIN, BETWEEN)]
    for (point, where), account in zip(WITHIN.items(), accounts, strict=False):
        killed_within(tmp_path, feed, point, where)
        account.killed()
    with Driver(tmp_path) as driver:
        driver.do("go")
        driver.kill()
    assert phase(tmp_path) == BETWEEN
    accounts[-1].killed()
    feed.send(2)
    taken_over(tmp_path, feed, tally)


def killed_within(folder: Path, feed: Feed, point: str, where: str) -> None:
    """A driver that dies at that point of its first batch."""
    feed.send(2)
    with Driver(folder) as driver:
        Hit(point, batch := logged(folder, "offsets") + 1, driver.process.pid).lay(driver.sink)
        driver.tell("go")
        assert driver.ended() == -signal.SIGKILL
    assert (logged(folder, "offsets"), phase(folder)) == (batch, where)


@pytest.mark.night
@pytest.mark.parametrize("place", IN_DATABASE)
def test_a_driver_of_streams_in_postgresql_killed_within_a_batch(
    tmp_path: Path, tally: Callable[[str], Tally], place: str, placed: Callable[[Path, str], Path]
) -> None:
    """Before the database gets the commit, and with ROWTIME_KILLS at the other points; with a location, also there
    when objects are written that nothing names yet."""
    folder = placed(tmp_path / "streams", place)
    feed, account = Feed(folder), Account(folder, tally(f"kill -9 of a Spark driver{PLACES[place]}: within a batch"))
    for point, where in WITHIN.items() if "ROWTIME_KILLS" in os.environ else []:
        killed_within(folder, feed, point, where)
        account.killed()
    for point in (IN_TASK, IN_COMMIT) if location_of(folder) else ():
        if "ROWTIME_KILLS" in os.environ or point == IN_COMMIT:
            killed_with_objects(folder, feed, point)
            account.killed()
    feed.send(2)
    with Driver(folder) as driver:
        driver.do("go")
        driver.do("reference")
        assert driver.ended() == 0
    account.close()


def killed_with_objects(folder: Path, feed: Feed, point: str) -> None:
    """A driver that dies at that point of the first batch whose rows are in objects there. ``gc`` finds them."""
    feed.send(5)
    with Driver(folder) as driver, open_store(stream_in(folder, "counts")) as counts:
        named = named_objects(counts)
        Hit(point + WITH_OBJECTS, logged(folder, "offsets") + 1, driver.process.pid).lay(driver.sink)
        driver.tell("go")
        assert driver.ended() == -signal.SIGKILL
        assert named_objects(counts) >= named
        assert set(counts.objects.sizes()) > named_objects(counts), "an object that no commit names was left behind"
    assert phase(folder) == MID_BATCH


def taken_over(folder: Path, feed: Feed, tally: Callable[[str], Tally]) -> None:
    """A driver that hangs in the sink's commit while another goes on from its checkpoint, and then wakes up."""
    account = Account(folder, tally("a Spark driver that hangs is replaced and wakes up"))
    with Driver(folder) as old, Driver(folder) as new:
        Hit(BEFORE_COMMIT, hung := logged(folder, "commits") + 1, signal=signal.SIGSTOP).lay(old.sink)
        old.tell("go")
        worker = wait_for(lambda: stopped(old.sink), "the commit's worker to hang")
        feed.send(1)
        Hit(IN_TASK, hung + 1).lay(new.sink)
        new.do("go")
        assert Hit.laid(new.sink) is None, "a task's worker was killed, and Spark tried it again"
        tally("kill -9 of a task's Python worker, which Spark tries again").fault()
        assert landed(new.sink) > hung
        os.kill(worker, signal.SIGCONT)
        assert (old.heard(), old.ended()) == ("", 1)
        assert "ProducerFencedError" in old.said()
        assert "Another process runs this query" in old.said()
        account.killed()
        feed.send(1)
        new.do("go")
        new.do("reference")
        assert new.ended() == 0
    account.close()


@pytest.mark.skipif("ROWTIME_KILLS" not in os.environ, reason="minutes; ROWTIME_KILLS=100 has it")
@pytest.mark.parametrize("place", PLACES)
def test_drivers_killed_at_random_moments(
    tmp_path: Path, tally: Callable[[str], Tally], place: str, placed: Callable[[Path, str], Path]
) -> None:
    seed = int(os.environ.get("ROWTIME_SEED", "1"))
    dice, where = random.Random(seed), Counter[str]()
    folders = [placed(tmp_path / str(number), place) for number in range(QUERIES)]
    line = f"kill -9 of a Spark driver{PLACES[place]}: at a random moment, by query"
    feeds = [Feed(folder, seed) for seed, folder in enumerate(folders, QUERIES * seed)]
    accounts = [Account(folder, tally(line)) for folder in folders]
    for kill in range(-(-how_many(0) // QUERIES)):
        for feed in feeds:
            feed.send(dice.randint(1, 3))
        with Driver(*folders) as driver:
            come_some_way(driver, folders, dice)
            if driver.process.poll() is not None:
                assert "failed to connect back" in driver.said(), "Spark gives a worker 10 s, a busy machine does not"
                continue
            driver.kill()
        for folder, account in zip(folders, accounts, strict=True):
            where[phase(folder)] += 1
            account.killed()
        print(f"driver {kill + 1}, queries: {dict(where)}", flush=True)
    with Driver(*folders) as driver:
        driver.do("go")
        driver.do("reference")
        assert driver.ended() == 0
    for account in accounts:
        account.close()


def come_some_way(driver: Driver, folders: list[Path], dice: random.Random) -> None:
    """Some way into its start; or so many batches planned, in the sink or done, and a moment more; or to its end."""
    driver.tell("go")
    if dice.random() < 0.1:
        driver.answers(dice.uniform(0, 5))
        return
    measure = dice.choice(MEASURES)
    goal = sum(map(measure, folders)) + dice.randint(1, 3 * QUERIES)
    wait_for(lambda: sum(map(measure, folders)) >= goal or driver.answers(), "the driver's batches")
    driver.answers(dice.uniform(0, 0.1))
