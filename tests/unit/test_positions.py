"""Positions that meet other options, or another log, than those they were made with."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import spark_rowtime as rt
from spark_rowtime.reader import reader as reading
from spark_rowtime.reader.release import Release
from spark_rowtime.spark.options import READ, Options
from spark_rowtime.spark.source import RowtimeStreamReader
from spark_rowtime.store import open_store
from tests.streams import at, bound, opened, send

Sources = Callable[..., RowtimeStreamReader]


@pytest.fixture
def path(tmp_path: Path) -> str:
    path = str(tmp_path / "s.rowtime")
    rt.createStream(path, "rowtime TIMESTAMP NOT NULL, n INT")
    return path


def minutes(sink: Any, *numbers: int) -> None:
    """A row per number, at that minute past ten, each a commit."""
    for n in numbers:
        send(sink, (f"10:{n:02d}", n))


@pytest.fixture
def source(path: str) -> Iterator[Sources]:
    """Spark's source of the stream with these options, as often as it is called."""
    made: list[RowtimeStreamReader] = []

    def make(**options: str) -> RowtimeStreamReader:
        made.append(RowtimeStreamReader(Options({"path": path, "bounds": "ignore", **options}, READ), 2))
        return made[-1]

    yield make
    for reader in made:
        reader.stop()


def read(reader: RowtimeStreamReader, start: Any, end: Any) -> list[int]:
    parts = reader.partitions(start, end)
    return [n for part in parts for rows in reader.read(part) for n in rows.column("n").to_pylist()]


def step(reader: RowtimeStreamReader, start: Any) -> Any:
    return reader.next(start, unlimited=True)


def test_a_starting_time_is_that_of_the_first_run(path: str, source: Sources) -> None:
    sink = opened(path, "feed")
    minutes(sink, 0, 1, 2)
    first = source(startingPosition=at("10:01"))
    begin = first.initialOffset()
    end = step(first, begin)
    assert read(first, begin, end) == [1, 2]
    minutes(sink, 3, 4, 5)
    again = source(startingPosition=at("10:05"))
    assert read(again, begin, end) == [1, 2], "a batch that is run again is the same"
    assert read(again, end, step(again, end)) == [3, 4, 5]
    whole = source(startingPosition="earliest")
    assert read(whole, whole.initialOffset(), step(whole, whole.initialOffset())) == [0, 1, 2, 3, 4, 5]


def test_a_checkpoint_of_before_has_the_option(path: str, source: Sources) -> None:
    minutes(opened(path, "feed"), 0, 1, 2)
    reader = source(startingPosition=at("10:01"))
    begin = {name: value for name, value in reader.initialOffset().items() if name != "since"}
    assert read(reader, begin, step(reader, begin)) == [1, 2]


@pytest.mark.parametrize("order", ["rowtime", "arrival"])
@pytest.mark.parametrize("grown", [0, 2, 3, 9], ids=["as it was", "shorter", "as long", "longer"])
def test_an_older_copy_of_the_stream_is_no_place_to_go_on(
    path: str, source: Sources, tmp_path: Path, grown: int, order: str
) -> None:
    """Also where it has grown since: the same rows may come again, in other commits."""
    sink = opened(path, "feed")
    minutes(sink, 0, 1)
    sink.close()
    shutil.copytree(path, tmp_path / "copy")
    with opened(path, "feed") as sink:
        minutes(sink, 2, 3, 4)
    reader = source(order=order)
    begin = reader.initialOffset()
    end = step(reader, begin)
    with rt.openReader(path, order=order) as followed:
        list(followed)
        position = followed.position
    reader.stop()
    shutil.rmtree(path)
    shutil.move(tmp_path / "copy", path)
    with opened(path, "feed") as sink:
        minutes(sink, *range(2, 2 + grown))
    calls = [lambda r: r.partitions(begin, end)] + [lambda r: step(r, end)] * (grown != 3)
    for call in calls:
        with pytest.raises(rt.DataLostError, match="older"):
            call(source(order=order))
    with rt.openReader(path, order=order, start=position) as followed:
        if grown == 3:
            assert list(followed) == [], "nothing is read, and nothing skipped, before the next event"
            minutes(opened(path, "feed"), 5)
        with pytest.raises(rt.DataLostError, match="older"):
            list(followed)


HELD = [
    ({"order": "rowtime", "hold": "3 minutes"}, {"order": "rowtime"}),
    ({"order": "arrival", "hold": "3 minutes"}, {"order": "arrival"}),
    ({"order": "rowtime", "maxRowsPerTrigger": "2"}, {"order": "rowtime"}),
    ({"order": "rowtime", "hold": "3 minutes"}, {"order": "rowtime", "maxRowsPerTrigger": "1"}),
]


@pytest.mark.parametrize(("before", "after"), HELD)
def test_what_was_held_back_comes_once_hold_is_gone(
    path: str, source: Sources, before: dict[str, str], after: dict[str, str]
) -> None:
    minutes(opened(path, "feed"), 0, 1, 2, 3, 4, 5)
    first, then = source(**before), source(**after)
    at_ = first.initialOffset()
    end = first.next(at_, unlimited=False)
    found = read(first, at_, end)
    assert found
    assert len(found) < 6
    while (to := then.next(end, unlimited=False)) != end:
        found += read(then, end, to)
        end = to
    assert sorted(found) == [0, 1, 2, 3, 4, 5]


