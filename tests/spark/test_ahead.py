"""A query as the attacker: its sink moves no stream beyond maxAhead, and joins no closed stream."""

import re
from typing import Any

import pytest

import spark_rowtime as rt
from tests.spark.query_output import finish, refused
from tests.streams import Pipe, at, opened, send


@pytest.fixture
def source(pipe: Pipe) -> Any:
    """The sink of the stream ``s``, which takes any time."""
    return opened(pipe.create("s", "x INT", maxAhead="unlimited"), "feed", rowsImplyBounds=False)


def test_a_bound_and_a_row_of_the_year_9999_do_not_land_until_the_limit_is_lifted(pipe: Pipe, source: Any) -> None:
    """The query creates its stream with the limit of a day, and goes on from its checkpoint without one."""
    send(source, ("10:00", 1), promise="10:00")
    query = pipe.run(pipe.read("s"))
    assert pipe.step() == [("10:00", 1)]
    send(source, promise="9999-01-01 10:00")
    with refused(rt.RowtimeAheadError, "The bound 9999-01-01T10:00:00Z", "rowtime alter STREAM --max-ahead"):
        finish(query)
    info = rt.describeStream(pipe.path("out"))
    assert (info.bound, info.rows) == (rt.RowtimeBound(at("10:00")), 1)
    with opened(pipe.path("out"), "honest") as honest:
        send(honest, ("10:05", 2))
    rt.alterStream(pipe.path("out"), maxAhead=None)
    query = pipe.run(pipe.read("s"))
    send(source, ("9999-01-02 10:00", 3), promise="9999-01-03 10:00")
    assert pipe.step() == [("10:05", 2), ("9999-01-02 10:00", 3)]
    query.stop()


def test_a_query_joins_no_closed_stream_until_it_is_let_in(pipe: Pipe, source: Any) -> None:
    pipe.create("out", "x INT", producers=["nightly"], closed=True)
    send(source, ("10:00", 1), promise="10:00")
    query = pipe.run(pipe.read("s"))
    with pytest.raises(Exception, match="is closed to all but 'nightly'") as caught:
        finish(query)
    assert rt.describeStream(pipe.path("out")).rows == 0
    (name,) = set(re.findall(r"Producer '(\S+ ?\S*)' may not", str(caught.value)))
    rt.alterStream(pipe.path("out"), producers=[name])
    pipe.run(pipe.read("s"))
    pipe.query.processAllAvailable()
    assert rt.describeStream(pipe.path("out")).rows == 1
