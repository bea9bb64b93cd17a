"""A session consists of all its rows, whatever a query asks of its start and end."""

from pathlib import Path

import pytest

from tests.spark.observed_query import Observed
from tests.streams import Pipe, opened, send

SESSIONS = """
SELECT w.start AS s, window_time(w) AS t, w.end - w.start AS length
FROM (SELECT session_window(rowtime, '5 minutes') AS w, k FROM a GROUP BY session_window(rowtime, '5 minutes'), k)
"""
FIRST = "TIMESTAMP '2006-09-11 12:00:00'"
ONE_IF_LONG = "CASE WHEN length > INTERVAL 6 MINUTES THEN array(1) ELSE CAST(array() AS ARRAY<INT>) END"
TIMES = {
    "a filter": f"SELECT t FROM ({SESSIONS}) WHERE s = {FIRST}",
    "its length": f"SELECT t FROM ({SESSIONS}) WHERE length > INTERVAL 6 MINUTES",
    "a union of names of WITH": (
        f"WITH x AS ({SESSIONS}), u AS (SELECT s, t FROM x UNION ALL SELECT rowtime, rowtime FROM a WHERE false) "
        f"SELECT t FROM u WHERE s = {FIRST}"
    ),
    "a join with a table": f"SELECT t FROM ({SESSIONS}) JOIN starts ON s = starts.time AND starts.time = {FIRST}",
    "LATERAL": f"SELECT t FROM ({SESSIONS}), LATERAL (SELECT 1 FROM starts WHERE length > INTERVAL 6 MINUTES)",
    "LATERAL, by the start": f"SELECT t FROM ({SESSIONS}), LATERAL (SELECT 1 FROM starts WHERE s = {FIRST})",
    "JOIN LATERAL": f"SELECT t FROM ({SESSIONS}) x JOIN LATERAL (SELECT 1 FROM starts) ON length > INTERVAL 6 MINUTES",
    "explode": f"SELECT t FROM ({SESSIONS}) LATERAL VIEW explode({ONE_IF_LONG}) AS one",
    "a sub-query": f"SELECT t FROM ({SESSIONS}) WHERE EXISTS (SELECT 1 FROM starts WHERE length > INTERVAL 6 MINUTES)",
    "DISTINCT": f"SELECT DISTINCT t FROM ({SESSIONS})",
}


@pytest.mark.parametrize("case", TIMES)
def test_a_session_consists_of_all_its_rows(pipe: Pipe, tmp_path: Path, case: str) -> None:
    """12:00 and 12:04: one session until 12:09. A condition on each row's own would leave a row out."""
    rows = opened(pipe.create("a", "k STRING"), "p")
    pipe.read("a").createOrReplaceTempView("a")
    pipe.spark.sql(f"SELECT {FIRST} AS time").createOrReplaceTempView("starts")
    with Observed(pipe.spark.sql(TIMES[case]), tmp_path) as query:
        send(rows, ("12:00", "a"), ("12:04", "a"), promise="13:00")
        assert query.step() == [("12:08:59.999999",)]
