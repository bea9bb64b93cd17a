"""What the source does between two triggers of Spark: it waits a moment for news, but not for a batch's end."""

from pathlib import Path

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable
from unit_support import new_sink, rows

import spark_rowtime as rt
from spark_rowtime.spark.offset import ALONE
from spark_rowtime.spark.options import READ, Options
from spark_rowtime.spark.source import LONGEST_WAIT_SECONDS, NEWS_WAIT_SECONDS, RowtimeStreamReader


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A stream in a directory: Spark refuses those in memory."""
    rt.createStream(str(tmp_path / "s"), "rowtime TIMESTAMP NOT NULL, ticker STRING")
    return str(tmp_path / "s")


def test_news_that_comes_while_it_waits_is_in_the_answer(path: str) -> None:
    sink = new_sink(path, "feed")
    source = RowtimeStreamReader(Options({"path": path, "bounds": "ignore"}, READ), 2)
    start, waits = source.initialOffset(), []

    def wait(seq: int, timeout: float) -> bool:
        waits.append((seq, timeout))
        if len(waits) == 2:
            sink.sendRows(rows("10:00"))
            sink.flush()
        return len(waits) == 2

    source._store.wait = wait
    nothing = source.latestOffset(start, ReadAllAvailable())
    assert (nothing, len(waits)) == (start, 1)
    seq = source._store.head().seq
    assert source.latestOffset(start, ReadAllAvailable())["seq"] == source._store.head().seq
    assert waits[1] == (seq, NEWS_WAIT_SECONDS)
    source.prepareForTriggerAvailableNow()
    source.latestOffset(source.latestOffset(start, ReadAllAvailable()), ReadAllAvailable())
    assert len(waits) == 2, "AvailableNow knows its end"


def test_the_only_source_of_a_query_waits_longer_the_longer_there_is_no_news(path: str) -> None:
    source = RowtimeStreamReader(Options({"path": path, "bounds": "ignore"}, READ), 2)
    start, waits = source.initialOffset(), []
    source._store.wait = lambda _, timeout: waits.append(timeout)
    for _ in range(8):
        assert source.latestOffset({**start, ALONE: True}, ReadAllAvailable()) == start
    assert waits == [
        0.005,
        0.01,
        0.02,
        0.04,
        0.08,
        LONGEST_WAIT_SECONDS,
        LONGEST_WAIT_SECONDS,
        LONGEST_WAIT_SECONDS,
    ]
    source.latestOffset({**start, ALONE: False}, ReadAllAvailable())
    source.latestOffset({**start, ALONE: True}, ReadAllAvailable())
    assert waits[-1] == NEWS_WAIT_SECONDS
    source.latestOffset({**start, ALONE: True}, ReadAllAvailable())
    sink = new_sink(path, "feed")
    sink.sendRows(rows("10:00"))
    sink.flush()
    here = source.latestOffset({**start, ALONE: True}, ReadAllAvailable())
    source.latestOffset({**here, ALONE: True}, ReadAllAvailable())
    assert waits[-1] == NEWS_WAIT_SECONDS
