"""Rows of one key that are mapped to the variables of a pattern."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any

from spark_rowtime.operators.match_references import Reference

Values = Mapping[str, Sequence[Any]]
"""The values of the rows of a key, by the text of the expression."""


@dataclass
class Path:
    """Rows that are mapped to variables, from row ``start`` to row ``last``: a match, or the beginning of one."""

    times: Sequence[int]
    values: Values
    within: int
    start: int
    last: int
    variables: list[str]

    def __post_init__(self) -> None:
        self._rows = defaultdict[str, list[int]](list)
        for row, variable in enumerate(self.variables, self.start):
            self._rows[variable].append(row)

    def take(self, row: int, variable: str) -> None:
        """Maps a row to a variable, and no longer those that were behind the row before it."""
        while len(self.variables) > row - self.start:
            self._rows[self.variables.pop()].pop()
        self.variables.append(variable)
        self._rows[variable].append(row)
        self.last = row

    def row(self, of: Reference) -> int | None:
        """Returns the row that a reference is to, or None: there is none, or it is more than ``within`` before."""
        rows = self.rows(of.variable)
        if of.offset >= len(rows):
            return None
        return self.before(rows[of.offset if of.function == "FIRST" else -1 - of.offset], of.back)

    def before(self, row: int, back: int) -> int | None:
        """Returns the row that is ``back`` rows before one; None if there is none within reach."""
        found = row - back
        return found if found >= 0 and self.times[row] - self.times[found] <= self.within else None

    def value(self, of: Reference) -> Any:
        """Returns the value of a reference to a row, or to rows."""
        if of.function in ("FIRST", "LAST"):
            row = self.row(of)
            return None if row is None else self.values[of.text][row]
        if of.text == "*":
            return len(self.rows(of.variable))
        found = [value for row in self.rows(of.variable) if (value := self.values[of.text][row]) is not None]
        return _AGGREGATES[of.function](found) if found or of.function == "COUNT" else None

    def extreme(self, of: Reference) -> int | None:
        """Returns the row with the least or the largest value; None without a value."""
        values = self.values[of.text]
        rows = [row for row in self.rows(of.variable) if values[row] is not None]
        if not rows:
            return None
        choose = min if of.function == "MIN" else max
        return choose(rows, key=lambda row: in_order(values[row]))

    def rows(self, variable: str | None) -> Sequence[int]:
        """Returns the rows that are mapped to a variable, or all."""
        return range(self.start, self.last + 1) if variable is None else self._rows[variable]


def in_order(value: Any) -> Any:
    """Returns what sorts as in Spark, where NaN is the largest number."""
    unordered = isinstance(value, float) and isnan(value)
    return unordered, 0.0 if unordered else value


_AGGREGATES: dict[str, Callable[[list[Any]], Any]] = {
    "COUNT": len,
    "SUM": sum,
    "AVG": lambda found: sum(found) / len(found),
    "MIN": lambda found: min(found, key=in_order),
    "MAX": lambda found: max(found, key=in_order),
}
