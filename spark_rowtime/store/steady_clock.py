"""A monotonic clock for leases, idleness and the ages of retention."""

import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

from spark_rowtime.types.timestamps import wall_clock

COPIED = "copied"
"""Stands for the boot of the readings in a copy: its uptime goes on when the copy is opened, or first written to."""
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class Reading(NamedTuple):
    """A clock reading in microseconds. Readings with the same ``boot`` are comparable across a machine's processes."""

    boot: str
    micros: int


def machine_reading() -> Reading:
    """Returns how long the machine has run, without the time it was suspended. Nobody can set this clock."""
    return Reading(boot_id(), time.monotonic_ns() // 1000)


def reading(now: Callable[[], int], steady: Callable[[], Reading]) -> Reading:
    """Returns the reading of ``steady``; if the caller replaced only the wall clock, the reading of that one."""
    if steady is machine_reading and now is not wall_clock:
        return Reading("", now())
    return steady()


def elapsing(now: Callable[[], int]) -> Callable[[], int]:
    """Returns the clock by which a process measures how much time has passed: the monotonic one, in microseconds.

    If the caller replaced the wall clock ``now``, it is that one.
    """
    return _monotonic if now is wall_clock else now


def _monotonic() -> int:
    return time.monotonic_ns() // 1000


@cache
def boot_id() -> str:
    """Returns the id of the current boot; empty if the system has none. A smaller reading then shows a reboot."""
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:
        return ""
