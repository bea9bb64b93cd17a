"""A clock that does not jump, for leases, idleness and the ages of retention."""

import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

from spark_rowtime.types.timestamps import wall_clock

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class Reading(NamedTuple):
    """A reading in microseconds. Readings of one ``boot`` can be compared, in all processes of one machine."""

    boot: str
    micros: int


def machine_reading() -> Reading:
    """How long the machine has run, without the time that it was suspended. Nobody can set this clock."""
    return Reading(_boot(), time.monotonic_ns() // 1000)


def reading(now: Callable[[], int], steady: Callable[[], Reading]) -> Reading:
    """What ``steady`` says; where a caller gave only a wall clock of its own, that one."""
    if steady is machine_reading and now is not wall_clock:
        return Reading("", now())
    return steady()


@cache
def _boot() -> str:
    """The id of this start of the system; empty where it has none, and a smaller reading tells the next start."""
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:
        return ""
