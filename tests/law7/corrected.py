"""Corrections: sums of the rows that were in time, and those of the late rows, are together those of all rows.

Which rows are late depends on the bounds. So no bound changes the sums that a table has in the end.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession

from tests.law7.calendars import Calendar
from tests.law7.cases import HOUR, STARTS, WINDOW_TIMES, WINDOWS, Drawn, cases
from tests.law7.feed import ROWS, Feed, LeftOut
from tests.law7.grammar import ByTime, Query, Source, Windows
from tests.law7.kinds import removed_rows
from tests.law7.law import BoundsChangedTheResultError, show
from tests.law7.machine import Case
from tests.law7.schedule import Poll, Send, Stop, and_behind
from tests.law7.streamed import Rows, Streamed
from tests.spark.observed_query import clock
from tests.streams import at

BEHIND = 4
"""Steps of the grid by which a row is sent behind another one."""


class Late(Streamed):
    """The sums of each batch of late rows. Law: a batch that is run again gives the same."""

    def __init__(self, late: DataFrame, folder: Path, feed: Feed, query: Query) -> None:
        super().__init__(late, folder, feed)
        self.sums = query

    def __call__(self, frame: DataFrame, batch: int) -> None:
        super().__call__(self.sums.frame(lambda _: frame), batch)


def corrected(sums: Rows, changes: Iterable[Rows]) -> Rows:
    """The sums after all corrections, each of which is the sums of some late rows. Law: a sum is given out once."""
    found = {row[:2]: row[2] for row in sums.elements()}
    assert len(found) == sums.total(), f"a sum was given out again: {show(sums)}"
    for rows in changes:
        for row in rows.elements():
            found[row[:2]] = found.get(row[:2], 0) + row[2]
    return Counter((*group, v) for group, v in found.items())


@st.composite
def queries(draw: Any, calendar: Calendar) -> Query:
    """Sums over one stream, in windows or by time."""
    drawn = Drawn(draw, calendar)
    of = drawn.straight()
    if draw(st.sampled_from((True, True, False))):
        return Windows(of, *drawn.one(WINDOWS), drawn.one(WINDOW_TIMES), drawn.one(STARTS))
    return ByTime(of, drawn.one(("rowtime", HOUR)))


@st.composite
def corrected_cases(draw: Any) -> Case:
    """Cases of such queries, in which some rows are sent behind others. No rows are removed: nobody keeps late ones."""
    plain = cases(queries=queries).filter(lambda case: not (removed_rows(case) or case.reordered or case.changed))
    case: Case = draw(plain)
    back = BEHIND * case.calendar.step
    events = [and_behind(event, back) if draw(st.booleans()) else event for event in case.schedule.events]
    return replace(case, schedule=replace(case.schedule, events=tuple(events)))


def tried(spark: SparkSession, case: Case, folder: Path) -> Counter[str]:
    """Runs a case with all bounds and with fewer, and raises an error if corrections do not lead to the same sums."""
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", case.calendar.zone)
    session.conf.set("spark.sql.shuffle.partitions", case.partitions)
    whole = _sums_of_all(session, case)
    figures = Counter({"sums": whole.total()})
    for name, left_out in (("all bounds", LeftOut()), ("fewer bounds", case.left_out)):
        sums, changes = _played(session, case, Feed(folder / name.split()[0], case.schedule, left_out))
        table = corrected(sums, changes)
        if table != whole:
            raise BoundsChangedTheResultError(f"{name}: missing {show(whole - table)}, too many {show(table - whole)}")
        figures[f"corrections with {name}"] += sum(changes, Counter()).total()
    return figures


def _sums_of_all(spark: SparkSession, case: Case) -> Rows:
    rows = [row for event in case.schedule.events if isinstance(event, Send) for row in event.rows]
    sent = [(datetime.fromisoformat(at(row.rowtime)), *row[1:]) for row in rows]
    frame = spark.createDataFrame(sent, ROWS)
    return Counter(clock(tuple(row)) for row in case.query.frame(lambda _: frame).collect())


def _played(spark: SparkSession, case: Case, feed: Feed) -> tuple[Rows, list[Rows]]:
    """The sums that were given out, and those of the late rows of each batch."""
    [source] = [part for part in case.query.parts() if isinstance(part, Source)]
    reader = spark.readStream.format("rowtime")
    in_time = reader.options(**dict(case.options)).load(feed.paths[source.name])
    late = spark.readStream.format("rowtime").option("view", "rejected").load(feed.paths[source.name])
    results = Streamed(case.query.frame(lambda _: in_time), feed.folder / "sums", feed)
    changes = Late(late, feed.folder / "late", feed, case.query)
    try:
        for number, event in enumerate(case.schedule.events):
            feed.apply(number, event)
            for query in (results, changes):
                _step(query, number, event)
    finally:
        for query in (results, changes):
            query.end()
        feed.close()
    return Counter(chain(*results.batches.values())), [Counter(rows) for rows in changes.batches.values()]


def _step(query: Streamed, number: int, event: Any) -> None:
    if isinstance(event, Poll):
        query.poll(number)
    elif isinstance(event, Stop):
        query.stop(number, event.crashed)
