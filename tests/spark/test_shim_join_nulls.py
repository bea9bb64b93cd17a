"""NULL is no key: a join of two streams gives what the batch gives, whatever its keys are."""

import pytest

from tests.spark.joining import KEEPING_UNMATCHED, TYPES, as_batch, in_order, sql_join, streamed
from tests.spark.observed_query import Observed
from tests.streams import Pipe, opened, send

WITHIN = "{r}.rowtime BETWEEN {l}.rowtime AND {l}.rowtime + INTERVAL 10 MINUTES"
KEYS = {
    "a column": "{l}.k = {r}.k",
    "an expression": "nullif({l}.k, 0) = nullif({r}.k, 0)",
    "several": "{l}.k = {r}.k AND {l}.k + 1 = nullif({r}.k, 0) + 1",
    "null-safe": "{l}.k <=> {r}.k",
    "one of them null-safe": "{l}.k <=> {r}.k AND nullif({l}.k, 1) = nullif({r}.k, 1)",
}
CASES = [(how, "an expression") for how in TYPES] + [("FULL OUTER", key) for key in KEYS if key != "an expression"]


@pytest.mark.parametrize(("how", "key"), CASES)
def test_a_null_key_matches_as_in_the_batch(pipe: Pipe, tmp_path, how: str, key: str) -> None:
    left, right = (opened(pipe.create(name, "k INT"), "p") for name in ("l", "r"))
    sql = sql_join(how, f"{KEYS[key]} AND {WITHIN}")
    with Observed(streamed(pipe, sql), tmp_path) as query:
        send(left, ("10:00", 1), ("10:01", None), ("10:02", 0), promise="10:03")
        send(right, ("10:01", 1), ("10:02", None), ("10:03", 0), promise="10:03")
        rows = query.step()
        if key == "an expression" and how in KEEPING_UNMATCHED:
            unmatched = [row for row in rows if None in row]
            assert unmatched, "what can have no match comes out at once"
        send(left, ("10:04", None), promise="12:00")
        send(right, ("10:05", None), ("10:06", 1), promise="12:00")
        rows += query.step()
        assert in_order(rows) == as_batch(pipe, sql)


@pytest.mark.long
def test_a_null_time_matches_nothing_and_comes_out_at_once(pipe: Pipe, tmp_path) -> None:
    """The time of a left join's right side, by which a further outer join compares. No watermark passes NULL."""
    left, right = (opened(pipe.create(name, "k INT"), "p") for name in ("l", "r"))
    first = f"SELECT {{r}}.rowtime, {{l}}.k FROM {{l}} LEFT JOIN {{r}} ON {{l}}.k = {{r}}.k AND {WITHIN}"
    on = "c.rowtime BETWEEN x.rowtime AND x.rowtime + INTERVAL 10 MINUTES"
    sql = f"SELECT x.*, c.rowtime AS ct, c.k AS ck FROM ({first}) x FULL JOIN {{r}} c ON x.k = c.k AND {on}"
    with Observed(streamed(pipe, sql), tmp_path) as query:
        send(left, ("10:00", 1), ("10:01", 2), promise="12:00")
        send(right, ("10:05", 1), promise="12:00")
        assert in_order(query.step()) == as_batch(pipe, sql) == [("10:05", 1, "10:05", 1), (None, 2, None, None)]
