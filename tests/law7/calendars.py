"""The time zone and the start of a schedule, close to times at which the zone's clocks change."""

from typing import NamedTuple

from tests.spark.observed_query import clock_of_micros, micros

MINUTE = 60_000_000
"""Microseconds."""


class Calendar(NamedTuple):
    """``zone``: the session's; ``start``: the first time of rows, in UTC; ``grid``: minutes between usual times."""

    zone: str = "UTC"
    start: str = "6:00"
    grid: int = 5

    @property
    def step(self) -> int:
        """The grid in microseconds."""
        return self.grid * MINUTE

    def after(self, steps: int) -> str:
        """The time this number of steps of the grid after the start."""
        return clock_of_micros(micros(self.start) + steps * self.step)

    def minutes(self, steps: int) -> str:
        """This number of steps of the grid, as an interval."""
        return f"{steps * self.grid} minutes"


UTC = Calendar()
CALENDARS = (
    *[UTC] * 8,
    Calendar("Europe/Berlin", "2006-10-29 00:30"),  # 3:00 becomes 2:00 at 1:00 UTC
    Calendar("Pacific/Chatham", "2006-03-18 13:30"),  # 3:45 becomes 2:45 at 14:00 UTC
    Calendar("America/St_Johns", "2006-10-29 02:00"),  # 0:01 becomes 23:01 of the day before at 2:31 UTC
    Calendar("Australia/Lord_Howe", "2006-04-01 14:30"),  # 2:00 becomes 1:30 at 15:00 UTC
    Calendar("Europe/Berlin", "2006-10-28 12:00", 60),
    Calendar("America/New_York", "2006-04-01 18:00", 60),  # 2:00 becomes 3:00 on the 2nd at 7:00 UTC
)
SUMMER_TIME = {calendar.zone for calendar in CALENDARS} - {"UTC"}
UNALIGNED = {"Pacific/Chatham", "America/St_Johns", "Australia/Lord_Howe"}
"""Zones whose clocks go back by a step, or at a time, that is not a whole hour."""
