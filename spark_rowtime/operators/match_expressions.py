"""The conditions of a pattern as trees: which parts Spark computes for each row, and which are left to the search."""

from collections.abc import Iterator
from dataclasses import dataclass

from spark_rowtime.operators.match_references import Reference, SqlText, Token

_COMPARISONS = ("=", "==", "<=>", "<>", "!=", "<", "<=", ">", ">=")
_BINARY = {
    "OR": 1,
    "AND": 2,
    **dict.fromkeys(_COMPARISONS, 4),
    **dict.fromkeys(("LIKE", "ILIKE", "RLIKE", "REGEXP", "BETWEEN", "IN", "IS"), 4),
    "|": 5,
    "^": 6,
    "&": 7,
    **dict.fromkeys(("+", "-", "||"), 8),
    **dict.fromkeys(("*", "/", "%", "DIV"), 9),
}
_PREDICATE = 4
_NEGATED = ("LIKE", "ILIKE", "RLIKE", "REGEXP", "BETWEEN", "IN")
_SAME = {"==": "=", "!=": "<>"}
_PREFIXES = {"NOT": ("NOT", 3), "!": ("NOT", 3), "-": ("NEGATIVE", 10)}
"""Operators before an expression, with the least precedence of the operators in that."""


@dataclass(frozen=True)
class Node:
    """A part of a condition: an operator over others; else a "literal", a "reference", or SQL of another kind."""

    operator: str
    tokens: tuple[Token, ...]
    children: tuple["Node", ...] = ()

    @property
    def over_row(self) -> str | None:
        """The text of a part without references, which Spark computes for each row; None of others."""
        texts = [token for token in self.tokens if isinstance(token, str)]
        return " ".join(texts) if len(texts) == len(self.tokens) and self.operator != "literal" else None

    def texts(self) -> Iterator[str]:
        """Yields the texts of all that Spark computes for it."""
        if self.over_row is not None:
            yield self.over_row
        elif isinstance(self.tokens[0], Reference) and self.operator == "reference":
            yield from [self.tokens[0].text] if self.tokens[0].text != "*" else []
        else:
            for child in self.children:
                yield from child.texts()


def tree_of(text: SqlText, tokens: list[Token], variable: str) -> Node:
    """Returns the tree of the condition of a variable, from its tokens."""
    return text.whole(_Parser(text, [_over_row(token, variable) for token in tokens]).parsed)


def _over_row(token: Token, variable: str) -> Token:
    """Returns the text of a reference to the row itself for which the condition is asked."""
    if isinstance(token, str) or token.back or not token.is_current(variable):
        return token
    return token.text if token.text.isidentifier() else f"({token.text})"


class _Parser:
    """Has Spark's precedence of operators."""

    def __init__(self, text: SqlText, tokens: list[Token]) -> None:
        self._text, self._tokens, self._at = text, tokens, 0

    def parsed(self) -> Node:
        """Returns the tree of all tokens."""
        node = self._expression(0)
        if self._next:
            raise self._text.refused(f"{self._next!r} is not expected there")
        return node

    def _expression(self, least: int) -> Node:
        begin = self._at
        node = self._prefix()
        while self._binds(least):
            negative = self._take("NOT")
            operator, children = self._operator(self._word())
            node = Node(operator, self._since(begin), (node, *children))
            if negative:
                node = Node("NOT", self._since(begin), (node,))
        return node

    def _binds(self, least: int) -> bool:
        if self._next == "NOT":
            return self._upper(self._at + 1) in _NEGATED and least <= _PREDICATE
        return _BINARY.get(self._next, -1) >= least

    def _operator(self, word: str) -> tuple[str, list[Node]]:
        """Returns the name of an operator, and what stands to the right of it."""
        if word == "BETWEEN":
            low = self._expression(_PREDICATE + 1)
            self._require("AND")
            return word, [low, self._expression(_PREDICATE + 1)]
        if word == "IN":
            self._require("(")
            return word, self._list()
        if word == "IS":
            return f"IS {'NOT ' if self._take('NOT') else ''}{self._word()}", []
        return _SAME.get(word, word), [self._expression(_BINARY[word] + 1)]

    def _prefix(self) -> Node:
        begin = self._at
        if self._next == "-" and self._upper(begin + 1)[:1].isdigit():
            self._at += 2
            return Node("literal", (f"-{self._tokens[begin + 1]}",))
        if self._next in _PREFIXES:
            operator, least = _PREFIXES[self._word()]
            child = self._expression(least)
            return Node(operator, self._since(begin), (child,))
        node = self._primary()
        while self._next in (".", "[", "::"):
            if self._word() == "[":
                self._skip("[", "]")
            else:
                self._word()
            node = Node(f"{self._tokens[self._at - 1]}", self._since(begin))
        return node

    def _primary(self) -> Node:
        begin = self._at
        if self._take("("):
            inside = self._list()
            return inside[0] if len(inside) == 1 else Node("(...)", self._since(begin), tuple(inside))
        word, token = self._word(), self._tokens[begin]
        if isinstance(token, Reference):
            return Node("reference", (token,))
        if word in ("NULL", "TRUE", "FALSE") or token[0] in "'\".0123456789":
            return Node("literal", (token,))
        if not (token[0] in "`(" or token.isidentifier()):
            raise self._text.refused(f"{token!r} is not expected there")
        children = self._behind(word)
        return Node(word, self._since(begin), tuple(children))

    def _behind(self, word: str) -> list[Node]:
        """Parses what belongs to a word: the end of a CASE, the arguments of a function, the text of a DATE."""
        if word == "CASE":
            self._skip("CASE", "END")
        elif word == "INTERVAL":
            self._interval()
        elif self._next[:1] == "'":
            self._word()
        elif self._take("("):
            begin = self._at
            self._skip("(", ")")
            if not all(isinstance(token, str) for token in self._since(begin)):
                self._at = begin
                return self._list()
        return []

    def _interval(self) -> None:
        self._take("-")
        self._word()
        while self._next.isidentifier() and self._next not in _BINARY and self._next != "NOT":
            self._word()

    def _list(self) -> list[Node]:
        """Parses up to the parenthesis that closes a list."""
        found: list[Node] = []
        while not self._take(")"):
            found.append(self._expression(0))
            if not self._take(",") and self._next != ")":
                raise self._text.refused(f"{self._next or 'its end'!r} is not expected there")
        return found

    def _skip(self, opening: str, closing: str) -> None:
        depth = 1
        while depth:
            word = self._word()
            depth += (word == opening) - (word == closing)

    def _since(self, begin: int) -> tuple[Token, ...]:
        return tuple(self._tokens[begin : self._at])

    @property
    def _next(self) -> str:
        return self._upper(self._at)

    def _upper(self, at: int) -> str:
        if at >= len(self._tokens):
            return ""
        token = self._tokens[at]
        return token.upper() if isinstance(token, str) else "a reference"

    def _word(self) -> str:
        if self._at >= len(self._tokens):
            raise self._text.refused("it ends too early")
        self._at += 1
        return self._upper(self._at - 1)

    def _take(self, word: str) -> bool:
        taken = self._next == word
        self._at += taken
        return taken

    def _require(self, word: str) -> None:
        if not self._take(word):
            raise self._text.refused(f"{word} is expected instead of {self._next or 'its end'}")
