"""The calendar: each moment is in one period, days of 23 and 25 hours, hours that occur twice, odd offsets."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

import spark_rowtime as rt
from spark_rowtime.calendar import Calendar, Span
from spark_rowtime.periods import to_unit
from spark_rowtime.types.timestamps import END, LARGEST, from_micros, to_micros

ZONES = (
    *("UTC", "Europe/Berlin", "America/New_York", "America/Havana", "America/St_Johns", "Australia/Lord_Howe"),
    *("Pacific/Chatham", "Pacific/Apia", "Asia/Kolkata", "Asia/Kathmandu", "Africa/Casablanca", "Atlantic/Azores"),
)
UNITS = ("1 s", "15 min", "30 min", "1 h", "2 h", "6 h", "1 day", "1 week", "1 month", "1 quarter", "1 year")
HOUR = timedelta(hours=1)


def calendar(every: str, zone: str, merges: bool = False) -> Calendar:
    return Calendar(to_unit(every), ZoneInfo(zone), merges=merges)


def spans(every: str, zone: str, first: str, last: str, merges: bool = False) -> list[Span]:
    """The periods from one local time to another."""
    days, at, end = calendar(every, zone, merges), to_micros(first, zone), to_micros(last, zone)
    found = []
    while at < end:
        found.append(days.holding(at))
        at = found[-1].end
    return found


def hours(span: Span) -> float:
    return (span.end - span.start) / 3.6e9


moments = st.datetimes(datetime(1990, 1, 1), datetime(2036, 12, 31), timezones=st.just(UTC))
near_changes = st.sampled_from(
    [
        *("2026-10-25T01:00:00Z", "2026-03-29T01:00:00Z", "2026-04-04T15:00:00Z", "2026-10-03T15:30:00Z"),
        *("2026-04-04T14:00:00Z", "2026-11-01T05:00:00Z", "2026-03-08T05:00:00Z", "2010-11-07T02:31:00Z"),
        *("2011-12-30T10:00:00Z", "2026-10-25T01:00:00Z", "2026-02-15T02:00:00Z"),
    ]
)
near = st.builds(
    lambda text, shift: datetime.fromisoformat(text) + shift, near_changes, st.timedeltas(-26 * HOUR, 26 * HOUR)
)
last_days = st.datetimes(datetime(9997, 12, 1), datetime.max, timezones=st.just(UTC))
any_moment = st.one_of(moments, near, last_days)


@given(moment=any_moment, zone=st.sampled_from(ZONES), every=st.sampled_from(UNITS), merges=st.booleans())
def test_partition(moment: datetime, zone: str, every: str, merges: bool) -> None:
    """Each moment lies in one period; the moments within it give the same one, and the next begins where it ends."""
    days, micros = calendar(every, zone, merges), to_micros(moment)
    span = days.holding(micros)
    assert span.start <= micros < span.end
    assert days.holding(span.start) == days.holding(span.end - 1) == days.holding((span.start + span.end) // 2) == span
    assert span.end == END or days.holding(span.end).start == span.end


@given(
    moment=st.one_of(moments, near),
    zone=st.sampled_from(ZONES),
    every=st.sampled_from(UNITS),
    ahead=st.timedeltas(0 * HOUR, 26 * HOUR),
)
def test_complete(moment: datetime, zone: str, every: str, ahead: timedelta) -> None:
    """From the end of a period on no clock time of it occurs: no row for its folder follows."""
    days = calendar(every, zone, merges=True)
    span = days.holding(to_micros(moment))
    later = (from_micros(span.end) + ahead).astimezone(ZoneInfo(zone)).replace(tzinfo=None)
    assert later >= days.unit.after(span.clock.replace(tzinfo=None))
    assert days.holding(span.end).clock.replace(tzinfo=None) > span.clock.replace(tzinfo=None)


def test_a_day_has_23_24_or_25_hours() -> None:
    assert [hours(day) for day in spans("1 day", "Europe/Berlin", "2026-03-28", "2026-03-31")] == [24, 23, 24]
    assert [hours(day) for day in spans("1 day", "Europe/Berlin", "2026-10-24", "2026-10-27")] == [24, 25, 24]


def test_a_day_of_25_hours_has_25_hours_of_one_hour_and_one_of_23_has_23() -> None:
    autumn = spans("1 h", "Europe/Berlin", "2026-10-25", "2026-10-26")
    assert [hours(span) for span in autumn] == [1] * 25
    assert [span.clock.isoformat() for span in autumn[2:4]] == [
        "2026-10-25T02:00:00+02:00",
        "2026-10-25T02:00:00+01:00",
    ]
    spring = spans("1 h", "Europe/Berlin", "2026-03-29", "2026-03-30")
    assert [hours(span) for span in spring] == [1] * 23
    assert [span.clock.hour for span in spring[:4]] == [0, 1, 3, 4]


def test_for_names_without_the_offset_the_two_hours_are_one() -> None:
    autumn = spans("1 h", "Europe/Berlin", "2026-10-25", "2026-10-26", merges=True)
    assert [hours(span) for span in autumn[:4]] == [1, 1, 2, 1]
    assert len({span.clock.hour for span in autumn}) == len(autumn) == 24


@pytest.mark.parametrize(
    ("zone", "minute"), [("Asia/Kolkata", 30), ("Asia/Kathmandu", 15), ("Pacific/Chatham", 15), ("Europe/Berlin", 0)]
)
def test_an_hour_begins_with_the_hour_of_the_zone(zone: str, minute: int) -> None:
    (hour,) = spans("1 h", zone, "2026-01-05T09:10", "2026-01-05T09:20")
    assert from_micros(hour.start).minute == minute
    assert hour.clock.strftime("%H:%M") == "09:00"


def test_clocks_that_go_back_by_half_an_hour_or_into_an_hour() -> None:
    lord_howe = spans("1 h", "Australia/Lord_Howe", "2026-04-05T00:00", "2026-04-05T03:00")
    assert [(span.clock.hour, hours(span)) for span in lord_howe] == [(0, 1), (1, 1.5), (2, 1)]
    chatham = spans("1 h", "Pacific/Chatham", "2026-04-05T02:00", "2026-04-05T05:00", merges=True)
    assert [(span.clock.hour, hours(span)) for span in chatham] == [(2, 2), (3, 1), (4, 1)]


def test_a_day_that_a_zone_skipped_does_not_exist() -> None:
    days = spans("1 day", "Pacific/Apia", "2011-12-28", "2012-01-02")
    assert [span.clock.strftime("%d") for span in days] == ["28", "29", "31", "01"]


def test_weeks_begin_on_monday_and_months_on_their_first() -> None:
    assert [s.clock.strftime("%a %d") for s in spans("1 week", "UTC", "2026-01-07", "2026-01-14")] == [
        "Mon 05",
        "Mon 12",
    ]
    assert [hours(span) / 24 for span in spans("1 month", "UTC", "2028-01-15", "2028-04-01")] == [31, 29, 31]
    assert [span.clock.month for span in spans("1 quarter", "UTC", "2026-02-01", "2027-01-01")] == [1, 4, 7, 10]


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "Pacific/Apia", "America/New_York"])
@pytest.mark.parametrize("every", UNITS)
@pytest.mark.parametrize("merges", [False, True])
def test_the_calendar_ends_with_the_year_9999(every: str, zone: str, merges: bool) -> None:
    span = calendar(every, zone, merges).holding(LARGEST)
    assert span.start <= LARGEST < span.end <= END
    assert calendar(every, zone, merges).holding(span.start - 1).end == span.start
    assert span.clock.year == 9999
    assert calendar(every, zone, merges).holding(END) == span


@given(
    moment=st.datetimes(datetime(9996, 1, 1), datetime(9998, 6, 1), timezones=st.just(UTC)),
    zone=st.sampled_from(ZONES),
    every=st.sampled_from(UNITS),
    merges=st.booleans(),
)
def test_the_last_years_are_those_of_python_as_far_as_it_knows_them(
    moment: datetime, zone: str, every: str, merges: bool
) -> None:
    days, micros = calendar(every, zone, merges), to_micros(moment)
    assert days.holding(micros) == days._period(micros)


def test_the_last_day_has_its_name() -> None:
    assert f"{calendar('1 day', 'UTC').holding(LARGEST).clock:%Y-%m-%d %a}" == "9999-12-31 Fri"
    assert f"{calendar('1 week', 'UTC').holding(LARGEST).clock:%Y-%m-%d %a}" == "9999-12-27 Mon"


@pytest.mark.parametrize(
    "every",
    ["7 h", "36 h", "2 days", "100 ms", "0 s", "90 s x", "2 months", "months", "fortnight", "-1 h", "", None, 5],
)
def test_what_is_no_period_of_a_calendar_is_refused(every: object) -> None:
    with pytest.raises(rt.InvalidOptionError) as caught:
        to_unit(every)
    assert caught.value.values["option"] == "every"


def test_the_forms_of_a_unit() -> None:
    texts = (
        "3600 s",
        "1 hour",
        timedelta(hours=1),
        "60 min",
        "24 hours",
        "7 days",
        "1 month",
        "quarter",
        "1 Year",
        "hour",
    )
    assert [to_unit(text).name for text in texts] == [
        "1h",
        "1h",
        "1h",
        "1h",
        "1d",
        "1w",
        "1month",
        "1quarter",
        "1year",
        "1h",
    ]