def test_limits_after_hold_hand_out_no_row_twice(path: str) -> None:
    minutes(opened(path, "feed", rowsImplyBounds=False), 9, 1, 2, 3, 4, 5)
    store = open_store(path)
    found: list[int] = []
    position = Release("arrival", hold=60_000_000, max_rows=2).earliest(store)
    for how in (Release("arrival", hold=60_000_000, max_rows=2), Release("arrival", max_rows=1)):
        while (to := how.step(store, position)) != position:
            for piece in how.slices(store, position, to):
                found += how.rows(store, piece, position, to).column("n").to_pylist()
            position = to
    assert sorted(found) == [1, 2, 3, 4, 5, 9]
    store.close()


@pytest.mark.parametrize("order", ["arrival", "rowtime"])
def test_a_reader_takes_no_more_bytes_at_once_than_fit_into_a_batch(
    path: str, monkeypatch: pytest.MonkeyPatch, order: str
) -> None:
    minutes(opened(path, "feed"), *range(20))
    monkeypatch.setattr(reading, "TRAIN_BYTES", 1)
    with rt.openReader(path, order=order) as reader:
        trains = [train.rows.column("n").to_pylist() for train in reader if train.rows.num_rows]
    assert len(trains) > 10
    assert [n for train in trains for n in train] == list(range(20))


@pytest.mark.parametrize("number", [10**30, -(10**30), True, 1.5])
def test_numbers_that_no_position_has(path: str, number: Any) -> None:
    minutes(opened(path, "feed"), 0)
    with rt.openReader(path) as reader:
        position = reader.position
    with pytest.raises(rt.InvalidOptionError, match="not a position"):
        rt.openReader(path, start=position.replace('"seq": 0', f'"seq": {str(number).lower()}'))


def test_a_bound_is_taken_where_a_time_is(path: str, source: Sources) -> None:
    """As train.bound and currentRowtimeBound() give it; Spark passes options on as text."""
    with opened(path, "feed") as feed:
        minutes(feed, 0, 1, 2)
        feed.sendRowtimeBound(bound("10:02", strict=True))
        assert feed.getRowtimeBound() == bound("10:02", strict=True)
    strict = bound("10:00", strict=True)
    with rt.openReader(path, start=strict) as one, rt.openReader(path, start=str(strict)) as other:
        assert [train.rows.column("n").to_pylist() for train in (*one, *other)] == [[1, 2]] * 2
    reader = source(startingPosition=str(strict))
    begin = reader.initialOffset()
    assert read(reader, begin, step(reader, begin)) == [1, 2]
    with rt.openSink(path, producer="next") as sink, pytest.raises(rt.InvalidOptionError, match="is already a bound"):
        sink.sendRowtimeBound(bound("10:30"), strict=True)


def test_progress_says_why_nobody_holds_the_clock(path: str, source: Sources) -> None:
    def held_by() -> str:
        held: str = source().reportLatestOffset()["metrics"]["clockHeldBy"]
        assert held == rt.describeStream(path).waitsFor
        return held

    assert held_by() == f"nobody: no producer has been attached to {path} yet"
    feed, other = opened(path, "feed"), opened(path, "other")
    send(feed, promise="10:00")
    send(other, promise="11:00")
    assert held_by() == "feed"
    feed.close()
    other.abandon()
    store = open_store(path)
    store.detach("other")
    store.close()
    assert held_by() == (
        f"nobody: of the producers of {path} 'other' was detached, 'feed' has left; the bound stays as it is "
        "until one sends"
    )


def test_hold_that_is_added_to_a_position_without_it_is_refused(path: str, source: Sources) -> None:
    """All rows up to the position have been handed out: there is nothing that could be held."""
    minutes(opened(path, "feed"), 0, 1)
    reader = source()
    end = step(reader, reader.initialOffset())
    with pytest.raises(rt.InvalidOptionError, match=r"hold \(0:01:00\) was added"):
        step(source(hold="1 minute"), end)
    with rt.openReader(path, order="arrival") as rows:
        rows.read()
        position = rows.position
    with (
        rt.openReader(path, order="arrival", hold="1 minute", start=position) as rows,
        pytest.raises(rt.InvalidOptionError, match="new checkpoint"),
    ):
        rows.read()


def test_hold_may_be_taken_back_and_stay_to_the_end_of_a_stream(path: str, source: Sources) -> None:
    sink = opened(path, "feed")
    minutes(sink, 0, 1, 2)
    held = source(hold="1 minute")
    begin = held.initialOffset()
    end = step(held, begin)
    assert read(held, begin, end) == [0, 1]
    without = source()
    assert read(without, end, step(without, end)) == [2]
    sink.close(complete=True)
    last = step(held, end)
    assert read(held, end, last) == [2]
    assert step(held, last) == last


def test_hold_and_a_limit_read_a_complete_stream_to_its_end(path: str, source: Sources) -> None:
    """No row is held at the end of time, so the steps before the end have no cut."""
    sink = opened(path, "feed")
    held = source(hold="1 hour", maxRowsPerTrigger="1")
    at = held.initialOffset()
    for minute in range(4):
        minutes(sink, minute)
    sink.close(complete=True)
    found: list[int] = []
    while (end := held.next(at, unlimited=False)) != at:
        found += read(held, at, end)
        at = end
    assert found == [0, 1, 2, 3]
