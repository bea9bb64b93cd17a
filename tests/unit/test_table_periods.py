"""The folders of a pattern: each time is in one period, and the periods follow each other."""

from hypothesis import given
from hypothesis import strategies as st

from spark_rowtime.drain.tables.pattern import Pattern, split_pattern
from spark_rowtime.types.timestamps import END, LARGEST, LEAST, to_micros, zone_named

PATTERNS = ("%Y", "y=%Y/m=%m", "date=%Y-%m-%d", "%Y/%j", "date=%Y-%m-%d/hour=%H", "%Y%m%d/%H%M", "%Y-%j/100%%/%H")


ZONES = ("UTC", "Europe/Berlin", "Asia/Kolkata", "America/St_Johns", "Australia/Lord_Howe", "Pacific/Apia")


@given(st.sampled_from(PATTERNS), st.sampled_from(ZONES), st.integers(LEAST, LARGEST))
def test_each_time_is_in_one_period_and_the_next_one_has_another_folder(pattern: str, zone: str, time: int) -> None:
    periods = Pattern(pattern, zone_named(zone))
    period = periods.period(time)
    assert period.start <= time < period.end
    assert periods.period(max(period.start, LEAST)) == period == periods.period(period.end - 1)
    if period.end < END:
        following = periods.period(period.end)
        assert (following.start, following.folder != period.folder) == (period.end, True)


def test_a_folder_is_the_time_in_utc_and_the_last_period_ends_with_time() -> None:
    periods = Pattern("date=%Y-%m-%d/hour=%H")
    assert periods.period(to_micros("2026-01-05T23:59:59+01:00")).folder == "date=2026-01-05/hour=22"
    assert periods.period(LARGEST).end == END
    assert periods.columns == ["date", "hour"]


def test_folders_by_the_clocks_of_a_zone() -> None:
    periods = Pattern("date=%Y-%m-%d/hour=%H", zone_named("Europe/Berlin"))
    summer = periods.period(to_micros("2026-07-05T23:30:00Z"))
    assert summer.folder == "date=2026-07-06/hour=01"
    twice = periods.period(to_micros("2026-10-25T00:30:00Z"))
    assert twice.folder == "date=2026-10-25/hour=02"
    assert twice == periods.period(to_micros("2026-10-25T01:30:00Z"))
    assert twice.end - twice.start == 2 * 3_600_000_000
    days = Pattern("date=%Y-%m-%d", zone_named("Europe/Berlin"))
    assert days.period(to_micros("2026-01-05T23:30:00Z")).folder == "date=2026-01-06"


def test_the_pattern_begins_at_the_first_part_with_a_time() -> None:
    assert split_pattern("/lake/orders/date=%Y-%m-%d/hour=%H") == ("/lake/orders", "date=%Y-%m-%d/hour=%H")
    assert split_pattern("/lake/orders") == ("/lake/orders", "")
