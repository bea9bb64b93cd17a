"""Frames: which rows count for a row. Times are in microseconds, either a number or a numpy array."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from spark_rowtime.operators.sorted_rows import Ranges, SortedRows
from spark_rowtime.types.timestamps import MINUTE_MICROS

Micros = npt.NDArray[np.int64]
Time = TypeVar("Time", int, Micros)


class Frame(ABC):
    """Defines which rows of its key count for a row, and how long an earlier row is kept for later rows.

    Laws: ``since`` never falls as t grows, so with floor f no row before ``since(f)`` counts again. For the
    end of a slot, ``since(f) >= end`` exactly when ``f >= free_at(end)``.
    """

    following: int = 0
    """For how long after a row later rows count for it. The row is complete when the floor has passed that time."""
    in_sequence: bool = False
    """Whether rows of one time count one after the other, so that their order must always be the same."""
    last_rows: int | None = None
    """The number of rows of each key that are kept, if a number of rows and not a time decides that."""

    @property
    @abstractmethod
    def slot(self) -> int:
        """How many microseconds one entry of the state covers."""

    @abstractmethod
    def since(self, t: Time) -> Time:
        """Returns the least time that counts for a row at ``t``."""

    @abstractmethod
    def free_at(self, end: int) -> int:
        """Returns the floor from which on rows before ``end`` never count again."""

    def ranges(self, places: SortedRows) -> Ranges:
        """Returns the range of rows that counts for each row: all from ``since(t)`` to t + ``following``."""
        return places.between(self.since(places.times), places.times + self.following)


@dataclass(frozen=True)
class Sliding(Frame):
    """A frame of the rows in the last ``interval`` before each row, and in ``following`` after it."""

    interval: int
    following: int = 0

    def __str__(self) -> str:
        return f"rows of the last {self.interval}L and the next {self.following}L"

    @property
    def slot(self) -> int:
        """An eighth of the frame: the state is kept longer than needed by no more than that."""
        return max(1, (self.interval + self.following) // 8)

    def since(self, t: Time) -> Time:
        """Returns the time ``interval`` before ``t``."""
        return t - self.interval

    def free_at(self, end: int) -> int:
        """Returns the time ``interval`` after ``end``."""
        return end + self.interval


@dataclass(frozen=True)
class LastRows(Frame):
    """A frame of the last ``count`` rows, including the row itself. The last rows of a key are kept forever."""

    count: int
    in_sequence = True

    def __str__(self) -> str:
        return f"the last {self.count} rows"

    @property
    def slot(self) -> int:
        """A minute; only rows that wait until they are complete are stored by time."""
        return MINUTE_MICROS

    @property
    def last_rows(self) -> int:  # type: ignore[override]
        """The number of rows that the next row of a key may need."""
        return self.count - 1

    def since(self, t: Time) -> Time:
        """Returns zero: no row is too old."""
        return t - t

    def free_at(self, end: int) -> int:
        """Never called, because the rows that are kept are not kept by time."""
        raise NotImplementedError

    def ranges(self, places: SortedRows) -> Ranges:
        """Returns the ranges by the places of rows, not by their times."""
        return places.last(self.count)


@dataclass(frozen=True)
class Cascading(Frame):
    """A frame from the start of the row's own window. Windows are ``size`` long and start at ``origin`` + n * size."""

    size: int
    origin: int = 0

    def __str__(self) -> str:
        return f"rows of windows of {self.size}L from {self.origin % self.size}L on"

    @property
    def slot(self) -> int:
        """The length of a window, whose rows are needed together and freed together."""
        return self.size

    def since(self, t: Time) -> Time:
        """Returns the start of the window that contains ``t``."""
        return t - (t - self.origin) % self.size

    def free_at(self, end: int) -> int:
        """Returns the end of the window that contains the last microsecond before ``end``."""
        return self.since(end - 1) + self.size
