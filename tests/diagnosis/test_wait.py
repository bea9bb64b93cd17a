"""Tokens: wait returns when what was flushed is in the results of a stream, by the statuses of the queries between."""

import itertools
import json
import pickle
import uuid
from typing import Any

import pytest

import spark_rowtime as rt
from spark_rowtime.diagnosis.progress import Progress
from spark_rowtime.diagnosis.reach import Within
from spark_rowtime.diagnosis.stream_state import StreamState
from spark_rowtime.store import open_store
from spark_rowtime.store.query_status import MOST_SOURCES
from spark_rowtime.store.token import FlushMark, parse
from spark_rowtime.types.timestamps import END, to_micros
from tests.commands import rowtime
from tests.store.streams import Writer

HOUR = 3_600_000_000


def new_stream() -> str:
    path = f"memory://{uuid.uuid4()}"
    rt.createStream(path, "rowtime TIMESTAMP NOT NULL, n BIGINT")
    return path


def us(clock: str) -> int:
    return to_micros(f"2006-09-11T{clock}:00Z")


class Query:
    """Writes statuses as a query does, one a batch, from one stream into another."""

    def __init__(self, source: str, target: str, name: str = "q") -> None:
        self.source, self.store, self.name = source, open_store(target), name
        self.writer = Writer(self.store, f"spark-{name}")

    def batch(self, seq: int | None = None, floor: str | None = None, cut: int | None = None, **status: Any) -> None:
        with open_store(self.source) as source:
            at = source.head().seq if seq is None else seq
            position = {"stream": source.stream, "seq": at, "cut": cut, "floor": floor and us(floor)}
        told = {"query": self.name, "batch": 0, "sources": [{"path": self.source, "position": position}], **status}
        self.store.commit(self.writer.commit([1], query_status=json.dumps(told)))


def windows(watermark: str) -> dict[str, Any]:
    """One operator with windows of an hour."""
    grid = {"slide": HOUR, "start": 0, "reach": HOUR}
    return {
        "operators": [{"name": "stateStoreSave", "emits": "complete", "watermark": us(watermark), "window": grid}],
        "output": {"rowtime": us(watermark)},
    }


def flushed(path: str, clock: str = "09:30") -> str:
    with rt.openSink(path, lease=None, linger="1 hour") as sink:
        sink.sendRow((f"2006-09-11T{clock}:00Z", 1))
        return sink.flush()


def test_a_token_is_a_small_text_that_says_where_all_is_that_was_committed() -> None:
    path = new_stream()
    with rt.openSink(path, linger="1 hour") as sink:
        assert parse(sink.flush()) == FlushMark(open_store(path).stream, 1, None)
        sink.sendRow(("2006-09-11T09:30:00Z", 1))
        token = sink.flush(checkpoint="1")
        assert token == pickle.loads(pickle.dumps(token))
        assert parse(token) == FlushMark(open_store(path).stream, 2, us("09:30"))
        sink.sendRowtimeBound("2006-09-11T10:00:00Z")
        assert parse(sink.flush()) == FlushMark(open_store(path).stream, 3, us("09:30"))
        assert sink.flush() == sink.flush()
    assert len(token) < 80


@pytest.mark.parametrize("text", ["", "x", "rowtime1:a:b:c", "rowtime2:a:1:-", 5, None])
def test_another_text_is_no_token(text: Any) -> None:
    with pytest.raises(rt.InvalidOptionError, match="is no token"):
        rt.wait(text, new_stream())


def test_it_is_at_once_in_its_own_stream_and_in_a_copy() -> None:
    path, copy = new_stream(), f"memory://{uuid.uuid4()}"
    token = flushed(path)
    rt.wait(token, path, timeout="0 s")
    rt.copyStream(path, copy)
    rt.wait(token, copy, timeout="0 s")


def test_a_copy_that_ends_before_it_will_never_have_it() -> None:
    path, copy, out = new_stream(), f"memory://{uuid.uuid4()}", new_stream()
    flushed(path)
    rt.copyStream(path, copy)
    token = flushed(path)
    with pytest.raises(rt.DataLostError, match=r"a copy that has its events up to \d+"):
        rt.wait(token, copy, timeout="0 s")
    Query(copy, out).batch()
    with pytest.raises(rt.DataLostError, match=f"the stream at {copy} is a copy"):
        rt.wait(token, out, timeout="0 s")


def test_where_its_own_stream_has_not_come_as_far_it_waits() -> None:
    """A standby of a database, or the files of an older backup."""
    path = new_stream()
    flushed(path)
    mark = parse(flushed(path))
    with pytest.raises(rt.WaitTimeoutError):
        rt.wait(mark._replace(seq=mark.seq + 100).token(), path, timeout="0 s")


def test_a_query_without_operators_must_have_read_it() -> None:
    path, out = new_stream(), new_stream()
    query = Query(path, out)
    query.batch()
    token = flushed(path)
    with pytest.raises(rt.WaitTimeoutError, match=r"has read .* up to no bound;"):
        rt.wait(token, out, timeout="0 s")
    query.batch()
    rt.wait(token, out, timeout="0 s")


