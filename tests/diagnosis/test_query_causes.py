"""The chain through queries, over statuses as queries write them. tests/spark/test_why.py has real queries."""

import json
import uuid
from typing import Any

import pytest

import spark_rowtime as rt
from spark_rowtime.store import open_store
from spark_rowtime.store.query_status import GONE_MICROS
from spark_rowtime.store.snapshot import HOST, READER
from spark_rowtime.testing.clock import TestClock
from spark_rowtime.types.timestamps import to_micros
from tests.store.streams import Writer


def us(clock: str) -> int:
    return to_micros(f"2006-09-11T{clock}:00Z")


class Pipeline:
    """A feed ``Berlin`` of the stream ``orders``, and a query ``hours`` from there into ``hourly``."""

    def __init__(self) -> None:
        self.orders, self.hourly = (f"memory://{uuid.uuid4()}" for _ in range(2))
        for path in (self.orders, self.hourly):
            rt.createStream(path, "rowtime TIMESTAMP NOT NULL, n BIGINT")
        self.clock = TestClock()
        for path in (self.orders, self.hourly):
            open_store(path).now = self.clock.now
        self.berlin = rt.openSink(self.orders, producer="Berlin", lease=None, linger="1 hour")
        self.writer = Writer(open_store(self.hourly), "spark-1")

    def promise(self, clock: str) -> None:
        self.berlin.sendRowtimeBound(f"2006-09-11T{clock}:00Z")
        self.berlin.flush()

    def batch(
        self, read: str | None, out: str | None, *, state: str = "running", topics: Any = None, **status: Any
    ) -> None:
        """The query has read up to ``read``, and its output has reached ``out``."""
        store = open_store(self.orders)
        position = {"stream": store.stream, "seq": store.head().seq, "cut": None, "floor": read and us(read)}
        source = {
            "path": self.orders,
            "position": position,
            "place": [],
            **({} if topics is None else {"read": topics}),
        }
        told = {"query": "1", "name": "hours", "batch": 1, "sources": [source], "column": "rowtime"}
        told |= {"output": {} if out is None else {"rowtime": us(out)}, **status}
        commit = self.writer.commit(query_status=json.dumps(told))
        self.writer.store.commit(commit.__class__(**{**_fields(commit), "floor": out and us(out)}))
        store.put_status(READER, "1", json.dumps({**told, "state": state, "error": status.get("error")}))

    def why(self, at: str = "10:00", **options: Any) -> rt.Explanation:
        return rt.why(self.hourly, f"2006-09-11T{at}:00Z", **options)


def _fields(commit: Any) -> dict[str, Any]:
    return {name: getattr(commit, name) for name in commit.__slots__}


@pytest.fixture
def pipeline() -> Pipeline:
    return Pipeline()


def test_a_query_that_has_not_reported_is_gone(pipeline: Pipeline) -> None:
    pipeline.promise("09:00")
    pipeline.batch("09:00", "09:00")
    pipeline.promise("10:00")
    found = pipeline.why()
    assert (found.cause, found.holder) == (rt.Cause.QUERY_BEHIND, "hours")
    pipeline.clock.advance(GONE_MICROS + 1)
    found = pipeline.why()
    assert (found.cause, found.holder) == (rt.Cause.QUERY_GONE, "hours")
    assert "has not reported for 3" in found.note
    assert f"rowtime close {pipeline.hourly} spark-1" in found.remedy
    pipeline.batch("10:00", "10:00")
    assert pipeline.why().complete


def test_a_query_that_has_not_read_a_topic_up_to_the_cut_of_a_bound(pipeline: Pipeline) -> None:
    """The producer, and the offsets that are missing."""
    pipeline.berlin.sendRowtimeBound("2006-09-11T10:00:00Z", cut={"shop": {0: 3, 1: 8, 2: 5}})
    pipeline.berlin.flush()
    pipeline.batch(None, None, topics={"shop": {"0": 3, "1": 7}})
    found = pipeline.why()
    assert (found.cause, found.holder, found.chain[-1].cause) == (rt.Cause.CUT, "hours", None)
    assert "up to shop[1] at 8, shop[2] at 5. It has read shop[1] at 7, shop[2] at 0." in found.note
    assert "producer 'Berlin'" in found.note
    assert "read_committed" in found.remedy
    pipeline.batch(None, None, topics={"shop": {"0": 3, "1": 8, "2": 5}})
    assert pipeline.why().cause is rt.Cause.QUERY_BEHIND
    pipeline.batch("10:00", "10:00", topics={"shop": {"0": 3, "1": 8, "2": 5}})
    assert pipeline.why().complete


def test_a_query_that_has_read_all_is_not_to_blame_even_if_it_is_stopped(pipeline: Pipeline) -> None:
    pipeline.promise("09:00")
    pipeline.batch("09:00", "09:00", state="stopped")
    found = pipeline.why(silentAfter="0 s")
    assert (found.cause, found.holder) == (rt.Cause.SILENT, "Berlin")
    pipeline.promise("09:30")
    found = pipeline.why(silentAfter="0 s")
    assert (found.cause, found.holder) == (rt.Cause.SILENT, "Berlin")  # the feed is the first that is below ten
    assert [link.cause for link in found.chain] == [rt.Cause.SILENT, None, None, None]


