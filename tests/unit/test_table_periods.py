"""The folders of a pattern: each time is in one period, and the periods follow each other."""

from hypothesis import given
from hypothesis import strategies as st

from spark_rowtime.drain.tables.pattern import Pattern, split_pattern
from spark_rowtime.types.timestamps import END, LARGEST, LEAST, to_micros

PATTERNS = ("%Y", "y=%Y/m=%m", "date=%Y-%m-%d", "%Y/%j", "date=%Y-%m-%d/hour=%H", "%Y%m%d/%H%M", "%Y-%j/100%%/%H")


@given(st.sampled_from(PATTERNS), st.integers(LEAST, LARGEST))
def test_each_time_is_in_one_period_and_the_next_one_has_another_folder(pattern: str, time: int) -> None:
    periods = Pattern(pattern)
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


def test_the_pattern_begins_at_the_first_part_with_a_time() -> None:
    assert split_pattern("/lake/orders/date=%Y-%m-%d/hour=%H") == ("/lake/orders", "date=%Y-%m-%d/hour=%H")
    assert split_pattern("/lake/orders") == ("/lake/orders", "")
