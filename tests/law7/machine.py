"""Compares the results of one case: as a batch, streamed with all bounds, and streamed with some left out."""

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from spark_rowtime import InvalidOptionError
from tests.law7 import law
from tests.law7.calendars import Calendar
from tests.law7.feed import Feed, LeftOut
from tests.law7.grammar import Query, Read, Source
from tests.law7.kinds import REFUSABLE, kinds_of
from tests.law7.schedule import Follow, Gc, Poll, Schedule, Send, Stop, Stray
from tests.law7.streamed import RefusedError, Rows, Step, Streamed, refusal
from tests.spark.observed_query import clock
from tests.sparksession import EVOLUTION

MISTAKEN = [
    f"org.apache.spark.sql.catalyst.optimizer.{rule}"
    for rule in ("PushDownPredicates", "PushPredicateThroughNonJoin", "RemoveRedundantAggregates")
]
"""The rules by which Spark gets batches of sessions wrong: it takes a row's own session for that of its group."""
ADDED = "added"
"""The label of a source that a changed query has more. It begins at the end of its stream."""


@dataclass(frozen=True)
class Case:
    """A complete case. ``options``: those with which each stream is read; ``partitions``: of Spark's state.

    ``changed``: what the user writes after the query's first stop. It is refused, and the query goes on as it was; or
    it takes the checkpoint, and then only promises and repeated batches are looked at, since no batch gives its result.
    ``reordered``: if there is one, sources have names, and each second run is of this query, which has them in another
    order.
    """

    query: Query
    calendar: Calendar
    schedule: Schedule
    options: tuple[tuple[str, str], ...]
    partitions: int
    left_out: LeftOut
    changed: Query | None = None
    reordered: Query | None = None


@dataclass(frozen=True)
class Played:
    """The output of a variant, and how often its query was started; or why it was ``refused`` at its start."""

    steps: list[Step]
    starts: int
    batches: int
    refused: str | None = None
    changed: bool = False


def tried(spark: SparkSession, case: Case, folder: Path, lag: int = 0) -> Counter[str]:
    """Runs a case in all three ways, and raises an error if law 7 does not hold. Returns its statistics.

    A case whose query is refused has no verdict. ``lag``: see ``law.never_later``.
    """
    session, batches = _session(spark, case), _session(spark, case)
    batches.conf.set("spark.sql.optimizer.excludedRules", ",".join(MISTAKEN))
    rehearsal = _fed(case, folder / "rehearsal")
    accepted = rehearsal.accepted()
    all_bounds = Feed(folder / "full", case.schedule, LeftOut())
    fewer_bounds = Feed(folder / "fewer", case.schedule, case.left_out, accepted)
    with ThreadPoolExecutor(3) as pool:
        batch = pool.submit(_batch, case, _reading(lambda _: batches.read, rehearsal, {}))
        full = pool.submit(_play, session, case, all_bounds, accepted)
        fewer = pool.submit(_play, session, case, fewer_bounds, accepted)
    played = full.result(), fewer.result()
    if refused := _refused(case, *played):
        return Counter({f"without verdict, {refused}": 1})
    if any(one.changed for one in played):
        return Counter({"taken with a changed query": 1})
    late = [all_bounds.late(), fewer_bounds.late()]
    if any(late) or _hosted(case):  # which rows are late depends on the batches: each run has a batch of its own
        each = [_batch(case, _reading(lambda _: batches.read, fed, {})) for fed in (all_bounds, fewer_bounds)]
        figures = _same(*each, *played)
    else:
        figures = _compared(batch.result(), *played, lag)
    sent = sum(len(event.rows) for event in case.schedule.events if isinstance(event, Send))
    sent += sum(isinstance(event, Stray) for event in case.schedule.events)
    counted = {"rows": len(accepted), "late rows": sent - len(accepted), "late in a topic": len(late[0] + late[1])}
    return figures + Counter(counted)


def _hosted(case: Case) -> bool:
    """Whether bounds come from a watch that the query hosts, at whatever time."""
    return any(topic_bounds.watched and topic_bounds.watched.hosted for _, topic_bounds in case.schedule.topic_bounds)


