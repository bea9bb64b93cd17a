"""What the source answers to the question whether there are news, and which rows its own wait may miss: none."""

import threading
from pathlib import Path

import pytest
from unit_support import asked, new_sink, rows

import spark_rowtime as rt
from spark_rowtime.spark.event_wait import EventWait
from spark_rowtime.spark.options import READ, Options
from spark_rowtime.spark.source import RowtimeStreamReader


@pytest.fixture
def paths(tmp_path: Path) -> list[str]:
    """Two streams in directories: Spark refuses those in memory."""
    for name in ("one", "two"):
        rt.createStream(str(tmp_path / name), "rowtime TIMESTAMP NOT NULL, ticker STRING")
    return [str(tmp_path / "one"), str(tmp_path / "two")]


def source_of(path: str) -> RowtimeStreamReader:
    return RowtimeStreamReader(Options({"path": path, "bounds": "ignore"}, READ), 2)


def has_news(source: RowtimeStreamReader, seconds: float, *others: str) -> object:
    return asked(source, {}, "news", seconds=seconds, streams=list(others))


def send(path: str) -> None:
    with new_sink(path, "feed") as sink:
        sink.sendRows(rows("10:00"))


def test_news_is_what_the_last_answer_did_not_know(paths: list[str]) -> None:
    source = source_of(paths[0])
    start = source.initialOffset()
    assert source.next(start, unlimited=True) == start
    assert not has_news(source, 0)
    send(paths[0])
    assert has_news(source, 3600)
    assert has_news(source, 3600), "it has not been asked for them"
    here = source.next(start, unlimited=True)
    assert here != start
    assert not has_news(source, 0)
    source.stop()


def test_news_of_a_stream_beside_ends_the_wait_too(paths: list[str]) -> None:
    source = source_of(paths[0])
    source.next(source.initialOffset(), unlimited=True)
    assert has_news(source, 60, paths[1]), "they are new to it"
    while has_news(source, 0.1, paths[1]):
        pass
    sending = threading.Thread(target=send, args=[paths[1]])
    sending.start()
    assert has_news(source, 60, paths[1])
    sending.join()
    source.stop()


def test_a_stream_that_is_gone_is_news(tmp_path: Path) -> None:
    news = EventWait([str(tmp_path / "none")])
    assert news.wait(240), "its own source shows the error"
    news.close()


def test_an_event_that_comes_as_a_wait_ends_is_seen_by_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    news = EventWait([])
    wait = news._found.wait

    def ended_too_early(seconds: float) -> bool:
        found = wait(seconds)
        news._found.set()
        return found

    monkeypatch.setattr(news._found, "wait", ended_too_early)
    assert not news.wait(0)
    monkeypatch.undo()
    assert news.wait(0)
