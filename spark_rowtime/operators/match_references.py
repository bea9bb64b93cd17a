"""The SQL texts of a pattern: their tokens, and the references to rows of the match in them."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from spark_rowtime.errors import InvalidOptionError

_TOKEN = re.compile(
    r"""\s*(?P<token>
    '(?:[^'\\]|\\.|'')*' | "(?:[^"\\]|\\.)*" | `(?:[^`]|``)+`
    | (?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?\w* | [^\W\d]\w*
    | <=> | <= | >= | <> | != | == | \|\| | -> | :: | [-+*/%<>=().,\[\]:&|^~!] )""",
    re.VERBOSE | re.DOTALL,
)
PLACES = ("FIRST", "LAST", "PREV")
AGGREGATES = ("COUNT", "SUM", "AVG", "MIN", "MAX")
_OFFSET = re.compile("[0-9]{1,9}")
_NOT_SUPPORTED = ("NEXT", "CLASSIFIER", "MATCH_NUMBER", "FINAL", "RUNNING")

Read = TypeVar("Read")


@dataclass(frozen=True)
class Reference:
    """Which row, or rows, of the match a value is of.

    ``function``: "FIRST" or "LAST" (the row mapped to ``variable``, ``offset`` rows from that end, and ``back`` rows
    before it in the stream), or an aggregate. ``variable``: None for all rows. ``text``: SQL over one row's columns;
    "*" to count rows.
    """

    function: str
    variable: str | None
    text: str
    offset: int = 0
    back: int = 0

    def is_current(self, variable: str | None) -> bool:
        """Whether it is the row itself for which a condition of ``variable`` is asked, or a row at a fixed distance."""
        return self.function == "LAST" and not self.offset and self.variable in (None, variable)


Token = str | Reference


class SqlText(NamedTuple):
    """A text in SQL that is the value of ``option``."""

    option: str
    text: str

    def whole(self, read: Callable[[], Read]) -> Read:
        """Returns what ``read`` makes of it. Raises InvalidOptionError if it is nested too deeply for that."""
        try:
            return read()
        except RecursionError:
            raise self.refused("it is nested too deeply") from None

    def tokens(self) -> list[str]:
        """Returns its tokens."""
        found, at = [], 0
        while self.text[at:].strip():
            match = _TOKEN.match(self.text, at)
            if match is None:
                raise self.refused(f"{self.text[at:].split()[0]!r} is not SQL that is known here")
            found.append(match["token"])
            at = match.end()
        return found

    def refused(self, why: str) -> InvalidOptionError:
        """Returns the error for a text that cannot be used."""
        return InvalidOptionError(f"{self.option}: {self.text!r}: {why}.", option=self.option, value=repr(self.text))


class References:
    """Finds the references in texts. ``variables``: those of the pattern. ``columns``: those of a row."""

    def __init__(self, variables: Iterable[str], columns: Iterable[str]) -> None:
        self._variables = set(variables)
        self._columns = {column.lower() for column in columns}
        both = sorted(name for name in self._variables if name.lower() in self._columns)
        if both:
            raise InvalidOptionError(
                f"pattern: {both[0]} is a column, too. Give the variable another name.", option="pattern"
            )

    def within(self, text: SqlText, *, whole: bool) -> list[Token]:
        """Returns the tokens of a text, with each reference as one token.

        ``whole``: also columns without a variable are references, to the last row of the match.
        """
        tokens, found, at = text.tokens(), list[Token](), 0
        while at < len(tokens):
            token, at = self._token(tokens, at, text, whole)
            found.append(token)
        return found

    def _token(self, tokens: list[str], at: int, of: SqlText, whole: bool) -> tuple[Token, int]:
        name, following = tokens[at].upper(), tokens[at + 1 : at + 2]
        if at and tokens[at - 1] == ".":
            return tokens[at], at + 1
        if name in _NOT_SUPPORTED and (following == ["("] or name in ("FINAL", "RUNNING")):
            raise of.refused(f"{name} is not supported. References are {', '.join(PLACES + AGGREGATES)}")
        if name in PLACES + AGGREGATES and following == ["("]:
            end = _closing(tokens, at + 1, of)
            return self._call(name, tokens[at + 2 : end], of), end + 1
        if name in self._variables and following == ["."]:
            return Reference("LAST", name, " ".join(tokens[at + 2 : at + 3])), at + 3
        if whole and following != ["("] and tokens[at].strip("`").lower() in self._columns:
            return Reference("LAST", None, tokens[at]), at + 1
        return tokens[at], at + 1

    def _call(self, function: str, inside: list[str], of: SqlText) -> Reference:
        arguments = _arguments(inside)
        variable, text = self._argument(arguments[0], of)
        if function in AGGREGATES:
            if len(arguments) > 1 or not text or (text == "*" and function != "COUNT"):
                raise of.refused(f"{function} takes one expression over a row, as in {function}(A.price)")
            return Reference(function, variable, text)
        number = self._number(function, arguments[1:], of)
        if function == "PREV":
            return Reference("LAST", variable, text, back=1 if number is None else number)
        return Reference(function, variable, text, offset=number or 0)

    def _argument(self, tokens: list[str], of: SqlText) -> tuple[str | None, str]:
        """Returns the variable of an argument, and its text without it."""
        found, kept, at = set[str](), list[str](), 0
        while at < len(tokens):
            word, following = tokens[at].upper(), tokens[at + 1 : at + 2]
            if word in PLACES + AGGREGATES + _NOT_SUPPORTED and following == ["("]:
                raise of.refused(f"{word} within another reference is not supported")
            if word in self._variables and following == ["."] and kept[-1:] != ["."]:
                found.add(word)
                at += 2
            else:
                kept.append(tokens[at])
                at += 1
        if len(found) > 1:
            raise of.refused(f"{' and '.join(sorted(found))} in one reference: it is of the rows of one variable")
        return next(iter(found), None), " ".join(kept)

    def _number(self, function: str, arguments: list[list[str]], of: SqlText) -> int | None:
        if not arguments:
            return None
        if len(arguments) > 1 or len(arguments[0]) != 1 or not _OFFSET.fullmatch(arguments[0][0]):
            raise of.refused(f"the second argument of {function} is a whole number")
        return int(arguments[0][0])


def _closing(tokens: list[str], opening: int, of: SqlText) -> int:
    depth = 0
    for at in range(opening, len(tokens)):
        depth += (tokens[at] == "(") - (tokens[at] == ")")
        if not depth:
            return at
    raise of.refused("a ')' is missing")


def _arguments(tokens: list[str]) -> list[list[str]]:
    found, depth = [list[str]()], 0
    for word in tokens:
        depth += (word in ("(", "[")) - (word in (")", "]"))
        if word == "," and not depth:
            found.append([])
        else:
            found[-1].append(word)
    return found
