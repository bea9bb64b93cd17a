"""A matcher that tries all mappings of rows to variables, one after the other, in the order of preference."""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

Mapped = tuple[str, ...]
Holds = Callable[[Sequence[Any], Mapped], bool]
"""Whether the last of the rows of a match so far, which are mapped so, may be mapped so."""


@dataclass(frozen=True)
class Part:
    """A part of a pattern: a variable, a sequence, an alternation, or a repetition of its first child."""

    kind: str
    of: tuple[Any, ...]
    least: int = 1
    most: int | None = 1
    greedy: bool = True

    def ways(self, rows: int) -> Iterator[Mapped]:
        """The mappings of at most so many rows, the preferred ones first."""
        if self.kind == "variable":
            yield from [self.of] if rows else []
        elif self.kind == "|":
            for part in self.of:
                yield from part.ways(rows)
        elif self.kind == "sequence":
            yield from follow(self.of, rows)
        else:
            yield from follow([self.of[0]] * self.least + [Rest(self.of[0], self.most, self.least, self.greedy)], rows)

    def __str__(self) -> str:
        if self.kind == "variable":
            return str(self.of[0])
        if self.kind == "|":
            return f"({' | '.join(map(str, self.of))})"
        if self.kind == "sequence":
            return f"({' '.join(map(str, self.of))})"
        most = "" if self.most is None else self.most
        return f"({self.of[0]}){{{self.least},{most}}}{'' if self.greedy else '?'}"


@dataclass(frozen=True)
class Rest:
    """The repetitions above the least number. Without a most number, each of them takes a row."""

    part: Part
    most: int | None
    least: int
    greedy: bool

    def ways(self, rows: int) -> Iterator[Mapped]:
        more = rows > 0 if self.most is None else self.least < self.most
        if not self.greedy or not more:
            yield ()
        if more:
            for way in self.part.ways(rows):
                if way or self.most is not None:
                    rest = Rest(self.part, self.most, self.least + 1, self.greedy)
                    yield from (way + behind for behind in rest.ways(rows - len(way)))
        if self.greedy and more:
            yield ()


def follow(parts: Sequence[Any], rows: int) -> Iterator[Mapped]:
    """The ways through one part after the other."""
    if not parts:
        yield ()
        return
    for way in parts[0].ways(rows):
        yield from (way + behind for behind in follow(parts[1:], rows - len(way)))


def matches(
    pattern: Part, rows: Sequence[Any], times: Sequence[int], holds: Holds, within: int, *, overlapping: bool
) -> list[tuple[int, Mapped]]:
    """The first row of each match, and the variables of its rows."""
    found, start = [], 0
    while start < len(rows):
        reachable = [row for row in range(start, len(rows)) if times[row] - times[start] <= within]
        fitting = (way for way in pattern.ways(len(reachable)) if way and fits(rows, start, way, holds))
        way = next(fitting, None)
        if way is not None:
            found.append((start, way))
        start += 1 if way is None or overlapping else len(way)
    return found


def fits(rows: Sequence[Any], start: int, way: Mapped, holds: Holds) -> bool:
    return all(holds(rows[: start + end], way[:end]) for end in range(1, len(way) + 1))


def random_part(chance: random.Random, depth: int) -> Part:
    """A pattern of the variables A, B and C."""
    kind = chance.choice(("variable", "sequence", "|", "repeat")) if depth else "variable"
    if kind == "variable":
        return Part(kind, (chance.choice("ABC"),))
    if kind == "repeat":
        least = chance.randrange(3)
        most = chance.choice((None, max(1, least), least + 1, least + 2))
        return Part(kind, (random_part(chance, depth - 1),), least, most, chance.random() < 0.5)
    return Part(kind, tuple(random_part(chance, depth - 1) for _ in range(2 + chance.randrange(2))))
