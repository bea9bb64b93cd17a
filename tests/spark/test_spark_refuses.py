"""What Spark itself refuses, with this library's extension as without, and what runs instead: a table in the docs."""

from typing import Any, NamedTuple

import pytest
from pyspark.errors import PySparkException

from tests.spark.observed_query import Observed
from tests.streams import Pipe, opened, send

WINDOW = "window(rowtime, '1 hour')"
PAIRS = "a l JOIN a r ON l.k = r.k AND r.rowtime BETWEEN l.rowtime AND l.rowtime + INTERVAL 10 MINUTES"
IN_SUBQUERY = "Streaming query is not allowed in subquery expressions."


class Case(NamedTuple):
    """A query that Spark refuses, its message, and what to write instead with the rows of that."""

    refused: str
    said: str
    instead: str
    rows: list[tuple[Any, ...]]


CASES = {
    "COUNT DISTINCT": Case(
        f"SELECT {WINDOW} AS w, count(DISTINCT x) FROM a GROUP BY {WINDOW}",
        "Distinct aggregations are not supported on streaming DataFrames/Datasets. Consider using"
        " approx_count_distinct() instead.",
        "SELECT window(window_time(w), '1 hour').end, count(*), sum(n)"
        f" FROM (SELECT {WINDOW} AS w, x, count(*) AS n FROM a GROUP BY {WINDOW}, x)"
        " GROUP BY window(window_time(w), '1 hour')",
        [("13:00", 2, 3)],
    ),
    "COUNT DISTINCT, approximately": Case(
        f"SELECT {WINDOW} AS w, sum(DISTINCT x) FROM a GROUP BY {WINDOW}",
        "Distinct aggregations are not supported",
        f"SELECT {WINDOW}.end, approx_count_distinct(x) FROM a GROUP BY {WINDOW}",
        [("13:00", 2)],
    ),
    "IN": Case(
        "SELECT * FROM a WHERE k IN (SELECT k FROM a b WHERE x > 1)",
        IN_SUBQUERY,
        f"SELECT l.* FROM {PAIRS.replace('JOIN', 'LEFT SEMI JOIN')} AND r.x > 1",
        [("12:12", "b", 2)],
    ),
    "EXISTS": Case(
        "SELECT * FROM a WHERE EXISTS (SELECT 1 FROM a b WHERE b.k = a.k)",
        IN_SUBQUERY,
        f"SELECT l.rowtime, l.k FROM {PAIRS.replace('JOIN', 'LEFT SEMI JOIN')}",
        [("12:10", "a"), ("12:11", "a"), ("12:12", "b")],
    ),
    "several event time columns": Case(
        f"SELECT DISTINCT l.rowtime, r.rowtime AS other FROM {PAIRS}",
        "More than one event time columns are available. Please ensure there is at most one event time column per"
        " stream.",
        f"SELECT DISTINCT l.rowtime, unix_micros(r.rowtime) % 3600000000 AS other FROM {PAIRS}",
        [("12:10", 600_000_000), ("12:10", 660_000_000), ("12:11", 660_000_000), ("12:12", 720_000_000)],
    ),
    "window_time in the query that groups": Case(
        f"SELECT window_time(window) AS t, count(*) FROM a GROUP BY {WINDOW}",
        '[MISSING_AGGREGATION] The non-aggregating expression "window_time(window)"',
        f"SELECT window_time(w) AS t, n FROM (SELECT {WINDOW} AS w, count(*) AS n FROM a GROUP BY {WINDOW})",
        [("12:59:59.999999", 3)],
    ),
    "a view named stream, with an alias": Case(
        "SELECT s.rowtime, s.x FROM stream s WHERE s.x > 1",
        "[TABLE_OR_VIEW_NOT_FOUND] The table or view `s` cannot be found",
        "SELECT s.rowtime, s.x FROM `stream` s WHERE s.x > 1",
        [("12:12", 2)],
    ),
}


@pytest.fixture
def rows(pipe: Pipe) -> Pipe:
    """A stream of three rows, as the views ``a`` and ``stream``."""
    with opened(pipe.create("a", "k STRING, x INT"), "p") as sink:
        send(sink, ("12:10", "a", 1), ("12:11", "a", 1), ("12:12", "b", 2), promise="13:30")
    yield pipe
    for name in ("a", "stream"):
        pipe.spark.catalog.dropTempView(name)


def named(pipe: Pipe, bounds: str) -> None:
    frame = pipe.read("a", bounds=bounds)
    watermarked = frame.withWatermark("rowtime", "0 seconds") if bounds == "ignore" else frame
    for name in ("a", "stream"):
        watermarked.createOrReplaceTempView(name)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_spark_refuses_it_and_takes_the_other_form(rows: Pipe, tmp_path, case: Case) -> None:
    for bounds in ("require", "ignore"):
        named(rows, bounds)
        with (
            pytest.raises(PySparkException) as caught,
            Observed(rows.spark.sql(case.refused), tmp_path / bounds) as query,
        ):
            query.step()
        assert case.said in str(caught.value), bounds
    named(rows, "require")
    with Observed(rows.spark.sql(case.instead), tmp_path / "instead") as query:
        assert query.step() == case.rows
