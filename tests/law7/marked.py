"""Windows and sessions over streams that are read with bounds=markers, in a session without the extension."""

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyspark
from hypothesis import strategies as st
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

import spark_rowtime as rt
from tests.law7.calendars import Calendar
from tests.law7.cases import GAPS, READ, SOURCES, STARTS, WINDOW_TIMES, WINDOWS, cases
from tests.law7.grammar import Query, Read, Source, Union
from tests.law7.kinds import removed_rows
from tests.law7.machine import Case, tried

LIMITED = tuple(map(int, pyspark.__version__.split(".")[:2])) >= (4, 2)
"""Whether this Spark knows limits for sources in Python."""


def tried_with_markers(spark: SparkSession, case: Case, folder: Path) -> Counter[str]:
    """Runs a case. With limits a result comes in the batch after the one with its bound, though that has more rows.

    Spark learns a bound from the rows of a batch, so it has it in the next one. Limits cut the rows elsewhere where
    there are fewer bounds: at a place in the midst of a batch, another query may have had two batches. Without limits,
    and at the end of what is available, no result comes later.
    """
    return tried(spark, case, folder, lag=int("maxRowsPerTrigger" in dict(case.options)))


@dataclass(frozen=True)
class Marked(Query):
    """The sums of each window or session, by key, over one stream or two. As a batch it needs no markers."""

    one: Source
    other: Source | None
    window: tuple[str, str | None, str | None]
    gap: str | None
    where: str
    time: str

    def frame(self, read: Read) -> DataFrame:
        rows = [self._rows(read(source)) for source in (self.one, self.other) if source]
        union = rows[0].union(rows[1]) if self.other else rows[0]
        sums = union.where(self.where).groupBy("w", "k").agg(F.sum("v").alias("v"))
        return sums.selectExpr(f"{self.time} AS rowtime", "k", "v")

    def _rows(self, rows: DataFrame) -> DataFrame:
        windows = self._windows().alias("w")
        return rt.withBounds(rows, windows) if rows.isStreaming else rows.select("*", windows)

    def _windows(self) -> Column:
        return F.session_window("rowtime", self.gap) if self.gap else F.window("rowtime", *self.window)


@st.composite
def queries(draw: Any, _: Calendar) -> Query:
    """One stream or two, with tumbling or hopping windows, or sessions."""
    names = draw(st.lists(st.sampled_from(SOURCES), min_size=1, max_size=2))
    sources = [Source(name, f"source{n}") for n, name in enumerate(names)]
    window = (*draw(st.sampled_from(WINDOWS)), draw(st.sampled_from(STARTS)))
    gap = draw(st.sampled_from((None, None, *GAPS)))
    where = draw(st.sampled_from(("true", "k <> 0", "v % 2 = 0", "w.start > '1970-01-02'")))
    return Marked(sources[0], (*sources[1:], None)[0], window, gap, where, draw(st.sampled_from(WINDOW_TIMES)))


def _marked(options: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    """These options, as far as they go with markers."""
    kept = {name: value for name, value in options if name == "hold" or (LIMITED and name == "maxRowsPerTrigger")}
    return (("bounds", "markers"), *kept.items())


def marked_cases() -> Any:
    """Cases of such queries. No rows are removed, since a query without the extension does not keep them."""
    return cases(queries=queries, read=READ.map(_marked)).filter(lambda case: not removed_rows(case)).map(_of_sources)


def _of_sources(case: Case) -> Case:
    """The case without a changed query that has more sources, since each needs markers of its own."""
    parts = case.changed.parts() if case.changed is not None else ()
    return replace(case, changed=None) if any(isinstance(part, Union) for part in parts) else case
