"""The search for matches among the rows of one key."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from math import isnan
from typing import Any

from spark_rowtime.errors import InvalidOptionError
from spark_rowtime.operators.match_pattern import ACCEPT, Pattern
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

    def row(self, of: Reference) -> int | None:
        """Returns the row that a reference is to, or None: there is none, or it is more than ``within`` before."""
        rows = self.rows(of.variable) if of.function == "FIRST" else reversed(self.rows(of.variable))
        found = next((row for number, row in enumerate(rows) if number == of.offset), None)
        return None if found is None else self.before(found, of.back)

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
        everything = range(self.start, self.last + 1)
        if variable is None:
            return everything
        return [row for row in everything if self.variables[row - self.start] == variable]


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


@dataclass(frozen=True)
class Condition:
    """A condition of ``define``. ``of_match``: whether rows before in the match count for it."""

    holds: Callable[[Path], Any]
    of_match: bool


_MOST_TRIED = 1_000_000
"""How many mappings of rows are tried for one first row, where conditions look at the match: there can be 2^n of n."""


class _Open(Enum):
    UNDECIDED = 0


@dataclass(frozen=True)
class Search:
    """What is searched for. ``within`` is in microseconds.

    Laws: a match that begins at a row is the most preferred one of all mappings of that row and the rows behind it
    for which each row's condition is true, and whose last row is at most ``within`` behind the first. It is found as
    soon as no more preferred one can come with later rows; not before. With ``overlapping``, the next match begins
    behind the first row of a match, else behind its last.
    """

    pattern: Pattern
    conditions: Mapping[str, Condition]
    within: int
    overlapping: bool

    def matches(self, times: Sequence[int], values: Values, begin: int, floor: int | None) -> tuple[list[Path], int]:
        """Returns the matches from row ``begin`` on that no later row changes, and the row at which the rest begins.

        Later rows are at or after ``floor``; None: there are no later rows.
        """
        found, start, known = [], begin, _Known(self.conditions, times, values)
        while start < len(times):
            path = self._at(start, floor, known)
            if path is _Open.UNDECIDED:
                break
            if path is not None:
                found.append(path)
            start = start + 1 if path is None or self.overlapping else path.last + 1
        return found, start

    def _at(self, start: int, floor: int | None, known: "_Known") -> Path | _Open | None:
        """The search goes deep first. ``ahead`` has the states to try, the next one last, each with its row."""
        pattern, limit = self.pattern, known.times[start] + self.within
        complete = floor is None or floor > limit
        path = Path(known.times, known.values, self.within, start, start, [])
        ahead = [(state, start) for state in reversed(pattern.first)]
        failed = None if known.of_match else set[tuple[int, int]]()
        tried = 0
        while ahead:
            state, row = at = ahead.pop()
            if state == ACCEPT:
                return Path(known.times, known.values, self.within, start, row - 1, path.variables[: row - start])
            if row == len(known.times):
                if not complete:
                    return _Open.UNDECIDED
                continue
            if known.times[row] > limit or (failed is not None and at in failed):
                continue
            if failed is not None:
                failed.add(at)
            tried += 1
            if failed is None and tried > _MOST_TRIED:
                raise self._exhausted()
            path.last = row
            path.variables[row - start :] = [pattern.variables[state]]
            if known.holds(path):
                ahead.extend((following, row + 1) for following in reversed(pattern.after[state]))
        return None

    def _exhausted(self) -> InvalidOptionError:
        looking = ", ".join(sorted(name for name, condition in self.conditions.items() if condition.of_match))
        return InvalidOptionError(
            f"pattern: more than {_MOST_TRIED:,} mappings of the rows behind one row were tried, and it is not known "
            f"yet whether a match begins there. The conditions of {looking} look at other rows of the match, so "
            "each way to a row has to be tried. Let fewer variables be true for one row, make within shorter, or use "
            "PREV(column), whose value does not depend on the match.",
            option="pattern",
        )


class _Known:
    """The conditions over rows, each evaluated once where the match does not count for it."""

    def __init__(self, conditions: Mapping[str, Condition], times: Sequence[int], values: Values) -> None:
        self.times, self.values = times, values
        self.of_match = any(condition.of_match for condition in conditions.values())
        self._conditions, self._found = conditions, dict[tuple[str, int], bool]()

    def holds(self, path: Path) -> bool:
        """Whether the last row of the path may be mapped to its variable."""
        variable = path.variables[-1]
        condition = self._conditions.get(variable)
        if condition is None:
            return True
        if condition.of_match:
            return condition.holds(path) is True
        at = (variable, path.last)
        if at not in self._found:
            self._found[at] = condition.holds(path) is True
        return self._found[at]
