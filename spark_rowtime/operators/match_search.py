"""The search for matches among the rows of one key."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spark_rowtime.errors import InvalidOptionError
from spark_rowtime.operators.match_path import Path, Values
from spark_rowtime.operators.match_pattern import ACCEPT, Pattern


@dataclass(frozen=True)
class Condition:
    """A condition of ``define``. ``of_match``: whether rows before in the match count for it."""

    holds: Callable[[Path], Any]
    of_match: bool


_MOST_TRIED = 1_000_000
"""How many mappings of rows are tried for one first row, where conditions look at the match: there can be 2^n of n."""


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
        found, start, known = list[Path](), begin, _Known(self, times, values)
        while start < len(times):
            try:
                path = self._at(start, floor, known)
            except _UndecidedError:
                break
            if path is not None:
                found.append(path)
            start = start + 1 if path is None or self.overlapping else path.last + 1
        return found, start

    def _at(self, start: int, floor: int | None, known: "_Known") -> Path | None:
        """Raises _UndecidedError if a later row can change what is found."""
        limit = known.times[start] + self.within
        complete = floor is None or floor > limit
        return (self._tried if known.of_match else self._followed)(start, limit, complete, known)

    def _followed(self, start: int, limit: int, complete: bool, known: "_Known") -> Path | None:
        """Where conditions do not look at the match, a state is taken if it leads to an end."""
        path, row, states = Path(known.times, known.values, self.within, start, start, []), start, self.pattern.first
        while True:
            state = next((state for state in states if known.leads(state, row, limit, complete)), None)
            if state is None:
                return None
            if state == ACCEPT:
                return path
            if row == len(known.times):
                raise _UndecidedError
            path.take(row, self.pattern.variables[state])
            row, states = row + 1, self.pattern.after[state]

    def _tried(self, start: int, limit: int, complete: bool, known: "_Known") -> Path | None:
        """Else the ways are tried one by one. ``ahead`` has the states to try, the next one last, each with its row."""
        path = Path(known.times, known.values, self.within, start, start, [])
        ahead = [(state, start) for state in reversed(self.pattern.first)]
        tried = 0
        while ahead:
            state, row = ahead.pop()
            if state == ACCEPT:
                return Path(known.times, known.values, self.within, start, row - 1, path.variables[: row - start])
            if row == len(known.times):
                if not complete:
                    raise _UndecidedError
                continue
            if known.times[row] > limit:
                continue
            tried += 1
            if tried > _MOST_TRIED:
                raise self._exhausted()
            path.take(row, self.pattern.variables[state])
            if known.holds(path):
                ahead.extend((following, row + 1) for following in reversed(self.pattern.after[state]))
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


class _UndecidedError(Exception):
    """Whether a match begins at a row, or which one, depends on later rows."""


class _Known:
    """What is known of rows, each found once: whether conditions hold, and where a match can end.

    The latter counts where conditions do not look at the match. Then it is the same for every first row, so a search
    takes a time that grows with the rows, and not with the rows by those within reach.
    """

    def __init__(self, search: Search, times: Sequence[int], values: Values) -> None:
        self.times, self.values = times, values
        self.of_match = any(condition.of_match for condition in search.conditions.values())
        self._search, self._ends = search, dict[tuple[int, int], int]()
        self._open, self._dead = len(times) + 1, len(times) + 2

    def holds(self, path: Path) -> bool:
        """Whether the last row of the path may be mapped to its variable."""
        condition = self._search.conditions.get(path.variables[-1])
        return condition is None or condition.holds(path) is True

    def leads(self, state: int, row: int, limit: int, complete: bool) -> bool:
        """Whether a match with that row in that state ends up to ``limit``; if not complete, later rows may end it."""
        end = self._end(state, row)
        if end < self._open:
            return self.times[end - 1] <= limit
        return end == self._open and not complete

    def _end(self, state: int, row: int) -> int:
        """Returns the number of rows up to the first end of a match behind that row, ``_open`` or ``_dead``."""
        ahead = [(state, row)]
        while ahead:
            at = ahead[-1]
            below = [] if self._is_known(*at) else self._behind(*at)
            missing = [other for other in below if not self._is_known(*other)]
            if missing:
                ahead += missing
                continue
            ahead.pop()
            if below:
                self._ends[at] = min(self._found(*other) for other in below)
        return self._found(state, row)

    def _is_known(self, state: int, row: int) -> bool:
        return state == ACCEPT or row == len(self.times) or (state, row) in self._ends

    def _found(self, state: int, row: int) -> int:
        return row if state == ACCEPT else self._open if row == len(self.times) else self._ends[state, row]

    def _behind(self, state: int, row: int) -> list[tuple[int, int]]:
        """Returns the states behind a row; none, and it is dead, if the row may not be in that state."""
        search = self._search
        path = Path(self.times, self.values, search.within, row, row, [search.pattern.variables[state]])
        if not self.holds(path):
            self._ends[state, row] = self._dead
            return []
        return [(following, row + 1) for following in search.pattern.after[state]]
