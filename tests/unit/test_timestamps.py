"""Times and intervals in microseconds UTC."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit_support import us, when

from spark_rowtime import InvalidOptionError
from spark_rowtime.types.timestamps import LARGEST, LEAST, check_range, from_micros, show_micros, to_interval, to_micros

NOON = us("12:00")


@given(st.integers(LEAST, LARGEST))
def test_micros_go_round(micros):
    assert to_micros(from_micros(micros)) == micros
    assert to_micros(show_micros(micros)) == micros
    assert to_micros(pa.scalar(micros, pa.timestamp("us"))) == micros


@given(st.datetimes(datetime(1971, 1, 1), datetime(2100, 1, 1)), st.sampled_from(["Europe/Berlin", "Asia/Kolkata"]))
def test_a_naive_time_is_in_tz_an_aware_one_is_not(naive, zone):
    aware = naive.replace(tzinfo=ZoneInfo(zone))
    assert to_micros(naive, zone) == to_micros(naive, ZoneInfo(zone)) == to_micros(aware)
    assert to_micros(aware, "America/New_York") == to_micros(aware)
    assert to_micros(naive) == to_micros(naive.replace(tzinfo=UTC))


@pytest.mark.parametrize(
    "t",
    [
        "2006-09-11T12:00:00Z",
        "2006-09-11T12:00:00",
        "2006-09-11 12:00",
        " 2006-09-11T14:00:00+02:00 ",
        datetime(2006, 9, 11, 12),
        pd.Timestamp("2006-09-11T12:00:00"),
        pd.Timestamp("2006-09-11T14:00:00", tz="Europe/Berlin"),
        pa.scalar(NOON // 1_000_000, pa.timestamp("s")),
        pa.scalar(NOON // 1_000, pa.timestamp("ms", "Asia/Tokyo")),
        pa.scalar(NOON * 1_000, pa.timestamp("ns")),
    ],
    ids=repr,
)
def test_forms(t):
    assert to_micros(t) == NOON


@pytest.mark.parametrize(
    "t",
    [
        "2006-09-11T12:00:00.000001999Z",
        pd.Timestamp("2006-09-11T12:00:00.000001999"),
        pa.scalar(NOON * 1_000 + 1_999, pa.timestamp("ns")),
        pa.scalar(NOON * 1_000 + 1_999, pa.timestamp("ns", "UTC")),
    ],
    ids=repr,
)
def test_finer_digits_are_cut_off_towards_the_past(t):
    assert to_micros(t) == NOON + 1


@pytest.mark.parametrize(
    "t",
    [
        None,
        12,
        1.5,
        True,
        b"2006-09-11",
        date(2006, 9, 11),
        timedelta(1),
        "",
        "noon",
        "2006-13-01",
        pd.NaT,
        pa.scalar(None, pa.timestamp("us")),
        pa.scalar(5),
        pa.scalar(5, pa.duration("us")),
        pa.scalar(5, pa.date32()),
    ],
    ids=repr,
)
def test_what_is_no_time(t):
    with pytest.raises(InvalidOptionError, match=r"not a time|the time is missing|out of the range of times"):
        to_micros(t)


@pytest.mark.parametrize(
    "t",
    [
        datetime.fromtimestamp(0, UTC),
        datetime(1969, 7, 20, 20, 17, tzinfo=UTC),
        datetime.min,
        datetime.max,
        datetime.min.replace(tzinfo=ZoneInfo("Asia/Tokyo")),
        datetime.max.replace(tzinfo=ZoneInfo("America/New_York")),
        "0001-01-01T00:00:00+14:00",
        pa.scalar(-1, pa.timestamp("us")),
    ],
    ids=repr,
)
def test_what_is_out_of_range(t):
    with pytest.raises(InvalidOptionError, match="later than 1970"):
        to_micros(t)


def test_an_arrow_time_beyond_all_years():
    with pytest.raises(InvalidOptionError, match="out of the range of times"):
        to_micros(pa.scalar(10**15, pa.timestamp("s")))


def test_the_ends_of_the_range():
    assert to_micros("1970-01-01T00:00:00.000001Z") == LEAST
    assert to_micros("9999-12-31T23:59:59.999998Z") == LARGEST
    for beyond in (LEAST - 1, LARGEST + 1):
        with pytest.raises(InvalidOptionError, match="this one"):
            check_range(beyond, "this one")


@pytest.mark.parametrize("tz", ["Mars/Olympus", "", "../etc", "Europe", 5])
def test_what_is_no_zone(tz):
    with pytest.raises(InvalidOptionError, match="time zone"):
        to_micros("2006-09-11T12:00", tz)


def test_show():
    assert show_micros(None) == "none"
    assert show_micros(NOON) == "2006-09-11T12:00:00Z"
    assert show_micros(NOON + 1) == "2006-09-11T12:00:00.000001Z"
    assert from_micros(NOON) == when("12:00")


@pytest.mark.parametrize(
    ("text", "micros"),
    [
        ("1 us", 1),
        ("100 ms", 100_000),
        ("1.5s", 1_500_000),
        ("2 min", 120_000_000),
        ("1 hour", 3_600_000_000),
        ("1 hour 30 minutes", 5_400_000_000),
        ("1 day", 86_400_000_000),
        ("1 WEEK", 604_800_000_000),
        ("INTERVAL 2 hours", 7_200_000_000),
        ("0 s", 0),
        (timedelta(hours=1, microseconds=1), 3_600_000_001),
        (None, None),
    ],
)
def test_intervals(text, micros):
    assert to_interval(text, "it") == micros


@given(st.timedeltas(timedelta(0), timedelta(days=9999)))
def test_a_timedelta_is_exact(delta):
    assert timedelta(microseconds=to_interval(delta, "it")) == delta


@pytest.mark.parametrize(
    "text",
    ["", "hour", "1", "1 month", "1 fortnight", "1 hour and 5 min", "one hour", 5, True, b"1 hour", "9" * 400 + " h"],
)
def test_what_is_no_interval(text):
    with pytest.raises(InvalidOptionError, match=r"linger=.*not an interval"):
        to_interval(text, "linger")


@pytest.mark.parametrize("negative", ["-1 hour", timedelta(seconds=-1), "1 min -2 min"])
def test_a_negative_interval(negative):
    with pytest.raises(InvalidOptionError, match="linger must not be negative"):
        to_interval(negative, "linger")
