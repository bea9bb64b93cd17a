"""Messages of the year 9999 in a topic: no row of them lands, and no bound, so that nothing becomes late by them."""

from types import SimpleNamespace
from typing import Any

import pytest
from kafka_support import P0, P1
from unit_support import clock_times, new_stream, row, when

import spark_rowtime as rt
from spark_rowtime.kafka.checkpoint import Checkpoint
from spark_rowtime.kafka.partition_feed import PartitionFeed
from spark_rowtime.kafka.topics import Part

FAR = "9999-01-01T00:00:00Z"


def feed(path: str, part: Part, **order: Any) -> PartitionFeed:
    """The feed of a partition whose messages are rows and bounds themselves."""
    options = {"lease": None, "onLate": "reject", "linger": "1 hour", **order}
    with rt.openSink(path, producer=part.producer, **options) as sink:
        sink.flush(checkpoint=Checkpoint("abc", 0).text())
    return PartitionFeed(part, lambda: rt.openSink(path, producer=part.producer, **options), lambda m: m.value(), None)


def messages(*values: Any) -> list[Any]:
    return [
        SimpleNamespace(offset=lambda at=at: at, value=lambda value=value: value, leader_epoch=lambda: None)
        for at, value in enumerate(values)
    ]


def test_a_far_row_is_rejected_and_its_partition_goes_on() -> None:
    path = new_stream()
    one, other = feed(path, P0), feed(path, P1)
    for each in (one, other):
        each.take(messages(row("9:00"), {"rowtime": FAR, "ticker": "X"}, row("9:30")))
        each.flush()
    info = rt.describeStream(path)
    assert (info.rows, info.rejected, info.bound) == (4, 2, rt.RowtimeBound(when("9:30")))
    assert [entry["reason"] for entry in rt.rejectedRows(path).to_pylist()] == ["ahead", "ahead"]
    with rt.openReader(path, order="arrival") as reader:
        assert [time for train in reader for time in clock_times(train.rows)] == ["09:00", "09:30"] * 2
    for each in (one, other):
        each.drop()


def test_a_far_bound_moves_nothing_and_its_partition_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    path = new_stream()
    change_feed = feed(path, P0, rowsImplyBounds=False)
    change_feed.take(messages(row("9:00"), rt.RowtimeBound(FAR)))
    change_feed.flush()
    assert rt.describeStream(path).bound is None
    assert "offset 2 of partition 0 of topic orders promises nothing" in caplog.text
    change_feed.take(messages(None, None, rt.RowtimeBound(FAR), row("9:30"), rt.RowtimeBound(when("9:20"))))
    change_feed.flush()
    change_feed.drop()
    assert rt.describeStream(path).bound == rt.RowtimeBound(when("9:20"))
    assert rt.describeStream(path).rows == 2
    assert caplog.text.count("promises nothing") == 1
