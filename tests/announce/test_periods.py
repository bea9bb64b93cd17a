"""Which periods are announced: in order, none left out, up to the bound, from where the last run ended."""

import sqlite3
import threading
import uuid
from datetime import datetime, timedelta
from itertools import islice, pairwise
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import spark_rowtime as rt
from spark_rowtime.announce.announcer import announcements
from spark_rowtime.announce.table_progress import TableProgress
from spark_rowtime.calendar import Calendar
from spark_rowtime.cli import main as command
from spark_rowtime.periods import to_unit
from spark_rowtime.store import open_store
from spark_rowtime.store.position import Position
from spark_rowtime.types.timestamps import to_micros, zone_named
from tests.announce.streams import SCHEMA, keys, more, stream_with


def hours(path: str, **options: object) -> list[str]:
    """The hours that one run announces, as times of day; days other than the first with their day."""
    return [key.removeprefix("2006-09-11T").removesuffix(":00:00") for key in keys(path, name="test", **options)]


def test_each_hour_that_the_bound_has_passed_from_that_of_the_first_row_on() -> None:
    path = stream_with("2006-09-11T09:40:00Z", "2006-09-11T09:20:00Z", bound="2006-09-11T12:00:00Z")
    assert hours(path) == ["09", "10", "11"]


def test_the_hour_of_the_bound_is_not_complete_until_the_bound_reaches_its_end() -> None:
    path = stream_with("2006-09-11T09:40:00Z", bound="2006-09-11T09:59:59.999999Z")
    assert hours(path) == []
    more(path, bound="2006-09-11T10:00:00Z")
    assert hours(path) == ["09"]


def test_a_strict_bound_is_one_microsecond_stronger() -> None:
    path = stream_with("2006-09-11T09:40:00Z")
    more(path, bound="2006-09-11T09:59:59.999998Z", strict=True)
    assert hours(path) == []
    more(path, bound="2006-09-11T09:59:59.999999Z", strict=True)
    assert hours(path) == ["09"]


def test_the_next_run_continues_and_a_jump_leaves_no_hour_out() -> None:
    path = stream_with("2006-09-11T09:40:00Z", bound="2006-09-11T11:30:00Z")
    assert hours(path) == ["09", "10"]
    assert hours(path) == []
    more(path, "2006-09-11T23:10:00Z", bound="2006-09-12T01:00:00Z")
    assert hours(path) == [*(f"{hour}" for hour in range(11, 24)), "2006-09-12T00"]


def test_a_late_joined_row_of_an_earlier_hour_counts_as_the_first_while_it_is_below_the_bound() -> None:
    """The row of 14:00 is there first; the bound passes that of 09:00 first, so the announcements begin there."""
    path = stream_with("2006-09-11T14:10:00Z")
    assert hours(path) == []
    more(path, "2006-09-11T09:10:00Z", bound="2006-09-11T10:30:00Z")
    assert hours(path) == ["09"]


def test_without_a_row_below_the_bound_there_is_no_first_hour() -> None:
    path = stream_with(bound="2006-09-11T12:00:00Z")
    assert hours(path) == []
    more(path, "2006-09-11T15:10:00Z", bound="2006-09-11T15:05:00Z")
    assert hours(path) == []
    more(path, bound="2006-09-11T16:00:00Z")
    assert hours(path) == ["15"]


@pytest.mark.parametrize("start", ["2006-09-11T07:15:00Z", rt.RowtimeBound("2006-09-11T07:00:00Z")])
def test_start_names_the_first_hour_also_without_rows(start: object) -> None:
    path = stream_with("2006-09-11T09:40:00Z", bound="2006-09-11T10:30:00Z")
    assert hours(path, start=start) == ["07", "08", "09"]
    assert hours(path, start="2006-09-11T01:00:00Z") == [], "start counts for a new name only"