def _session(spark: SparkSession, case: Case) -> SparkSession:
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", case.calendar.zone)
    session.conf.set("spark.sql.shuffle.partitions", case.partitions)
    for name, value in EVOLUTION.items() if case.reordered else ():
        session.conf.set(name, value)
    return session


def _fed(case: Case, folder: Path) -> Feed:
    """Plays the streams alone, with all bounds; returns the rows that are accepted. No watch refuses any."""
    feed = Feed(folder, case.schedule, LeftOut())
    try:
        for number, event in enumerate(case.schedule.events):
            if not isinstance(event, Follow):
                feed.apply(number, event)
    finally:
        feed.close()
    return feed


def _reading(reader: Callable[[Source], Any], feed: Feed, options: dict[str, str]) -> Read:
    def read(source: Source) -> DataFrame:
        if source.name in feed.topics:
            return feed.topics[source.name].read(reader(source), options.get("maxRowsPerTrigger"))
        return reader(source).format("rowtime").options(**options).load(feed.paths[source.name])

    return read


def _streams(spark: SparkSession, case: Case, feed: Feed) -> Read:
    def reader(source: Source) -> Any:
        named = spark.readStream.name(source.label) if case.reordered else spark.readStream
        return named.option("startingPosition", "latest") if source.label == ADDED else named

    return _reading(reader, feed, dict(case.options))


def _batch(case: Case, read: Callable[[str], DataFrame]) -> Rows:
    return Counter(clock(tuple(row)) for row in case.query.frame(read).collect())


def _refused(case: Case, *played: Played) -> str | None:
    """Why the query does not start, if it may be refused. With fewer bounds it must be refused, too."""
    reasons = [one.refused for one in played]
    assert all(reasons) or not any(reasons), f"started with some bounds only: {reasons}"
    assert not any(reasons) or kinds_of(case) & REFUSABLE, f"refused: {reasons[0]}"
    return reasons[0]


def _play(spark: SparkSession, case: Case, feed: Feed, accepted: set[int]) -> Played:
    try:
        runs = cycle([query.frame(_streams(spark, case, feed)) for query in (case.query, case.reordered) if query])
    except (AnalysisException, InvalidOptionError) as error:
        feed.close()
        return Played([], 0, 0, refusal(error))
    query = Streamed(next(runs), feed.folder, feed)
    try:
        for number, event in enumerate(case.schedule.events):
            if isinstance(event, Follow) and _hosted(case):
                query.stop(number)  # its watch has the partitions
            feed.apply(number, event)
            if isinstance(event, Poll):
                query.poll(number)
            elif isinstance(event, Stop):
                query.stop(number, event.crashed)
                query.frame = query.frame if query.changed else next(runs)
                _change(query, case, feed, spark)
            elif isinstance(event, Gc) and query.batches:
                feed.remove(event.stream)
    except RefusedError as error:
        return Played([], 0, 0, str(error))
    finally:
        query.end()
        feed.close()
    assert feed.accepted() == accepted, "a row that is accepted with all bounds is accepted with fewer"
    steps = [] if query.changed else query.steps()
    return Played(steps, query.starts, len(query.batches), changed=query.changed)


def _change(query: Streamed, case: Case, feed: Feed, spark: SparkSession) -> None:
    """Tries the changed query once, when there is a checkpoint."""
    if case.changed is None or case.changed == case.query or query.tried or not query.batches:
        return
    try:
        frame = case.changed.frame(_streams(spark, case, feed))
    except (AnalysisException, InvalidOptionError):
        return
    query.change(frame)


def _compared(batch: Rows, full: Played, fewer: Played, lag: int) -> Counter[str]:
    figures = _same(batch, batch, full, fewer)
    law.never_later(full.steps, fewer.steps, lag)
    return figures + Counter({"earlier by bounds": law.earlier(full.steps, fewer.steps)})


def _same(batch: Rows, batch_of_fewer: Rows, full: Played, fewer: Played) -> Counter[str]:
    law.same("all bounds", full.steps, batch)
    law.same("fewer bounds", fewer.steps, batch_of_fewer)
    batches, restarts = full.batches + fewer.batches, full.starts + fewer.starts - 2
    return Counter({"batches": batches, "restarts": restarts, "results": batch.total()})
