"""Numbers in conditions of a pattern, computed as Spark does: whole ones, FLOATs, DOUBLEs and literals like 1.1."""

from collections.abc import Callable, Collection
from decimal import Context, Decimal
from typing import Any, NamedTuple

import numpy as np

WHOLE, EXACT, SINGLE, FLOAT = "a whole number", "a number with a point", "a FLOAT", "a float"
"""The kinds of numbers. EXACT is DECIMAL in SQL: a literal like 1.1, and what is computed of it."""
NUMBERS = frozenset((WHOLE, EXACT, SINGLE, FLOAT))
FLOATS = frozenset((SINGLE, FLOAT))
MOST_DIGITS = 38
"""Spark rounds a DECIMAL of more digits."""
_EXACTLY = Context(prec=2 * MOST_DIGITS)


class Size(NamedTuple):
    """The digits of an exact number before and behind the point."""

    before: int
    behind: int

    @classmethod
    def of(cls, number: Decimal) -> "Size":
        """The size of a literal."""
        _, digits, exponent = number.as_tuple()
        behind = max(-int(exponent), 0)
        return cls(max(len(digits) - behind, 0), behind)

    @property
    def is_exact(self) -> bool:
        """Whether Spark has numbers of this size without rounding."""
        return sum(self) <= MOST_DIGITS

    def union(self, other: "Size") -> "Size":
        """The size that has the numbers of both."""
        return Size(max(self.before, other.before), max(self.behind, other.behind))


WHOLE_SIZE = Size(20, 0)


def widest(kinds: Collection[str]) -> str:
    """Returns the kind to which Spark converts numbers of these ``kinds`` before it compares or adds them."""
    if FLOAT in kinds or (SINGLE in kinds and len(kinds) > 1):
        return FLOAT
    return next(kind for kind in (SINGLE, EXACT, WHOLE) if kind in kinds)


def computed_size(operator: str, one: Size, other: Size) -> Size:
    """Returns the size of a sum, difference or product."""
    if operator == "*":
        return Size(one.before + other.before + 1, one.behind + other.behind)
    both = one.union(other)
    return Size(both.before + 1, both.behind)


def arithmetic(operator: str, kind: str) -> Callable[[Any, Any], Any]:
    """Returns how two numbers are computed whose result is of that kind."""
    if kind == EXACT:
        return _OF_EXACT[operator]
    plain = ARITHMETIC[operator]
    return (lambda x, y: _rounded(plain(x, y))) if kind == SINGLE else plain


def _rounded(number: float) -> float:
    with np.errstate(all="ignore"):
        return float(np.float32(number))


ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda x, y: x + y,
    "-": lambda x, y: x - y,
    "*": lambda x, y: x * y,
    "/": lambda x, y: x / y,
}
_OF_EXACT: dict[str, Callable[[Any, Any], Any]] = {
    "+": _EXACTLY.add,
    "-": _EXACTLY.subtract,
    "*": _EXACTLY.multiply,
}