@pytest.mark.parametrize(
    ("first", "expected"), [("09:40", ["09", "10"]), ("10:00", ["09", "10"]), ("10:10", ["10"]), ("11:00", ["10"])]
)
def test_where_rows_are_in_a_topic_beside_the_first_hour_is_that_of_the_first_bound(
    first: str, expected: list[str]
) -> None:
    """No row is in the stream; before the first bound nothing is known of the topic."""
    path = f"memory://{uuid.uuid4()}"
    rt.createStream(path, SCHEMA)
    assert hours(path) == []
    with rt.openSink(path, producer="feed") as sink:
        for bound in (first, "11:30"):
            sink.sendRowtimeBound(f"2006-09-11T{bound}:00Z", cut={"orders": {0: 5}})
            sink.flush()
    assert hours(path) == expected
    assert hours(path) == []
    with rt.openSink(path, producer="feed") as sink:
        sink.sendRowtimeBound("2006-09-11T13:00:00Z", cut={"orders": {0: 5}})
        sink.close(complete=True)
    assert hours(path) == ["11", "12"]


def test_in_a_copy_of_a_stream_up_to_before_its_first_bound_the_first_hour_is_that_of_the_first_row(
    tmp_path: Path,
) -> None:
    path, copy = str(tmp_path / "orders"), str(tmp_path / "copy")
    rt.createStream(path, SCHEMA)

    def opened(stream: str) -> rt.StreamSink:
        return rt.openSink(stream, producer="shop", rowsImplyBounds=False)

    with opened(path) as sink:
        sink.sendRow(("2006-09-11T09:40:00Z", 1))
        sink.flush()
        sink.sendRowtimeBound("2006-09-11T23:00:00Z")
        sink.flush()
        assert hours(path)[0] == "09"
        rt.copyStream(path, copy, until=2)  # the producer has joined, and sent the row
    with opened(copy) as sink:
        sink.sendRowtimeBound("2006-09-11T11:00:00Z")
    assert hours(copy) == ["09", "10"]


def test_latest_begins_with_the_hour_that_the_bound_has_reached() -> None:
    path = stream_with("2006-09-11T09:40:00Z", bound="2006-09-11T12:30:00Z")
    assert hours(path, start="latest") == []
    more(path, bound="2006-09-11T14:00:00Z")
    assert hours(path) == ["12", "13"]


def test_a_complete_stream_is_announced_up_to_its_last_row_and_its_last_promise() -> None:
    path = stream_with("2006-09-11T09:40:00Z", "2006-09-11T11:20:00Z", complete=True)
    assert hours(path) == ["09", "10", "11"]
    assert hours(path) == []
    promised = stream_with("2006-09-11T09:40:00Z", bound="2006-09-11T12:10:00Z")
    more(promised, complete=True)
    assert hours(promised) == ["09", "10", "11"]
    assert hours(stream_with(complete=True)) == []


@pytest.mark.parametrize("every", ["1 hour", "1 day", "1 year"])
@pytest.mark.parametrize("options", [{}, {"windowEnds": True}, {"tz": "Europe/Berlin"}, {"tz": "America/New_York"}])
def test_a_complete_stream_with_a_row_at_the_end_of_the_calendar_is_announced_up_to_it_once(
    every: str, options: dict[str, object]
) -> None:
    path = stream_with("9999-12-31T22:30:00Z", "9999-12-31T23:59:59.999998Z", complete=True)
    announced = list(
        islice(
            announcements(
                path,
                lambda _: None,
                every,
                options.get("tz"),
                "earliest",
                False,
                "test",
                {},
                ends="windowEnds" in options,
            ),
            10,
        )
    )
    rest = every != "1 hour" or options.get("tz") == "Europe/Berlin"  # where the year 10000 has begun before the end
    assert len(announced) == (1 if rest else 2)
    assert keys(path, every, name="test", **options) == []


def test_whether_hours_are_announced_before_or_after_the_end_they_are_the_same() -> None:
    paths = [stream_with("2006-09-11T09:40:00Z", bound="2006-09-11T11:10:00Z") for _ in range(2)]
    found = hours(paths[0])
    for path in paths:
        more(path, "2006-09-11T13:40:00Z", complete=True)
    assert found + hours(paths[0]) == hours(paths[1]) == ["09", "10", "11", "12", "13"]


