"""What a look at a stream says: the whole once, then only what has changed."""

import shutil
from pathlib import Path
from typing import Any

import pytest

import spark_rowtime as rt
from spark_rowtime.serve import state, watched
from spark_rowtime.serve.served import Served
from spark_rowtime.serve.watched import WatchedStream
from tests.failing import Failing
from tests.serve.conftest import SCHEMA


@pytest.fixture
def stream(orders: str) -> WatchedStream:
    """Looked at so far that nothing is new."""
    found = WatchedStream(orders, Served([orders]))
    found.look()
    found.look()
    return found


def names(message: Any) -> list[str]:
    return [producer["name"] for producer in message["producers"]]


def test_the_first_look_is_the_whole_and_the_second_says_why(orders: str) -> None:
    with rt.openSink(orders, producer="Oslo") as sink:
        sink.sendRow(("2026-01-05T10:00:00Z", 1))
    found = WatchedStream(orders, Served([orders]))
    first, second = found.look(), found.look()
    assert first is not None
    assert second is not None
    assert (first["full"], names(first), first["why"]) == (True, ["Berlin", "Oslo"], {})
    assert (second["full"], second["why"]["cause"]) == (False, "expected")
    assert second["details"]["columns"].startswith("rowtime")
    assert found.look() is None


def test_only_what_changed_is_said(orders: str, stream: WatchedStream) -> None:
    with rt.openSink(orders, producer="Berlin", onLate="reject") as sink:
        sink.sendRow(("2026-01-05T10:00:00Z", 1))
        sink.flush()
        message = stream.look()
        assert message is not None
        assert (message["full"], names(message), message["gone"], message["late"]) == (False, ["Berlin"], [], [])
        assert message["producers"][0]["sent"] is not None
        sink.sendRow(("2026-01-05T09:00:00Z", 1))
        sink.flush()
        message = stream.look()
        assert message is not None
        assert [row["rowtime"]["text"] for row in message["late"]] == ["2026-01-05T09:00:00Z"]
        assert message["facts"]["rejected"] == 1


@pytest.mark.parametrize("part", ["read_state", "rows_held_back"])
def test_what_lands_during_a_look_is_said_by_the_next(
    orders: str, stream: WatchedStream, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    module: Any = watched if part == "read_state" else state
    read = getattr(module, part)
    rt.closeProducer(orders, "Oslo")
    with rt.openSink(orders, producer="Berlin", onLate="reject") as sink:
        sink.sendRow(("2026-01-05T10:00:00Z", 1))
        sink.flush()

        def read_and_land(*given: Any) -> Any:
            monkeypatch.setattr(module, part, read)
            found = read(*given)
            sink.sendRow(("2026-01-05T11:00:00Z", 2))
            sink.sendRow(("2026-01-05T09:00:00Z", 3))
            sink.flush()
            return found

        monkeypatch.setattr(module, part, read_and_land)
        stream.look()
        assert [told(stream), told(stream) if stream.look() else None] == [
            ("2026-01-05T10:00:00Z", 1, 0, 0),
            ("2026-01-05T11:00:00Z", 2, 1, 1),
        ]


def told(stream: WatchedStream) -> tuple[str, int, int, int]:
    """The bound, the rows, and the rejected ones as they are counted and listed: all of one moment."""
    known = stream.whole()
    [berlin] = [one for one in known["producers"] if one["name"] == "Berlin"]
    facts = known["facts"]
    assert (facts["rows"], facts["rejected"]) == (berlin["accepted"], berlin["rejected"])
    return facts["bound"]["text"], facts["rows"], facts["rejected"], len(known["late"])


def test_of_many_late_rows_the_newest_are_kept(orders: str, stream: WatchedStream) -> None:
    with rt.openSink(orders, producer="Berlin", onLate="reject") as sink:
        sink.sendRow(("2026-01-05T10:00:00Z", 1))
        sink.sendRows([(f"2026-01-05T09:{n // 60:02}:{n % 60:02}Z", n) for n in range(200)])
    stream.look()
    late = stream.whole()["late"]
    assert len(late) == watched.LATE_ROWS
    assert late[-1]["rowtime"]["text"] == "2026-01-05T09:03:19Z"


def test_an_error_is_said_once_and_that_it_is_over(orders: str, stream: WatchedStream, tmp_path: Path) -> None:
    shutil.move(orders, tmp_path / "away")
    message = stream.look()
    assert message is not None
    assert "There is nothing at" in message["error"] or "no stream" in message["error"]
    assert stream.look() is None
    shutil.move(tmp_path / "away", orders)
    message = stream.look()
    assert message is not None
    assert message["error"] is None


def test_what_was_seen_by_a_look_that_failed_is_said_by_the_next(
    orders: str, stream: WatchedStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    with rt.openSink(orders, producer="Berlin", onLate="reject") as sink:
        sink.sendRow(("2026-01-05T10:00:00Z", 1))
        sink.sendRow(("2026-01-05T09:00:00Z", 1))
    away = rt.StoreUnavailableError("away")
    monkeypatch.setattr(stream._served, "why", Failing(stream._served.why, 1, away))
    stream._times_due = 0.0
    failed, message = stream.look(), stream.look()
    assert failed is not None
    assert message is not None
    assert (failed["error"], message["error"]) == ("away", None)
    assert [row["rowtime"]["text"] for row in message["late"]] == ["2026-01-05T09:00:00Z"]
    assert [(one["name"], one["accepted"]) for one in message["producers"]] == [("Berlin", 1), ("Oslo", 0)]


@pytest.mark.parametrize("part", ["read_state", "reasons_of", "details_of"])
def test_an_error_in_reading_is_said_once_while_it_lasts(
    stream: WatchedStream, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    def damaged(*_: Any) -> Any:
        raise rt.StoreCorruptError("damaged")

    with monkeypatch.context() as patch:
        patch.setattr(watched, part, damaged)
        stream._times_due = stream._details_due = 0.0
        message = stream.look()
        assert message is not None
        assert message["error"] == "damaged"
        assert [stream.look(), stream.look()] == [None, None]
    message = stream.look()
    assert message is not None
    assert (message["full"], message["error"], names(message)) == (True, None, ["Berlin", "Oslo"])


def test_another_stream_at_the_path_is_shown_as_a_whole(orders: str, stream: WatchedStream) -> None:
    rt.deleteStream(orders, force=True)
    rt.createStream(orders, SCHEMA, producers=["Rome"])
    message = stream.look()
    assert message is not None
    assert (message["full"], names(message)) == (True, ["Rome"])


def test_a_detached_producer_is_seen_at_once_and_a_forgotten_holder_too(orders: str, stream: WatchedStream) -> None:
    rt.detachProducer(orders, "Berlin")
    message = stream.look()
    assert message is not None
    assert [(p["name"], p["status"], p["holds"]) for p in message["producers"]] == [("Berlin", "detached", False)]
    assert message["facts"]["holders"] == ["Oslo"]
