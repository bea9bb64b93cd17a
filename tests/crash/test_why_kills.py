"""why names a query whose driver was killed, and nobody could say so.

A query counts as gone after half a minute without a report, so by command:
``ROWTIME_KILLS=1 python -m pytest tests/crash/test_why_kills.py``.
"""

import os
from pathlib import Path

import pytest

import spark_rowtime as rt
from tests.crash.drivers import Driver, Feed, moment
from tests.sparksession import wait_for


@pytest.mark.skipif("ROWTIME_KILLS" not in os.environ, reason="a minute; ROWTIME_KILLS=1 has it")
def test_a_query_whose_driver_was_killed_is_gone(tmp_path: Path) -> None:
    feed = Feed(tmp_path)
    feed.send(2)
    with Driver(tmp_path) as driver:
        driver.do("go")
        driver.kill()
    feed.send(2)
    sink = str(tmp_path / "counts.rowtime")
    assert rt.why(sink, moment(10)).cause in (rt.Cause.QUERY_BEHIND, rt.Cause.LIMIT)
    wait_for(lambda: rt.why(sink, moment(10)).cause is rt.Cause.QUERY_GONE, "the query to be known as gone")
    found = rt.why(sink, moment(10))
    assert "has not reported for" in found.note
    with Driver(tmp_path) as driver:
        driver.do("go")
        assert rt.why(sink, moment(10)).complete
        assert driver.ended() == 0
    feed.close()