def test_rows_at_the_end_of_their_window_belong_to_the_hour_before() -> None:
    """As the results of a query: a row at 10:00 for the hour of 09:00, and the strict bound 10:00 behind it."""
    path = stream_with("2006-09-11T10:00:00Z", bound="2006-09-11T10:00:00Z")
    assert hours(path, windowEnds=True) == []
    more(path, bound="2006-09-11T10:00:00Z", strict=True)
    assert hours(path, windowEnds=True) == ["09"]
    more(path, "2006-09-11T12:00:00Z", bound="2006-09-11T11:00:00Z", strict=True)
    assert hours(path, windowEnds=True) == ["10"]
    (reader,) = rt.describeStream(path).readers
    assert reader.unread == 1, "the row at 12:00"
    more(path, complete=True)
    assert hours(path, windowEnds=True) == ["11"]
    assert keys(path, name="other", start="2006-09-11T11:00:00Z", windowEnds=True) == ["2006-09-11T11:00:00"]


operations = st.lists(
    st.tuples(
        st.sampled_from(["row", "bound", "strict"]),
        st.integers(0, 47),
        st.sampled_from(["00:00", "10:00", "59:59.999999"]),
    ),
    max_size=12,
)


@pytest.mark.long
@settings(max_examples=15)
@given(operations=operations, ends=st.booleans(), complete=st.booleans())
def test_one_run_at_the_end_announces_what_a_run_after_each_change_does(
    operations: list[tuple[str, int, str]], ends: bool, complete: bool
) -> None:
    """Which periods are announced is a function of the log, and each follows the one before it."""
    path, found = stream_with(), []
    with rt.openSink(path, producer="random", rowsImplyBounds=False, onLate="reject") as sink:
        for kind, hour, rest in operations:
            time = f"2006-09-{11 + hour // 24}T{hour % 24:02}:{rest}Z"
            if kind == "row":
                sink.sendRow((time, 1))
            else:
                bound = rt.RowtimeBound(time, strict=kind == "strict")
                sink.sendRowtimeBound(max(bound, sink.getRowtimeBound() or bound))
            sink.flush()
            found += keys(path, name="often", windowEnds=ends)
        sink.close(complete=complete)
    found += keys(path, name="often", windowEnds=ends)
    assert found == keys(path, name="once", windowEnds=ends)
    times = [datetime.fromisoformat(key) for key in found]
    assert all(later - earlier == timedelta(hours=1) for earlier, later in pairwise(times))


def test_a_bound_in_the_year_9999_that_is_not_the_end_is_refused_and_nothing_is_announced() -> None:
    path = stream_with("2006-09-11T09:40:00Z", bound="9999-12-31T23:59:59Z")
    with pytest.raises(
        rt.InvalidOptionError, match=r"nothing from 2006-09-11T.* more than 1000000 periods of 1h.*complete=True"
    ):
        hours(path)
    assert keys(path, every="1 year", name="years")[:2] == ["2006-01-01T00:00:00", "2007-01-01T00:00:00"]


@pytest.mark.parametrize("one_train", [False, True])
def test_a_row_in_the_year_9999_is_refused_as_a_bound_there_is(one_train: bool) -> None:
    """Else each hour until then would be announced."""
    path = f"memory://{uuid.uuid4()}"
    rt.createStream(path, SCHEMA, maxAhead=None)
    with rt.openSink(path, producer="feed") as sink:
        rows = [(f"{year}-12-31T09:40:00Z", 1) for year in (2006, 9999)]
        for some in [rows] if one_train else [[row] for row in rows]:
            sink.sendRows(some)
            sink.flush()
        sink.close(complete=True)
    with pytest.raises(rt.InvalidOptionError, match=r"nothing from 2006-12-31T.* to 9999-12-31T.*, which is more than"):
        hours(path)
    assert len(keys(path, every="1 year", name="years")) == 9999 - 2005


