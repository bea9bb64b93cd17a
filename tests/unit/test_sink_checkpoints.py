"""A sink's checkpoints: what they make visible, and what is dropped without them."""

import contextlib

from sink_support import LINGER, everything, producer
from unit_support import HOUR, accepted, new_sink, row, rows, stream_floor, us, when


def test_with_a_checkpoint_only_flush_makes_visible(path, clock):
    sink = new_sink(path, "P", now=clock, linger=LINGER, maxTrainRows=2)
    assert sink.checkpoint is None
    sink.sendRow(row("10:00"))
    sink.flush(checkpoint="one")
    assert sink.checkpoint == "one"
    clock.advance(HOUR)
    sink.sendRows(rows("10:01", "10:02", "10:03"))
    sink.sendRowtimeBound(when("10:30"))
    clock.advance(HOUR)
    sink.sendRow(row("10:40"))
    assert accepted(path) == ["10:00"]
    assert stream_floor(path) == us("10:00")
    sink.flush(checkpoint="two")
    assert accepted(path) == ["10:00", "10:01", "10:02", "10:03", "10:40"]
    assert producer(path, "P").checkpoint == "two"


def test_a_checkpoint_is_stored_with_nothing_to_commit(path):
    sink = new_sink(path, "P")
    sink.flush(checkpoint="zero")
    assert producer(path, "P").checkpoint == "zero"
    assert new_sink(path, "P").checkpoint == "zero"


def test_an_empty_checkpoint_is_one(path):
    new_sink(path, "P").flush(checkpoint="")
    again = new_sink(path, "P")
    assert again.checkpoint == ""
    again.sendRow(row("10:00"))
    assert accepted(path) == []


def test_closing_lands_what_came_after_the_checkpoint(path):
    """The feed is complete: its end must not be lost because no checkpoint followed it."""
    with new_sink(path, "P") as sink:
        sink.sendRow(row("10:00"))
        sink.flush(checkpoint="1")
        sink.sendRow(row("10:01"))
        sink.sendRows(rows("10:02"))
        sink.sendRow(row("10:03"))
        assert accepted(path) == ["10:00"]
    assert accepted(path) == ["10:00", "10:01", "10:02", "10:03"]
    assert producer(path, "P").checkpoint == "1"


def test_flush_without_a_checkpoint_lands_and_leaves_the_stored_one(path):
    sink = new_sink(path, "P")
    sink.flush(checkpoint="1")
    sink.sendRow(row("10:01"))
    sink.flush()
    assert accepted(path) == ["10:01"]
    assert (sink.checkpoint, producer(path, "P").checkpoint) == ("1", "1")


def test_a_restart_resumes_where_the_checkpoint_says(path):
    first = new_sink(path, "P", linger=LINGER)
    first.sendRow(row("10:00"))
    first.flush(checkpoint="1")
    first.sendRow(row("10:01", "lost with the process"))
    first.abandon()
    second = new_sink(path, "P", linger=LINGER)
    assert second.checkpoint == "1"
    second.sendRow(row("10:01", "sent again"))
    assert accepted(path) == ["10:00"]
    second.flush(checkpoint="2")
    assert everything(path) == [("10:00", "X"), ("10:01", "sent again")]


def test_leaving_the_block_by_an_exception_after_a_checkpoint_drops_what_came_after_it(path):
    with contextlib.suppress(ZeroDivisionError), new_sink(path, "P") as sink:
        sink.flush(checkpoint="0")
        sink.sendRow(row("10:00"))
        raise ZeroDivisionError
    assert accepted(path) == []


def test_abandoning_after_a_checkpoint_records_what_was_rejected(path, clock):
    sink = new_sink(path, "feed", now=clock, linger=HOUR, onLate="reject")
    sink.sendRow(row("10:00"))
    sink.flush(checkpoint="1")
    sink.sendRow(row("10:05"))
    sink.sendRow(row("9:00"))
    sink.abandon()
    assert accepted(path) == ["10:00"]
    assert (producer(path, "feed").accepted, producer(path, "feed").rejected) == (1, 1)