def test_without_a_status(pipeline: Pipeline) -> None:
    pipeline.promise("10:00")
    pipeline.writer.send(floor=1)
    found = pipeline.why()
    assert (found.cause, found.holder) == (rt.Cause.NO_ACCOUNT, "1")
    assert [link.kind for link in found.chain] == ["producer", "stream"]


OTHERS = ["no JSON", "{}", "[]", '{"query": "1", "sources": 5}', '{"query": "1", "sources": [7]}']


@pytest.mark.parametrize("text", OTHERS)
def test_a_status_of_another_version_is_none(pipeline: Pipeline, text: str) -> None:
    store = pipeline.writer.store
    store.commit(pipeline.writer.commit([1], query_status=text))
    for role in (READER, HOST):
        store.put_status(role, "x", text)
    assert pipeline.why().cause is rt.Cause.NO_ACCOUNT


def test_an_output_that_lies_behind_asks_for_more_of_its_source(pipeline: Pipeline) -> None:
    pipeline.promise("10:05")
    pipeline.batch("10:05", "09:55", operators=[{"name": "symmetricHashJoin"}])
    found = pipeline.why(silentAfter="0 s")
    assert (found.cause, found.holder) == (rt.Cause.SILENT, "Berlin")
    assert "must promise 2006-09-11T10:10:00Z" in found.remedy
    producer, orders, query, hourly = found.chain
    assert [link.needs and f"{link.needs:%H:%M}" for link in found.chain] == ["10:10", "10:10", "10:00", "10:00"]
    assert (query.cause, query.behindSeconds) == (rt.Cause.OPERATOR, 600.0)
    assert "lies 600 s behind its input" in query.note
    assert (producer.behindSeconds, orders.behindSeconds, hourly.behindSeconds) == (0.0, 0.0, 0.0)


def test_an_output_that_is_moved_forward_asks_for_less(pipeline: Pipeline) -> None:
    pipeline.promise("08:30")
    pipeline.batch("08:30", "09:30")
    assert "must promise 2006-09-11T09:00:00Z" in pipeline.why().remedy
    pipeline.promise("09:00")
    assert pipeline.why().cause is rt.Cause.QUERY_BEHIND


def test_the_source_counts_whose_bound_less_what_the_joins_take_off_is_least(pipeline: Pipeline) -> None:
    """Of a status without it, such as that of an older version, the weakest bound counts."""
    trades = f"memory://{uuid.uuid4()}"
    rt.createStream(trades, "rowtime TIMESTAMP NOT NULL, n BIGINT")
    pipeline.promise("10:25")
    with rt.openSink(trades, producer="desk", lease=None) as desk:
        desk.sendRowtimeBound("2006-09-11T11:10:00Z")
        desk.flush()
        sources = [
            {"path": path, "position": {"seq": 9, "floor": us(floor)}, "behind": behind}
            for path, floor, behind in ((pipeline.orders, "10:25", 0), (trades, "11:10", 3_600_000_000))
        ]
        join = {"name": "symmetricHashJoin", "emits": "complete"}
        pipeline.batch(None, "10:10", sources=sources, operators=[{**join, "name": "stateStoreSave"}, join])
        found = pipeline.why("10:20", silentAfter="0 s")
        assert (found.holder, "must promise 2006-09-11T11:20:00.000001Z" in found.remedy) == ("desk", True)
        pipeline.batch(None, "10:25", sources=sources, operators=[join])
        assert pipeline.why("10:30", silentAfter="0 s").holder == "Berlin"
        older = [{**source, "behind": None} for source in sources]
        pipeline.batch(None, "10:10", sources=older, operators=[join])
        assert pipeline.why("10:30", silentAfter="0 s").holder == "Berlin"


def test_an_output_that_is_rounded_is_not_blamed_on_the_feed(pipeline: Pipeline) -> None:
    pipeline.promise("10:30")
    pipeline.batch("10:30", "10:00")
    pipeline.promise("11:15")
    assert pipeline.why("11:00").cause is rt.Cause.QUERY_BEHIND


def test_a_lost_bound_is_blamed_although_earlier_batches_had_one(pipeline: Pipeline) -> None:
    pipeline.promise("09:00")
    pipeline.batch("09:00", "09:00")
    pipeline.promise("10:00")
    pipeline.batch("10:00", "09:00", output={}, lost={"rowtime": "my_function(rowtime)"})
    found = pipeline.why()
    assert (found.cause, found.holder) == (rt.Cause.BOUND_LOST, "hours")
    assert "lost at my_function(rowtime)" in found.note


def test_a_bound_that_is_lost_at_a_join_needs_a_condition_on_both_times(pipeline: Pipeline) -> None:
    pipeline.promise("10:00")
    pipeline.batch("10:00", None, output={}, lost={"rowtime": "Join"})
    found = pipeline.why()
    assert found.cause is rt.Cause.BOUND_LOST
    assert "it was lost at a join whose ON does not say how long the rows of both sides are kept" in found.note
    assert "b.rowtime BETWEEN a.rowtime AND a.rowtime + INTERVAL 10 MINUTES" in found.remedy
    assert "new checkpoint" in found.remedy