def test_trains_that_overlap_out_of_order_leave_no_gap() -> None:
    path = f"memory://{uuid.uuid4()}"
    rt.createStream(path, SCHEMA, producers=["a", "b"])
    with rt.openSink(path, producer="a") as one, rt.openSink(path, producer="b", rowsImplyBounds=False) as other:
        one.sendRows([(f"{year}-07-01T00:00:00Z", 1) for year in range(2000, 2026)])
        one.flush()
        for year in (2024, 1999, 2001):
            other.sendRow((f"{year}-07-01T00:00:00Z", 2))
            other.flush()
        one.sendRowtimeBound("2026-01-01T00:00:00Z")
        other.sendRowtimeBound("2026-01-01T00:00:00Z")
    first = next(announcements(path, lambda _: None, "1 minute", None, "earliest", False, "minutes", {}))
    assert first.key == "1999-07-01T00:00:00"


@pytest.mark.parametrize(("bound", "first"), [("2006-09-11T10:00:00Z", "09"), ("2006-09-11T10:30:00Z", "10")])
def test_latest_begins_with_the_period_that_the_bound_is_within_or_at_the_end_of(bound: str, first: str) -> None:
    """With ``windowEnds`` a row at the end of an hour belongs to it."""
    path = stream_with("2006-09-11T08:40:00Z", bound=bound)
    assert keys(path, name="ends", start="latest", windowEnds=True) == []
    more(path, bound="2006-09-11T12:00:00.000001Z")
    assert keys(path, name="ends", windowEnds=True)[0] == f"2006-09-11T{first}:00:00"


def test_a_stream_with_rows_all_the_way_may_have_more_periods_than_may_be_empty() -> None:
    path = stream_with(*(f"{year}-07-01T00:00:00Z" for year in range(1971, 2026)), bound="2026-01-01T00:00:00Z")
    first = next(announcements(path, lambda _: None, "1 minute", None, "earliest", False, "minutes", {}))
    assert first.key == "1971-07-01T00:00:00"


def test_a_second_announcer_of_the_same_name_is_refused_another_name_is_not() -> None:
    path = stream_with("2006-09-11T09:40:00Z", bound="2006-09-11T10:00:00Z")
    refused, others = [], []

    def inside(period: rt.Period) -> None:
        with pytest.raises(
            rt.StoreUnavailableError, match=r"The announcer 'a' already runs on .*, in process \d+"
        ) as caught:
            rt.announceTo(path, print, every="1 hour", name="a")
        refused.append(caught.value)
        others.append(rt.announceTo(path, lambda _: None, every="1 hour", name="b"))

    assert rt.announceTo(path, inside, every="1 hour", name="a") == 1
    assert len(refused) == 1
    assert others == [1]


def test_one_who_finds_that_another_machine_has_announced_further_ends_and_leaves_that_position() -> None:
    """The lock is of one machine. A position that went back would announce, once more, what the other one has."""
    path = stream_with("2006-09-11T09:40:00Z", bound="2006-09-11T14:00:00Z")
    called: list[str] = []

    def elsewhere(period: rt.Period) -> None:
        called.append(period.key[11:13])
        if period.key[11:13] == "10":
            store = open_store(path)
            store.keep("announce:test", Position(store.head().seq, to_micros("2006-09-11T12:00:00Z"), None))

    with pytest.raises(rt.StoreUnavailableError, match=r"Another announcer named 'test' .* 2006-09-11T12:00:00Z"):
        rt.announceTo(path, elsewhere, every="1 hour", name="test")
    assert called == ["09", "10"]
    assert hours(path) == ["12", "13"]


