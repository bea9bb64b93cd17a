"""RowtimeBound: a promise about the rows that are still to come."""

from datetime import datetime, tzinfo
from functools import total_ordering
from typing import Any, ClassVar

from spark_rowtime.errors import InvalidOptionError
from spark_rowtime.types.arguments import to_flag
from spark_rowtime.types.html import html_facts
from spark_rowtime.types.short_repr import short_repr
from spark_rowtime.types.timestamps import END, LARGEST, from_micros, is_skipped, show_micros, to_micros

_SAID, _AFTER, _AT_OR_AFTER = "every later row is ", "after ", "at or after "
_NO_ROW_FOLLOWS = "no row follows"
"""The text of ``RowtimeBound.END``."""


@total_ordering
class RowtimeBound:
    """A bound: no later row has a rowtime below it. Immutable, hashable, ordered by ``floor``.

    A bound is strict (every later row is after its time) or not (at or after it). It is named after SQLstream
    s-Server's rowtime bounds; Apache Calcite calls them punctuation.

    ``RowtimeBound.END`` is the end of time: no row follows at all. A stream has it once its producers are complete
    (``sink.close(complete=True)``). It is stronger than the bound of any time.

    Laws (each a property test of the same name in tests/unit/test_bound.py):

    - *canonical*: non-strict t has floor t; strict t has floor t + 1 us; bounds with one floor are
      equal and hash alike.
    - *total order*: bounds compare as their floors do; strict t is stronger than non-strict t.
    - *admission*: a row is late against a bound exactly when its rowtime is below the floor.

    Example:
        >>> import spark_rowtime as rt
        >>> bound = rt.RowtimeBound("2026-01-05T14:30:00Z")
        >>> bound.time, bound.strict, bound.floor
        (datetime.datetime(2026, 1, 5, 14, 30, tzinfo=datetime.timezone.utc), False, 1767623400000000)
        >>> bound < rt.RowtimeBound("2026-01-05T14:30:00Z", strict=True)
        True
        >>> print(rt.RowtimeBound("2026-01-05T15:30:00", tz="Europe/Berlin"))
        every later row is at or after 2026-01-05T14:30:00Z
        >>> print(rt.RowtimeBound.END)
        no row follows
    """

    __slots__ = ("_micros", "_strict")

    END: ClassVar["RowtimeBound"]
    """The end of time: no row follows. No time gives this bound, so that nobody sends it by accident."""

    def __init__(self, t: Any, strict: bool = False, tz: str | tzinfo | None = None) -> None:
        """Makes a bound of a time, or of another bound.

        A naive time that the clocks of ``tz`` showed twice is the earlier moment, unless ``fold=1``. For one that they
        skipped the bound is the non-strict one at the moment of the change, also with ``strict``: at that moment the
        clocks show a time after ``t``.

        Args:
            t: An aware or naive datetime, an ISO 8601 text, a pandas Timestamp or a pyarrow timestamp scalar, from
                1970-01-01T00:00:00.000001Z to 9999-12-31T23:59:59.999998Z. Digits below microseconds are cut off. Or a
                RowtimeBound, or the text of one: the result is the same bound, with the same strictness.
            strict: If True, every later row is after ``t``, not at it. Not with the last of these times.
            tz: The time zone of a naive ``t``, as a name or a tzinfo; None: UTC.

        Raises:
            InvalidOptionError: ``t`` is None, is no time, or is out of range; ``tz`` is no time zone; ``t`` is a
                bound, and ``tz`` or a contradicting ``strict`` is given; or no row could follow ``t``.
        """
        strict = to_flag(strict, "strict")
        if t is None:
            raise InvalidOptionError(
                "None is not a bound. train.bound, getRowtimeBound() and currentRowtimeBound() are None while "
                "nothing is promised. Send a bound only where there is one.",
                value="None",
            )
        given = _of_bound(t)
        if given is not None and (tz is not None or (strict and not given[1])):
            raise InvalidOptionError(
                f"{short_repr(t)} is already a bound, with its own time zone and strictness: leave out strict "
                "and tz, or give a time.",
                value=short_repr(t),
            )
        self._micros, self._strict = given or _of_time(to_micros(t, tz), strict and not is_skipped(t, tz))

    @classmethod
    def inZone(cls, t: Any, strict: bool, tz: str | tzinfo | None, default: tzinfo | None) -> "RowtimeBound":
        """Makes a bound as the constructor does; a naive time without ``tz`` is in the zone ``default``."""
        return cls(t, strict, tz if tz is not None or _of_bound(t) else default)

    @classmethod
    def fromFloor(cls, floor: int) -> "RowtimeBound":
        """Makes the non-strict bound that has a given floor.

        Args:
            floor: The least rowtime that a later row may have, in microseconds since the epoch.

        Returns:
            The non-strict bound at ``floor``; beyond the last legal time, ``RowtimeBound.END``.

        Example:
            >>> import spark_rowtime as rt
            >>> rt.RowtimeBound.fromFloor(1767623400000000)
            RowtimeBound('2026-01-05T14:30:00Z')
        """
        return cls._of(min(floor, LARGEST), strict=floor > LARGEST)

    @classmethod
    def _of(cls, micros: int, strict: bool) -> "RowtimeBound":
        """Makes a bound without checks: a computed floor may lie just outside the range that users may give."""
        bound = object.__new__(cls)
        bound._micros, bound._strict = micros, strict
        return bound

    @property
    def time(self) -> datetime:
        """The time of the bound, as an aware UTC datetime. That of ``END`` is the last legal time."""
        return from_micros(self._micros)

    @property
    def strict(self) -> bool:
        """True: every later row is after ``time``; False: at or after it. That of ``END`` is True."""
        return self._strict

    @property
    def isEnd(self) -> bool:
        """Whether this is ``RowtimeBound.END``: no row follows.

        Example:
            >>> import spark_rowtime as rt
            >>> rt.RowtimeBound.END.isEnd, rt.RowtimeBound("9999-12-31T23:59:59Z", strict=True).isEnd
            (True, False)
        """
        return is_end(self.floor)

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
        return (
            _NO_ROW_FOLLOWS
            if self.isEnd
            else f"{_SAID}{_AFTER if self._strict else _AT_OR_AFTER}{show_micros(self._micros)}"
        )

    def __repr__(self) -> str:
        if self.isEnd:
            return "RowtimeBound.END"
        return f"RowtimeBound({show_micros(self._micros)!r}{', strict=True' if self._strict else ''})"

    def _repr_html_(self) -> str:
        """The bound in a notebook."""
        return html_facts("RowtimeBound", [("bound", str(self))])