def test_operators_without_a_watermark_yet(pipeline: Pipeline) -> None:
    pipeline.promise("10:00")
    pipeline.batch("10:00", None, operators=[{"name": "sessionWindowStateStoreSaveExec"}], lost={})
    found = pipeline.why()
    assert (found.cause, found.holder) == (rt.Cause.OPERATOR, "hours")
    assert "sessionWindowStateStoreSaveExec" in found.note


def test_a_loop_of_queries_ends(pipeline: Pipeline) -> None:
    pipeline.promise("09:00")
    store = open_store(pipeline.hourly)
    position = {"stream": store.stream, "seq": 0, "cut": None, "floor": us("09:00")}
    told = {"query": "1", "batch": 1, "sources": [{"path": pipeline.hourly, "position": position}]}
    store.commit(pipeline.writer.commit([1], query_status=json.dumps(told)))
    assert [link.kind for link in pipeline.why().chain] == ["query", "stream"]


def test_without_a_time_it_is_that_of_the_feeds(pipeline: Pipeline) -> None:
    pipeline.promise("09:00")
    pipeline.batch("09:00", "08:00")
    found = rt.why(pipeline.hourly)
    assert f"{found.at:%H:%M}" == "09:00"
    pipeline.batch("09:00", "09:00")
    assert rt.why(pipeline.hourly).complete


def test_without_a_time_a_query_whose_source_another_query_writes_must_come_as_far_as_the_feeds(
    pipeline: Pipeline,
) -> None:
    pipeline.promise("09:00")
    pipeline.batch("08:00", "08:00")
    daily = {"query": "2", "name": "daily", "batch": 1, "column": "rowtime", "output": {"rowtime": us("07:00")}}
    daily["sources"] = [{"path": pipeline.hourly, "position": {"seq": 1, "floor": us("07:00")}, "place": []}]
    open_store(pipeline.hourly).put_status(READER, "2", json.dumps({**daily, "state": "running"}))
    found = rt.why(pipeline.hourly, query="daily")
    assert (f"{found.at:%H:%M}", found.complete, found.holder) == ("09:00", False, "hours")
    pipeline.batch("09:00", "09:00")
    assert rt.why(pipeline.hourly, query="daily").holder == "daily"


def test_a_query_whose_watermark_follows_rows_waits_for_no_producer(pipeline: Pipeline) -> None:
    pipeline.promise("10:30")
    keeps = {"name": "stateStoreSave", "watermark": us("09:00"), "emits": "complete"}
    pipeline.batch("10:30", "09:00", follows="t2", operators=[keeps])
    found = pipeline.why()
    assert (found.cause, found.holder) == (rt.Cause.OPERATOR, "hours")
    assert "withWatermark on 't2', of which no bound speaks" in found.note
    assert found.remedy.startswith("A row with a later t2, or the end of the streams.")
    pipeline.promise("10:40")
    pipeline.batch("10:40", "09:00", follows="t2")
    assert "t2" not in pipeline.why().note, "without an operator a withWatermark holds nothing"


def test_a_query_is_asked_about_at_its_source(pipeline: Pipeline) -> None:
    pipeline.promise("09:00")
    pipeline.batch("09:00", None, output={"window.start": us("08:00"), "window.end": us("09:00")}, column=None)
    found = rt.why(pipeline.orders, "2006-09-11T09:00:00Z", query="hours")
    assert (found.complete, found.chain[-1].kind, found.chain[-1].name) == (True, "query", "hours")
    assert not rt.why(pipeline.orders, "2006-09-11T10:00:00Z", query="1").complete
    with pytest.raises(rt.InvalidOptionError, match=r"No query 'hour' .* Did you mean 'hours'"):
        rt.why(pipeline.orders, query="hour")


def test_a_source_that_cannot_be_opened(pipeline: Pipeline) -> None:
    pipeline.promise("09:00")
    pipeline.batch("09:00", "09:00")
    pipeline.berlin.close()
    rt.deleteStream(pipeline.orders)
    found = pipeline.why()
    assert (found.cause, found.holder) == (rt.Cause.SOURCE_UNREADABLE, "hours")
    assert pipeline.why("09:00").complete


def test_a_query_of_late_rows_has_no_bound(pipeline: Pipeline) -> None:
    pipeline.promise("10:00")
    pipeline.batch(None, None, sources=[{"path": pipeline.orders, "view": "rejected", "place": []}])
    found = pipeline.why()
    assert (found.cause, found.holder) == (rt.Cause.ORDINARY_SOURCE, "hours")
    assert f"late rows of {pipeline.orders}" in found.note


def test_describe_names_the_query_of_a_producer(pipeline: Pipeline) -> None:
    pipeline.promise("10:00")
    pipeline.batch("10:00", "09:00")
    [producer] = rt.describeStream(pipeline.hourly).producers
    assert (producer.name, producer.query) == ("spark-1", "hours")
    [berlin] = rt.describeStream(pipeline.orders).producers
    assert berlin.query is None