def test_in_the_order_of_rowtimes_its_cut_must_have_passed_it() -> None:
    path, out = new_stream(), new_stream()
    query, progress = Query(path, out), Progress(parse(flushed(path)), Within(path))
    query.batch(cut=us("09:30"))
    assert not progress.has_reached(out)
    query.batch(cut=us("09:30") + 1)
    assert progress.has_reached(out)


def test_its_window_must_be_complete_and_the_next_query_must_have_read_that() -> None:
    path, hourly, out = new_stream(), new_stream(), new_stream()
    first, second = Query(path, hourly, "first"), Query(hourly, out, "second")
    token = flushed(path)
    first.batch(floor="09:59", **windows("09:59"))
    second.batch(floor="09:59", **windows("09:59"))
    with pytest.raises(rt.WaitTimeoutError) as caught:
        rt.wait(token, hourly, timeout="0 s")
    assert caught.value.values["cause"] != "complete"
    first.batch(floor="10:00", **windows("10:00"))
    rt.wait(token, hourly, timeout="0 s")
    progress = Progress(parse(token), Within(path))
    second.batch(seq=1, floor="12:00", **windows("12:00"))  # it has not read what the first has written
    assert not progress.has_reached(out)
    second.batch(floor="10:00", **windows("10:59"))  # the result at ten is in the window that ends at eleven
    assert not progress.has_reached(out)
    flushed(hourly, "12:30")  # what others send later is not waited for
    second.batch(seq=3, floor="11:00", **windows("11:00"))
    assert progress.has_reached(out)


def test_an_operator_on_raw_times_must_have_passed_it() -> None:
    path, out = new_stream(), new_stream()
    query, progress = Query(path, out), Progress(parse(flushed(path)), Within(path))
    for done, reached in ((us("09:30") - 1, False), (us("09:30"), True)):
        query.batch(operators=[{"name": "symmetricHashJoin", "emits": "complete", "watermark": 1, "done": done}])
        assert progress.has_reached(out) is reached


def test_all_is_out_when_the_source_is_complete() -> None:
    path, out = new_stream(), new_stream()
    query, progress = Query(path, out), Progress(parse(flushed(path)), Within(path))
    query.batch(operators=[{"name": "x", "emits": "unknown"}])
    assert not progress.has_reached(out)
    with open_store(path) as source:
        position = {"stream": source.stream, "seq": 0, "cut": None, "floor": END}
    told = {"query": "q", "batch": 1, "sources": [{"path": path, "position": position}]}
    query.store.commit(query.writer.commit([2], query_status=json.dumps(told)))
    assert progress.has_reached(out)


def test_an_operator_that_keeps_rows_for_nobody_knows_how_long_is_refused() -> None:
    path, out = new_stream(), new_stream()
    token = flushed(path)
    Query(path, out).batch(operators=[{"name": "transformWithState", "emits": "unknown", "watermark": 1}])
    with pytest.raises(rt.InvalidOptionError, match="nothing says how long its operator transformWithState keeps"):
        rt.wait(token, out)


def test_a_stream_to_which_no_query_leads() -> None:
    token = flushed(new_stream())
    with pytest.raises(rt.WaitTimeoutError, match="No query that leads there has reported yet"):
        rt.wait(token, new_stream(), timeout="0 s")


def test_each_stream_is_looked_at_once_however_many_queries_read_it(monkeypatch: pytest.MonkeyPatch) -> None:
    source, layers = new_stream(), [[new_stream(), new_stream()] for _ in range(7)]
    token, out, looks = flushed(source), new_stream(), list[str]()
    for reads, writes in itertools.pairwise([[source], *layers, [out]]):
        for one, other in itertools.product(reads, writes):
            Query(one, other, f"{one[-4:]}-{other[-4:]}").batch()
    opened = "spark_rowtime.diagnosis.progress.open_store"
    monkeypatch.setattr(opened, lambda path: looks.append(path) or open_store(path))
    assert Progress(parse(token), Within(out, ()))._leads(out, ())
    looks.clear()
    assert not Progress(parse(flushed(new_stream())), Within(out, ()))._leads(out, ())
    assert len(looks) == len(set(looks)) <= 16


def test_a_status_with_more_sources_than_a_query_has_is_not_followed() -> None:
    path, out = new_stream(), new_stream()
    token = flushed(path)
    found = [{"path": f"memory://{n}", "position": {}} for n in range(MOST_SOURCES)]
    Query(path, out).batch(sources=found)
    assert len(StreamState.of(open_store(out).snapshot()).queries[0].sources) == MOST_SOURCES
    Query(path, out).batch(sources=[*found, *found[:1]])
    assert not StreamState.of(open_store(out).snapshot()).queries
    with pytest.raises(rt.WaitTimeoutError, match="No query that leads there has reported yet"):
        rt.wait(token, out, timeout="1 ms")


def test_the_command_has_an_exit_status_for_each_end() -> None:
    path = new_stream()
    token = flushed(path)

    assert rowtime("wait", token, path).exit_code == 0
    late = rowtime("wait", token, new_stream(), "--timeout", "0 s")
    assert late.exit_code == 1
    assert "What was flushed is not in memory://" in late.stderr
    assert rowtime("wait", "x", path).exit_code == 2
    assert rowtime("wait", token, "memory://none").exit_code == 2
