"""RowtimeBound: a promise about the rows that will still come."""

from datetime import datetime, tzinfo
from functools import total_ordering
from typing import Any

from spark_rowtime.errors import InvalidOptionError
from spark_rowtime.types.arguments import to_flag
from spark_rowtime.types.short_repr import short_repr
from spark_rowtime.types.timestamps import LARGEST, from_micros, show_micros, to_micros

_SAID, _AFTER, _AT_OR_AFTER = "every later row is ", "after ", "at or after "


@total_ordering
class RowtimeBound:
    """A bound: no later row has a rowtime below it. Immutable, hashable, ordered by ``floor``.

    Laws (each a property test of the same name in tests/unit/test_bound.py):

    - *canonical*: non-strict t has floor t; strict t has floor t + 1 us; bounds with one floor are
      equal and hash alike.
    - *total order*: bounds compare as their floors do; strict t is stronger than non-strict t.
    - *admission*: a row is late against a bound exactly when its rowtime is below the floor.

    ``time`` is an aware UTC datetime, ``strict`` a bool, ``floor`` microseconds since the epoch.
    After SQLstream s-Server's rowtime bounds; Apache Calcite calls them punctuation.
    """

    __slots__ = ("_micros", "_strict")

    def __init__(self, t: Any, strict: bool = False, tz: str | tzinfo | None = None) -> None:
        """``t`` as in :func:`spark_rowtime.types.timestamps.to_micros`; naive times are in ``tz``, or UTC.

        Or a bound, or the text of one: it is the same bound, and says itself whether it is strict.
        """
        strict = to_flag(strict, "strict")
        if t is None:
            raise InvalidOptionError(
                "None is no bound: train.bound, getRowtimeBound() and currentRowtimeBound() are None while nothing is "
                "promised. Send a bound only where there is one.",
                value="None",
            )
        said = _of_bound(t)
        if said is not None and (tz is not None or (strict and not said[1])):
            raise InvalidOptionError(
                f"{short_repr(t)} is a bound already, with its time zone and strictness: leave out strict and tz, or "
                "give a time.",
                value=short_repr(t),
            )
        self._micros, self._strict = said or (to_micros(t, tz), strict)

    @classmethod
    def told(cls, t: Any, strict: bool, tz: str | tzinfo | None, default: tzinfo | None) -> "RowtimeBound":
        """As the class is called; a naive time without ``tz`` is in the zone ``default``."""
        return cls(t, strict, tz if tz is not None or _of_bound(t) else default)

    @classmethod
    def fromFloor(cls, floor: int) -> "RowtimeBound":
        """The bound with that floor in microseconds: non-strict, as long as there is such a time."""
        return cls._of(min(floor, LARGEST), strict=floor > LARGEST)

    @classmethod
    def _of(cls, micros: int, strict: bool) -> "RowtimeBound":
        """Unchecked: a floor that was computed may lie just outside what a user may say."""
        bound = object.__new__(cls)
        bound._micros, bound._strict = micros, strict
        return bound

    @property
    def time(self) -> datetime:
        """The time that was promised, aware, UTC."""
        return from_micros(self._micros)

    @property
    def strict(self) -> bool:
        """True: every later row is after ``time``; False: at or after it."""
        return self._strict

    @property
    def floor(self) -> int:
        """The least rowtime that a later row may have, in microseconds since the epoch."""
        return self._micros + self._strict

    def __eq__(self, other: object) -> bool:
        return self.floor == other.floor if isinstance(other, RowtimeBound) else NotImplemented

    def __lt__(self, other: "RowtimeBound") -> bool:
        return self.floor < other.floor if isinstance(other, RowtimeBound) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.floor)

    def __reduce__(self) -> tuple[Any, ...]:
        return RowtimeBound._of, (self._micros, self._strict)

    def __str__(self) -> str:
        return f"{_SAID}{_AFTER if self._strict else _AT_OR_AFTER}{show_micros(self._micros)}"

    def __repr__(self) -> str:
        return f"RowtimeBound({show_micros(self._micros)!r}{', strict=True' if self._strict else ''})"


def _of_bound(t: Any) -> tuple[int, bool] | None:
    """Time and strictness of a bound, or of the text of one, as which Spark passes it on; None for anything else."""
    if isinstance(t, RowtimeBound):
        return t._micros, t._strict  # noqa: SLF001
    if isinstance(t, str) and t.startswith(_SAID):
        words = t.removeprefix(_SAID)
        strict = words.startswith(_AFTER)
        return to_micros(words.removeprefix(_AFTER if strict else _AT_OR_AFTER)), strict
    return None


def stronger(one: int | None, other: int | None) -> int | None:
    """The larger of two floors; None is no bound at all (law 2: bounds on one input)."""
    if one is None or other is None:
        return other if one is None else one
    return max(one, other)


def weaker(one: int | None, other: int | None) -> int | None:
    """The smaller of two floors; None is no bound at all (law 3: bounds of inputs that are merged)."""
    return None if one is None or other is None else min(one, other)


def as_bound(floor: int | None) -> RowtimeBound | None:
    """The non-strict bound of a floor; None for none."""
    return None if floor is None else RowtimeBound.fromFloor(floor)
