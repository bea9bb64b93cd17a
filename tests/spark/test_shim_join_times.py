"""From when on a join's rows can have no match: what is compared may be rounded, shifted or a calendar day."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any, NamedTuple

import pytest

from tests.spark.driver_log import logged
from tests.spark.joining import as_batch, in_order, sql_join, streamed
from tests.spark.observed_query import Observed
from tests.streams import Pipe, opened


class Case(NamedTuple):
    """A left row and a right one that match, though the right stream's bound was at ``bound`` before."""

    on: str
    left: str
    bound: str
    right: str
    zone: str = "UTC"
    end: str = "2025-06-01T23:00:00Z"


BERLIN = (
    "2025-10-25T12:00:00Z",
    "2025-10-26T12:15:00Z",
    "2025-10-26T12:30:00Z",
    "Europe/Berlin",
    "2025-10-29T00:00:00Z",
)
APIA = ("2011-12-31T00:00:00Z", "2011-12-29T10:00:00Z", "2011-12-29T20:00:00Z", "Pacific/Apia", "2012-01-09T00:00:00Z")
LONG = ("2025-06-01T10:00:00Z", "2025-06-01T10:10:00.5Z", "2025-06-01T10:10:00.9Z")
ROUNDED = ("2025-06-01T10:00:00.6Z", "2025-06-01T10:10:01.3Z", "2025-06-01T10:10:01.4Z")
TEN_MINUTES = ("2025-06-01T10:00:00Z", "2025-06-01T10:08:00Z", "2025-06-01T10:10:00Z")
SHIFTED = ("2025-06-01T10:00:00Z", "2025-06-01T10:30:00Z", "2025-06-01T11:00:00Z")
AFTER = "{r}.rowtime >= {l}.rowtime AND "

CASES = {
    "a day that has 25 hours": Case(AFTER + "{r}.rowtime <= {l}.rowtime + INTERVAL 1 DAY", *BERLIN),
    "24 hours, which are a day": Case(AFTER + "{r}.rowtime <= {l}.rowtime + INTERVAL 24 HOURS", *BERLIN),
    "a day that a zone skipped": Case(
        "{l}.rowtime BETWEEN {r}.rowtime + INTERVAL 2 DAYS AND {r}.rowtime + INTERVAL 3 DAYS", *APIA
    ),
    "days far before the bound, in a zone that has since given up summer time": Case(
        "CAST({l}.rowtime - INTERVAL 180 DAYS AS DOUBLE) >= CAST({r}.rowtime AS DOUBLE) - 69120000"
        " AND {l}.rowtime <= {r}.rowtime",
        "2018-12-15T12:00:00Z",
        "2020-08-26T12:15:00Z",
        "2020-08-26T12:30:00Z",
        "America/Sao_Paulo",
        "2022-01-01T00:00:00Z",
    ),
    "whole seconds": Case("CAST({r}.rowtime AS LONG) <= CAST({l}.rowtime AS LONG) + 600", *LONG),
    "a difference of seconds": Case("CAST({r}.rowtime AS LONG) - CAST({l}.rowtime AS LONG) <= 600", *LONG),
    "back from whole seconds": Case(
        AFTER + "CAST(CAST({r}.rowtime AS LONG) AS TIMESTAMP) <= {l}.rowtime + INTERVAL 10 MINUTES", *LONG
    ),
    "rounded seconds": Case("CAST({r}.rowtime AS DECIMAL(20,0)) <= CAST({l}.rowtime AS DECIMAL(20,0)) + 600", *ROUNDED),
    "seconds with a fraction": Case("CAST({r}.rowtime AS DOUBLE) <= CAST({l}.rowtime AS DOUBLE) + 600", *TEN_MINUTES),
    "the same interval twice": Case(
        AFTER + "{r}.rowtime <= {l}.rowtime + INTERVAL 5 MINUTES + INTERVAL 5 MINUTES", *TEN_MINUTES
    ),
    "a sum BETWEEN others": Case(
        "{r}.rowtime - INTERVAL 4 MINUTES BETWEEN {l}.rowtime AND {l}.rowtime + INTERVAL 6 MINUTES", *TEN_MINUTES
    ),
    "a shifted key": Case("{l}.rowtime = {r}.rowtime - INTERVAL 1 HOUR", *SHIFTED),
}


@contextmanager
def in_zone(pipe: Pipe, zone: str) -> Iterator[None]:
    key = "spark.sql.session.timeZone"
    before = pipe.spark.conf.get(key)
    pipe.spark.conf.set(key, zone)
    try:
        yield
    finally:
        pipe.spark.conf.set(key, str(before))