def _of_bound(t: Any) -> tuple[int, bool] | None:
    """Time and strictness of a bound, or of its text, the form in which Spark passes it; None for anything else."""
    if isinstance(t, RowtimeBound):
        return t._micros, t._strict  # noqa: SLF001
    if isinstance(t, str) and t == _NO_ROW_FOLLOWS:
        return LARGEST, True
    if isinstance(t, str) and t.startswith(_SAID):
        words = t.removeprefix(_SAID)
        strict = words.startswith(_AFTER)
        return to_micros(words.removeprefix(_AFTER if strict else _AT_OR_AFTER)), strict
    return None


def _of_time(micros: int, strict: bool) -> tuple[int, bool]:
    """Returns time and strictness, but raises InvalidOptionError if no row could follow."""
    if micros == LARGEST and strict:
        raise InvalidOptionError(
            f"No row can follow {show_micros(LARGEST)}, the last legal time, so a strict bound there would be the end "
            "of time. If no row follows, call close(complete=True); otherwise send an earlier bound.",
            value=show_micros(LARGEST),
        )
    return micros, strict


RowtimeBound.END = RowtimeBound.fromFloor(END)


def stronger(one: int | None, other: int | None) -> int | None:
    """The larger of two floors; None stands for no bound (law 2: bounds on one input)."""
    if one is None or other is None:
        return other if one is None else one
    return max(one, other)


def weaker(one: int | None, other: int | None) -> int | None:
    """The smaller of two floors; None stands for no bound (law 3: bounds of inputs that are merged)."""
    return None if one is None or other is None else min(one, other)


def is_end(floor: int | None) -> bool:
    """Whether a floor is the end of time: no row follows."""
    return floor is not None and floor >= END


def as_bound(floor: int | None) -> RowtimeBound | None:
    """The bound of a floor, as ``RowtimeBound.fromFloor`` makes it; None for None."""
    return None if floor is None else RowtimeBound.fromFloor(floor)