def test_the_position_of_a_table_does_not_go_back_either() -> None:
    """Several machines may share the stream that keeps it."""
    kept = open_store(stream_with())
    properties = {"rowtime.bound": "2006-09-11T12:00:00Z", "rowtime.first": "2006-09-11T09:40:00Z"}
    calendar = Calendar(to_unit("1 hour"), zone_named(None), merges=False)

    def progress() -> TableProgress:
        return TableProgress(
            "t", lambda: properties, kept, calendar, "announce:t", "earliest", ends=False, wait=lambda _: None
        )

    one, other = progress(), progress()
    spans = list(one.complete(one.look()))
    assert list(other.complete(other.look())) == spans
    for span in spans[:2]:
        one.announced(span, one.look())
    with pytest.raises(rt.StoreUnavailableError, match=r"is 2006-09-11T11:00:00Z, that of this one .*T09:00:00Z"):
        other.announced(spans[0], other.look())
    one.announced(spans[2], one.look())
    position = kept.snapshot().position_of("announce:t")
    assert position is not None
    assert position.cut == to_micros("2006-09-11T12:00:00Z")


def test_a_function_that_raises_is_called_again_for_the_same_hour_by_the_next_run() -> None:
    path, calls = stream_with("2006-09-11T09:40:00Z", bound="2006-09-11T12:00:00Z"), []

    def fails_once(period: rt.Period) -> None:
        calls.append(period.key)
        if len(calls) == 2:
            raise OSError("full")

    with pytest.raises(OSError, match="full"):
        rt.announceTo(path, fails_once, every="1 hour", name="x")
    rt.announceTo(path, fails_once, every="1 hour", name="x")
    assert [key[11:13] for key in calls] == ["09", "10", "10", "11"]


def test_follow_waits_for_bounds_and_ends_with_the_stream(tmp_path: Path) -> None:
    path = stream_with("2006-09-11T09:40:00Z", bound="2006-09-11T10:00:00Z", at=tmp_path)
    found: list[str] = []
    first, done = threading.Event(), threading.Event()

    def run() -> None:
        for period in announcements(path, lambda _: None, "1 h", None, "earliest", True, "f", {}):
            found.append(period.key[11:13])
            first.set()
        done.set()

    threading.Thread(target=run, daemon=True).start()
    assert first.wait(240)
    more(path, "2006-09-11T11:40:00Z", complete=True)
    assert done.wait(240)
    assert found == ["09", "10", "11"]


def test_the_position_is_a_registered_reader_and_keeps_the_rows_of_hours_that_are_not_announced(tmp_path: Path) -> None:
    path = str(tmp_path / "s.rowtime")
    rt.createStream(path, SCHEMA, retainBytes=0)
    more(path, "2006-09-11T09:40:00Z", bound="2006-09-11T10:00:00Z")
    assert hours(path) == ["09"]
    more(path, "2006-09-11T10:40:00Z", bound="2006-09-11T11:00:00Z")
    more(path, "2006-09-11T11:40:00Z", bound="2006-09-11T12:00:00Z")
    (reader,) = rt.describeStream(path).readers
    assert reader.name == "announce:test"
    assert reader.unread == 2
    with rt.openReader(path) as rows:
        assert [r["rowtime"].hour for train in rows for r in train.rows.to_pylist()] == [10, 11]
    assert hours(path) == ["10", "11"]


def test_rows_that_were_removed_by_force_leave_no_hour_out_and_a_new_name_begins_with_what_is_left(
    tmp_path: Path,
) -> None:
    path = stream_with("2006-09-11T09:40:00Z", bound="2006-09-11T10:00:00Z", at=tmp_path)
    assert hours(path) == ["09"]
    for hour in (10, 11, 12):
        more(path, f"2006-09-11T{hour}:40:00Z", bound=f"2006-09-11T{hour + 1}:00:00Z")
    CliRunner().invoke(command, ["gc", path, "--bytes", "1", "--force"])
    more(path, "2006-09-11T14:40:00Z", bound="2006-09-11T15:00:00Z")
    assert rt.describeStream(path).removed == 4
    assert hours(path) == ["10", "11", "12", "13", "14"]
    assert [key[11:13] for key in keys(path, name="new")] == ["14"]


