"""Statuses are data of whoever may write one: no content of them makes a question fail in another way than it may."""

import contextlib
import json
import uuid
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spark_rowtime as rt
from spark_rowtime.admin.description import described
from spark_rowtime.serve.watcher import event_of
from spark_rowtime.store import open_store
from spark_rowtime.store.snapshot import HOST, READER
from tests.store.streams import Writer

POSITION = {"stream": "s", "seq": 1, "cut": 5, "floor": 5}
WINDOW = {"slide": 3600, "start": 0, "reach": 3600}
OPERATOR = {"name": "agg", "watermark": 7, "rows": 3, "emits": "complete", "done": 4, "window": WINDOW}
QUERY = {
    "query": "q", "name": "hours", "run": "r", "batch": 3, "output": {"rowtime": 5}, "lost": {"rowtime": "x + y"},
    "column": "rowtime", "state": "running", "error": "E: e", "operators": [OPERATOR],
    "sources": [{
        "path": "memory://none", "position": POSITION, "hold": "1 s", "maxRowsPerTrigger": "5", "adapter": "a",
        "view": "rows", "place": ["left side of a join"], "other": "rate", "read": {"shop": {"0": 3}},
    }],
}  # fmt: skip
HOSTED = {"producers": ["spark-q"], "restarts": True, "error": "E: e"}
LIMITS = [10**30, (1 << 63) - 1, 253_402_300_799_999_999, -62_135_596_800_000_000, -62_135_596_800_000_001, -1]
UNENCODABLE = "\ud800"
"""Half of a character, as an escape of JSON can name it."""
STRANGE = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=True)
    | st.text(max_size=3)
    | st.sampled_from([*LIMITS, UNENCODABLE]),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3) | st.just(UNENCODABLE), inner, max_size=2)
    ),
    max_leaves=4,
)


def places(value: Any, above: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The ways to all parts of a value of JSON, itself among them."""
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [above, *(place for key, part in parts for place in places(part, (*above, key)))]


def changed(value: Any, place: tuple[Any, ...], new: Any) -> Any:
    if not place:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[place[0]] = changed(copy[place[0]], place[1:], new)
    return copy


def told(found: rt.Explanation) -> bytes:
    """As a text, and as the page has it."""
    return str(found).encode() + event_of(found.toJson())


def asked(path: str, source: str) -> None:
    """All that answers with statuses."""
    feed = rt.openSink(source, producer="feed", lease=None)
    feed.sendRowtimeBound("2006-09-11T12:00:00Z")
    token = feed.flush()
    for ask in (
        lambda: told(rt.why(path)),
        lambda: told(rt.why(path, "2006-09-11T10:00:00Z")),
        lambda: told(rt.why(source, "2006-09-11T10:00:00Z", query="q")),
        lambda: told(rt.why(source, query="q")),
        lambda: event_of(described(rt.describeStream(path))),
        lambda: rt.wait(token, path, timeout="0 s"),
    ):
        with contextlib.suppress(rt.RowtimeError):
            ask()


@pytest.mark.search
@settings(max_examples=60, deadline=None)
@given(st.sampled_from(places(QUERY)), st.sampled_from(places(HOSTED)), STRANGE, st.booleans())
def test_no_status_breaks_a_question(of_query: Any, of_host: Any, strange: Any, raw: bool) -> None:
    source, path = (f"memory://{uuid.uuid4()}" for _ in range(2))
    for one in (source, path):
        rt.createStream(one, "rowtime TIMESTAMP NOT NULL, n BIGINT")
    status = changed(QUERY, ("sources", 0, "path"), source)
    query = json.dumps(changed(status, of_query, strange))
    store = open_store(path)
    store.commit(Writer(store, "spark-q").commit([1], query_status=query))
    store.put_status(HOST, "feed", "\x7f{" if raw else json.dumps(changed(HOSTED, of_host, strange)))
    open_store(source).put_status(READER, "q", query)
    asked(path, source)


UNSHOWN = {"sources": [{**QUERY["sources"][0], "path": "?", "maxRowsPerTrigger": UNENCODABLE}]}  # type: ignore[index]
HELD = {"sources": [{**QUERY["sources"][0], "path": "?", "hold": "2930000 days", "position": {"seq": 9, "floor": 5}}]}  # type: ignore[index]
UNNAMED = {"output": {UNENCODABLE: 5}, "lost": {UNENCODABLE: "x"}, "column": UNENCODABLE}
FAR = {"sources": [{"path": "?", "position": {**POSITION, "floor": LIMITS[3]}}], "output": {"rowtime": LIMITS[2]}}


@pytest.mark.parametrize(
    "told",
    [
        {"query": []},
        {"output": {"rowtime": "x"}},
        {"sources": {}},
        {"operators": [{**OPERATOR, "window": 5}]},
        FAR,
        HELD,
        UNSHOWN,
        UNNAMED,
    ],
    ids=str,
)
def test_statuses_that_broke_a_question_once(told: dict[str, Any]) -> None:
    source, path = (f"memory://{uuid.uuid4()}" for _ in range(2))
    for one in (source, path):
        rt.createStream(one, "rowtime TIMESTAMP NOT NULL, n BIGINT")
    strange = json.dumps({**QUERY, **told}).replace("memory://none", source).replace('"?"', f'"{source}"')
    with contextlib.closing(open_store(path)) as store:
        store.commit(Writer(store, "spark-q").commit([1], query_status=strange))
        store.put_status(HOST, "feed", '{"producers": 5, "restarts": [], "error": 1}')
    asked(path, source)
