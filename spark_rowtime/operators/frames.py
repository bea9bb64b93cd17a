"""Frames: which earlier rows count for a row. Times are microseconds, a number or a numpy array of them."""

from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
import numpy.typing as npt

Micros = npt.NDArray[np.int64]
Time = TypeVar("Time", int, Micros)


class Frame(Protocol):
    """The rows from ``since(t)`` to t count for a row at t, both ends included, per key.

    Laws: ``since`` never falls as t grows, so with floor f no row before ``since(f)`` counts again;
    ``since(f) >= end`` exactly when ``f >= free_at(end)``, for the end of a slot.
    """

    @property
    def slot(self) -> int:
        """How much time one entry of the state covers."""

    def since(self, t: Time) -> Time:
        """The least time that counts for a row at ``t``."""

    def free_at(self, end: int) -> int:
        """The floor from which on rows before ``end`` never count again."""


@dataclass(frozen=True)
class Sliding:
    """The last ``interval`` before each row."""

    interval: int

    @property
    def slot(self) -> int:
        """An eighth: the state outlives the interval by no more than that."""
        return max(1, self.interval // 8)

    def since(self, t: Time) -> Time:
        """``interval`` earlier."""
        return t - self.interval

    def free_at(self, end: int) -> int:
        """``interval`` later."""
        return end + self.interval


@dataclass(frozen=True)
class Cascading:
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