def test_a_run_that_cannot_keep_its_position_says_so_at_its_end(tmp_path: Path) -> None:
    """All that is complete is announced, and once more by the next run: at least once."""
    path = stream_with("2006-09-11T09:40:00Z", bound="2006-09-11T11:00:00Z", at=tmp_path)
    other, found = sqlite3.connect(Path(path) / "catalog.db", isolation_level=None), list[str]()

    def take(period: rt.Period) -> None:
        if not found:
            other.execute("BEGIN IMMEDIATE")
        found.append(period.key[11:13])

    with pytest.raises(rt.StoreUnavailableError, match="lock"):
        rt.announceTo(path, take, every="1 hour", name="test")
    assert found == ["09", "10"]
    other.close()
    assert hours(path) == ["09", "10"]
    assert hours(path) == []


def test_another_target_or_length_has_a_name_of_its_own_and_begins_again() -> None:
    path = stream_with("2006-09-11T09:40:00Z", bound="2006-09-12T00:00:00Z")
    assert rt.announceTo(path, print, every="12 hours") == 2
    assert rt.announceTo(path, print, every="12 hours") == 0
    assert rt.announceTo(path, print, every="1 day") == 1
    assert rt.announceTo(path, repr, every="12 hours") == 2
    assert rt.announceTo(path, print, every="12 hours", tz="Europe/Berlin") == 2


def test_with_longer_periods_the_day_that_was_begun_is_announced_whole() -> None:
    path = stream_with("2006-09-11T09:40:00Z", bound="2006-09-13T00:00:00Z")
    assert len(keys(path, "1 hour", name="x", start="2006-09-11T12:00:00Z")) == 36
    more(path, bound="2006-09-13T05:00:00Z")
    assert len(keys(path, "1 hour", name="x")) == 5
    more(path, bound="2006-09-15T00:00:00Z")
    assert [key[:10] for key in keys(path, "1 day", name="x")] == ["2006-09-13", "2006-09-14"]


def test_a_period_has_its_ends_in_the_zone_and_a_key_of_its_own() -> None:
    path, found = stream_with("2026-10-24T23:30:00Z", bound="2026-10-25T02:00:00Z"), []
    rt.announceTo(path, found.append, every="1 hour", tz="Europe/Berlin")
    assert [(p.key, p.start.isoformat(), p.end.isoformat()) for p in found] == [
        ("2026-10-25T01:00:00", "2026-10-25T01:00:00+02:00", "2026-10-25T02:00:00+02:00"),
        ("2026-10-25T02:00:00", "2026-10-25T02:00:00+02:00", "2026-10-25T02:00:00+01:00"),
        ("2026-10-25T02:00:00+0100", "2026-10-25T02:00:00+01:00", "2026-10-25T03:00:00+01:00"),
    ]
    assert found[0].fields()["start"] == "2026-10-25T01:00:00+02:00"


WRONG = {
    "every": {"every": "7 hours"},
    "to": {"to": "htp:https://x.example"},
    "tz": {"tz": "Europe/Berln"},
    "start": {"start": "yesterday"},
    "key": {"key": "%Y-%m-%d"},
    "headers": {"to": "http://localhost:1/", "headers": "X: 1"},
    "windowEnds": {"windowEnds": 1},
    "asset": {"asset": "orders"},
    "body": {"body": "{}"},
    "timeout": {"to": "http://localhost:1/", "timeout": "2 days"},
    "method": {"to": "http://localhost:1/", "method": "DELETE"},
    "retries": {"retries": -1},
    "follow": {"follow": "yes"},
    "name": {"name": 5},
}


@pytest.mark.parametrize("option", WRONG)
def test_a_wrong_value_blames_its_own_argument(option: str) -> None:
    path = stream_with("2006-09-11T09:40:00Z")
    arguments = {"to": print, "every": "1 hour", **WRONG[option]}
    with pytest.raises(rt.InvalidOptionError) as caught:
        rt.announceTo(path, **arguments)  # type: ignore[arg-type]
    assert caught.value.values.get("option", "tz") == option
    assert rt.describeStream(path).readers == ()