def said(sink: Any, *rows: tuple[str, int], promise: str) -> None:
    """Rows and a promise at full times, in one commit."""
    if rows:
        sink.sendRows(list(rows))
    sink.sendRowtimeBound(promise)
    sink.flush()


@pytest.mark.parametrize("name", CASES)
def test_a_row_is_kept_until_it_can_have_no_match(pipe: Pipe, tmp_path, name: str) -> None:
    case = CASES[name]
    left, right = (opened(pipe.create(name, "k INT"), "p") for name in ("l", "r"))
    sql = sql_join("LEFT OUTER", f"{{l}}.k = {{r}}.k AND {case.on}")
    with in_zone(pipe, case.zone), Observed(streamed(pipe, sql), tmp_path) as query:
        said(left, (case.left, 1), (case.left, 2), promise=case.end)
        said(right, promise=case.bound)
        assert query.step() == [], "a match may still come"
        said(right, (case.right, 1), promise=case.end)
        rows = query.step()
        assert in_order(rows) == as_batch(pipe, sql)
        assert [row[3] for row in rows] in ([1, None], [None, 1])


UNTIL = "{r}.rowtime <= {l}.until"
REFUSED = {
    "FLOAT has no whole seconds": "CAST({r}.rowtime AS FLOAT) <= CAST({l}.rowtime AS FLOAT) + 600",
    "doubles of such a size are no microseconds": (
        "CAST({r}.rowtime AS DOUBLE) + 9e12D <= CAST({l}.rowtime AS DOUBLE) + 9e12D"
    ),
    "INT ends in 2038": "CAST({r}.rowtime AS INT) <= CAST({l}.rowtime AS INT) + 600",
    "a column that is not the event time": UNTIL,
    "a key that is not": "{l}.rowtime = {r}.until",
}


@pytest.mark.parametrize("on", REFUSED.values(), ids=REFUSED)
def test_an_outer_join_by_what_is_no_event_time_is_refused(pipe: Pipe, tmp_path, on: str) -> None:
    left, _ = (opened(pipe.create(name, "k INT, until TIMESTAMP"), "p") for name in ("l", "r"))
    sql = sql_join("LEFT OUTER", f"{{l}}.k = {{r}}.k AND {on}")
    with (
        pytest.raises(Exception, match="results without a match would never be emitted") as refused,
        Observed(streamed(pipe, sql), tmp_path) as query,
    ):
        said(left, promise="2025-06-01T10:00:00Z")
        query.step()
    assert "LEFT OUTER JOIN on" in str(refused.value)
    assert "such as b.rowtime BETWEEN a.rowtime AND" in str(refused.value)


@pytest.mark.long
def test_a_sum_between_others_frees_rows_also_if_its_time_is_not_selected(pipe: Pipe, tmp_path) -> None:
    left, right = (opened(pipe.create(name, "k INT"), "p") for name in ("l", "r"))
    on = CASES["a sum BETWEEN others"].on
    with Observed(streamed(pipe, sql_join("LEFT SEMI", f"{{l}}.k = {{r}}.k AND {on}")), tmp_path) as query:
        said(left, promise="2025-06-01T10:00:00Z")
        said(right, promise="2025-06-01T10:00:00Z")
        query.step()
        assert list(query.promised) == ["lt"], "the rows that are kept are known"


@pytest.mark.long
def test_an_inner_join_by_what_is_no_event_time_keeps_its_rows(pipe: Pipe, tmp_path) -> None:
    left, right = (opened(pipe.create(name, "k INT, until TIMESTAMP"), "p") for name in ("l", "r"))
    truncated = "date_trunc('HOUR', {r}.rowtime) >= date_trunc('HOUR', {l}.rowtime)"
    seconds = "unix_timestamp({r}.rowtime) >= unix_timestamp({l}.rowtime)"
    dates = "to_date({r}.rowtime) >= to_date({l}.rowtime)"
    sql = sql_join("INNER", f"{{l}}.k = {{r}}.k AND {UNTIL} AND {truncated} AND {seconds} AND {dates}")
    with logged(pipe.spark) as log, Observed(streamed(pipe, sql), tmp_path) as query:
        left.sendRows([("2025-06-01T10:00:00Z", 1, datetime.fromisoformat("2025-06-01T12:00:00Z"))])
        said(left, promise="2025-06-01T11:30:00Z")
        said(right, promise="2025-06-01T11:30:00Z")
        assert query.step() == []
        right.sendRows([("2025-06-01T11:45:00Z", 1, None)])
        said(right, promise="2025-06-01T13:00:00Z")
        assert query.step() == as_batch(pipe, sql) != []
        assert "it keeps both streams' rows forever" in log()
