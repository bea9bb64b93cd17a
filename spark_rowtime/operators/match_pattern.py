"""Patterns of rows: their text, and the automaton that tells which variables a row may be mapped to next."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from spark_rowtime.errors import InvalidOptionError

ACCEPT = -1
"""The state behind the last row of a match."""
_TOKEN = re.compile(r"\s*([A-Za-z_]\w*|\{[^}]*\}|\S)")
_REPEATED = re.compile(r"\{\s*([0-9]{0,9})\s*(,?)\s*([0-9]{0,9})\s*\}")
_REPEATS: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
_MOST_STATES = 10_000


@dataclass(frozen=True)
class Pattern:
    """An automaton. State s maps a row to ``variables[s]``, and one of ``after[s]`` follows, the preferred one first.

    Law: the matches that begin at a row, in the order of preference, are the ways through the states from ``first`` to
    ACCEPT, where the first of two ways that differ is the one that differs by an earlier entry.
    """

    variables: list[str]
    first: tuple[int, ...]
    after: list[tuple[int, ...]]


_Part = Callable[[int], int]
"""A part of a pattern: given the state behind it, it adds its own, and returns the one that it begins with."""


def parsed(text: str) -> Pattern:
    """Returns the automaton of a pattern. Raises InvalidOptionError if it cannot be read, or matches no row."""
    parser = _Parser(text, _TOKEN.findall(text))
    try:
        part = parser.alternatives()
        parser.require_end()
        start = part(ACCEPT)
    except RecursionError:
        raise _refused(text, "it is nested too deeply") from None
    states = parser.states
    first = states.reachable(start)
    if ACCEPT in first:
        raise _refused(text, "it also matches no row at all. Let one of its variables have to occur, as in 'A B*'")
    kept = [number for number, variable in enumerate(states.variables) if variable]
    renumbered = {ACCEPT: ACCEPT, **{old: new for new, old in enumerate(kept)}}
    after = [states.reachable(states.targets[number][0]) for number in kept]
    return Pattern(
        [states.variables[number] for number in kept],
        tuple(renumbered[state] for state in first),
        [tuple(renumbered[state] for state in following) for following in after],
    )


@dataclass
class _States:
    """States that take a row have a variable and one target; those that take none have no variable, and any targets."""

    text: str
    variables: list[str] = field(default_factory=list)
    targets: list[list[int]] = field(default_factory=list)

    def add(self, variable: str, *targets: int) -> int:
        if len(self.targets) == _MOST_STATES:
            raise _refused(self.text, f"it needs more than {_MOST_STATES} states. Use smaller numbers of repetitions")
        self.variables.append(variable)
        self.targets.append(list(targets))
        return len(self.targets) - 1

    def reachable(self, state: int) -> tuple[int, ...]:
        """Returns the states that take a row, or ACCEPT, that follow without one; each where it is preferred most."""
        found, seen, ahead = [], set(), [state]
        while ahead:
            state = ahead.pop()
            if state in seen:
                continue
            seen.add(state)
            if state == ACCEPT or self.variables[state]:
                found.append(state)
            else:
                ahead.extend(reversed(self.targets[state]))
        return tuple(found)


class _Parser:
    def __init__(self, text: str, tokens: list[str]) -> None:
        self._text, self._tokens, self._at = text, tokens, 0
        self.states = _States(text)

    def alternatives(self) -> _Part:
        parts = [self._sequence()]
        while self._take("|"):
            parts.append(self._sequence())
        if len(parts) == 1:
            return parts[0]
        return lambda behind: self.states.add("", *(part(behind) for part in parts))

    def require_end(self) -> None:
        if self._next:
            raise _refused(self._text, f"{self._next!r} is not expected there")

    def _sequence(self) -> _Part:
        parts = []
        while self._next and self._next not in "|)":
            parts.append(self._repeated())
        if not parts:
            raise _refused(self._text, "a part of it is empty")

        def sequence(behind: int) -> int:
            for part in reversed(parts):
                behind = part(behind)
            return behind

        return sequence

    def _repeated(self) -> _Part:
        part = self._primary()
        if self._next[:1] not in ("*", "+", "?", "{"):
            return part
        least, most = self._times(self._advance())
        greedy = not self._take("?")
        return lambda behind: self._repeat(part, least, most, greedy, behind)

    def _primary(self) -> _Part:
        if self._take("("):
            part = self.alternatives()
            if not self._take(")"):
                raise _refused(self._text, "a ')' is missing")
            return part
        name = self._advance()
        if not name.isidentifier() or name.upper() == "PERMUTE":
            known = "It has variables, ( ), |, and after a part *, +, ?, {n}, {n,}, {,m}, {n,m}, each maybe with a ?"
            raise _refused(self._text, f"{name!r} is not possible there. {known}")
        return lambda behind: self.states.add(name.upper(), behind)

    def _repeat(self, part: _Part, least: int, most: int | None, greedy: bool, behind: int) -> int:
        state = behind
        if most is None:
            state = self.states.add("")
            body = part(state)
            self.states.targets[state] = [body, behind] if greedy else [behind, body]
        for _ in range((most or least) - least):
            body = part(state)
            state = self.states.add("", *((body, behind) if greedy else (behind, body)))
        for _ in range(least):
            state = part(state)
        return state

    def _times(self, token: str) -> tuple[int, int | None]:
        if token in _REPEATS:
            return _REPEATS[token]
        found = _REPEATED.fullmatch(token)
        if not found or not (found[1] or found[3]):
            raise _refused(self._text, f"{token} is not {{n}}, {{n,}}, {{,m}} or {{n,m}}")
        least = int(found[1] or 0)
        most = int(found[3]) if found[3] else None if found[2] else least
        if most is not None and most < max(least, 1):
            raise _refused(self._text, f"{token} has a most of {most}")
        return least, most

    @property
    def _next(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _take(self, token: str) -> bool:
        taken = self._next == token
        self._at += taken
        return taken

    def _advance(self) -> str:
        self._at += 1
        return self._tokens[self._at - 1]


def _refused(text: str, why: str) -> InvalidOptionError:
    return InvalidOptionError(f"pattern={text!r}: {why}.", option="pattern", value=repr(text))
