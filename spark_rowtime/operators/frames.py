"""Frames: which rows count for a row. Times are microseconds, a number or a numpy array of them."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from spark_rowtime.operators.places import Places, Ranges

Micros = npt.NDArray[np.int64]
Time = TypeVar("Time", int, Micros)

MINUTE_MICROS = 60_000_000


class Frame(ABC):
    """Which rows of its key count for a row, and how long an earlier row is kept for later ones.

    Laws: ``since`` never falls as t grows, so with floor f no row before ``since(f)`` counts again;
    ``since(f) >= end`` exactly when ``f >= free_at(end)``, for the end of a slot.
    """

    following: int = 0
    """How long after a row others still count for it. The row is complete when the floor has passed that."""
    in_sequence: bool = False
    """Whether rows of one time count one after the other, so that their order must be the same each time."""
    last_rows: int | None = None
    """Where not time but a number of rows says what is kept: so many of each key."""

    @property
    @abstractmethod
    def slot(self) -> int:
        """How much time one entry of the state covers."""

    @abstractmethod
    def since(self, t: Time) -> Time:
        """The least time that counts for a row at ``t``."""

    @abstractmethod
    def free_at(self, end: int) -> int:
        """The floor from which on rows before ``end`` never count again."""

    def ranges(self, places: Places) -> Ranges:
        """The range of rows that counts for each row: all from ``since(t)`` to ``following`` after t."""
        return places.between(self.since(places.times), places.times + self.following)


@dataclass(frozen=True)
class Sliding(Frame):
    """The last ``interval`` before each row, and ``following`` after it."""

    interval: int
    following: int = 0

    @property
    def slot(self) -> int:
        """An eighth: the state outlives the interval by no more than that."""
        return max(1, (self.interval + self.following) // 8)

    def since(self, t: Time) -> Time:
        """``interval`` earlier."""
        return t - self.interval

    def free_at(self, end: int) -> int:
        """``interval`` later."""
        return end + self.interval


@dataclass(frozen=True)
class LastRows(Frame):
    """The last ``count`` rows, each row itself among them. The last rows of a key are kept for good."""

    count: int
    in_sequence = True

    @property
    def slot(self) -> int:
        """For rows that wait until they are complete."""
        return MINUTE_MICROS

    @property
    def last_rows(self) -> int:  # type: ignore[override]
        """What the next row of a key may need."""
        return self.count - 1

    def since(self, t: Time) -> Time:
        """No time is too long ago."""
        return t - t

    def free_at(self, end: int) -> int:
        """Never asked: what is kept is not kept by time."""
        raise NotImplementedError

    def ranges(self, places: Places) -> Ranges:
        """By place, not by time."""
        return places.last(self.count)


@dataclass(frozen=True)
class Cascading(Frame):
    """From the start of the row's own window, which is ``size`` long; windows start at ``origin`` + n * size."""

    size: int
    origin: int = 0

    @property
    def slot(self) -> int:
        """A window: its rows are needed together, and are freed together."""
        return self.size

    def since(self, t: Time) -> Time:
        """The start of the window."""
        return t - (t - self.origin) % self.size

    def free_at(self, end: int) -> int:
        """The end of the window in which the last row before ``end`` is."""
        return self.since(end - 1) + self.size
