"""Evaluates conditions over rows of a match as Spark does: three truth values, and NaN as the largest number."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce
from typing import Any

from pyspark.sql.types import (
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DayTimeIntervalType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    NullType,
    ShortType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from spark_rowtime.operators.match_expressions import Node
from spark_rowtime.operators.match_numbers import (
    ARITHMETIC,
    EXACT,
    FLOAT,
    FLOATS,
    MOST_DIGITS,
    NUMBERS,
    SINGLE,
    WHOLE,
    WHOLE_SIZE,
    Size,
    arithmetic,
    computed_size,
    widest,
)
from spark_rowtime.operators.match_path import Path, in_order
from spark_rowtime.operators.match_references import Reference, SqlText
from spark_rowtime.operators.match_search import Condition

_KINDS: dict[type[DataType], str] = {
    **dict.fromkeys((ByteType, ShortType, IntegerType, LongType), WHOLE),
    FloatType: SINGLE,
    DoubleType: FLOAT,
    DecimalType: "a decimal",
    StringType: "a string",
    BooleanType: "a boolean",
    TimestampType: "a time",
    TimestampNTZType: "a local time",
    DateType: "a date",
    DayTimeIntervalType: "an interval",
    NullType: "NULL",
}
_BOOLEAN, _TIME, _INTERVAL, _NULL = ("a boolean", "a time", "an interval", "NULL")
_COMPARABLE = (NUMBERS, {WHOLE, EXACT, "a decimal"})
"""Kinds that can be compared although they are not the same."""
_POINT = re.compile(r"-?(\d+\.\d*|\.\d+)")
_WORDS = {"NULL": (None, _NULL), "TRUE": (True, _BOOLEAN), "FALSE": (False, _BOOLEAN)}
_KNOWN = "AND, OR, NOT, = <> < <= > >= <=>, IS NULL, BETWEEN, IN, + - * /, ABS and COALESCE"


@dataclass(frozen=True)
class _Part:
    """A part of a condition: its value on a path, its kind, and whether rows before in the match count for it."""

    value: Callable[[Path], Any]
    kind: str
    of_match: bool
    size: Size = WHOLE_SIZE
    """That of an exact number."""


def condition(text: SqlText, tree: Node, types: Mapping[str, DataType], variable: str) -> Condition:
    """Returns the condition of a variable. ``types``: those of the texts that Spark computes."""
    found = text.whole(lambda: _Compiler(text, types, variable).part(tree))
    if found.kind not in (_BOOLEAN, _NULL):
        raise text.refused(f"it is {found.kind}, not a condition")
    return Condition(found.value, found.of_match)


def result_type(reference: Reference, types: Mapping[str, DataType], text: SqlText) -> DataType:
    """Returns Spark's type of a reference's value."""
    if reference.function == "COUNT":
        return LongType()
    kind = types[reference.text]
    if reference.function in ("SUM", "AVG"):
        if _kind(kind) not in NUMBERS:
            raise text.refused(
                f"{reference.function} takes whole numbers and floats, not {kind.simpleString()}. Cast it to DOUBLE"
            )
        return LongType() if reference.function == "SUM" and _kind(kind) == WHOLE else DoubleType()
    if reference.function in ("MIN", "MAX") and _kind(kind) not in _KINDS.values():
        raise text.refused(f"{reference.function} does not take {kind.simpleString()}")
    return kind


def _kind(kind: DataType) -> str:
    if isinstance(kind, StringType) and not kind.isUTF8BinaryCollation():
        return kind.simpleString()
    return _KINDS.get(type(kind), kind.simpleString())


class _Compiler:
    def __init__(self, text: SqlText, types: Mapping[str, DataType], variable: str) -> None:
        self._text, self._types, self._variable = text, types, variable

    def part(self, node: Node) -> _Part:
        if node.operator == "literal":
            return self._literal(str(node.tokens[0]))
        if node.over_row is not None:
            return self._reference(Reference("LAST", None, node.over_row))
        if isinstance(node.tokens[0], Reference) and node.operator == "reference":
            return self._reference(node.tokens[0])
        children = [self.part(child) for child in node.children]
        value, kind = self._operation(node.operator, children)
        size = self._size(node.operator, children) if kind == EXACT else WHOLE_SIZE
        return _Part(value, kind, any(child.of_match for child in children), size)

    def _size(self, operator: str, of: list[_Part]) -> Size:
        sizes = [part.size for part in of]
        size = computed_size(operator, *sizes) if operator in ARITHMETIC else reduce(Size.union, sizes)
        if not size.is_exact:
            raise self._text.refused(
                f"Spark would round the result of {operator}, which may have more than {MOST_DIGITS} digits. Write its "
                "numbers as DOUBLE, such as 1.1D"
            )
        return size

    def _literal(self, token: str) -> _Part:
        value, kind = self._constant(token)
        size = Size.of(value) if kind == EXACT else WHOLE_SIZE
        return _Part(lambda _: value, kind, False, size)

    def _constant(self, token: str) -> tuple[Any, str]:
        if token[0] == "'" and "\\" not in token:
            return token[1:-1].replace("''", "'"), "a string"
        if token.upper() in _WORDS:
            return _WORDS[token.upper()]
        if _POINT.fullmatch(token):
            return Decimal(token), EXACT
        if "_" in token or not token.isascii():
            raise self._text.refused(f"{token} is not a number")
        try:
            return (int(token), WHOLE) if token.lstrip("-").isdigit() else (float(token.rstrip("dD")), FLOAT)
        except ValueError:
            raise self._text.refused(f"the literal {token} is not possible beside references") from None

    def _reference(self, reference: Reference) -> _Part:
        kind = _kind(result_type(reference, self._types, self._text))
        if not reference.is_current(self._variable):
            return _Part(lambda path: path.value(reference), kind, True)
        text, back = reference.text, reference.back
        if not back:
            return _Part(lambda path: path.values[text][path.last], kind, False)

        def before(path: Path) -> Any:
            row = path.before(path.last, back)
            return None if row is None else path.values[text][row]

        return _Part(before, kind, False)

    def _operation(self, operator: str, of: list[_Part]) -> tuple[Callable[[Path], Any], str]:
        truth = self._truth(operator, of)
        if truth is not None:
            return truth, _BOOLEAN
        if operator in ARITHMETIC:
            return self._computed(operator, *of)
        if operator in _OF_NUMBER and len(of) == 1:
            self._require(operator, of, *NUMBERS)
            value, apply = of[0].value, _OF_NUMBER[operator]
            return lambda path: None if (x := value(path)) is None else apply(x), of[0].kind
        if operator == "COALESCE" and of:
            return self._coalesced(of)
        raise self._text.refused(f"{operator} over references is not supported, but {_KNOWN}")

    def _truth(self, operator: str, of: list[_Part]) -> Callable[[Path], Any] | None:
        """Returns a truth value; None for operators that have none."""
        if operator in _LOGIC:
            self._require(operator, of, _BOOLEAN)
            return _LOGIC[operator](*(part.value for part in of))
        if operator in ("IS NULL", "IS NOT NULL"):
            value, null = of[0].value, operator == "IS NULL"
            return lambda path: (value(path) is None) is null
        if operator == "BETWEEN":
            return _and(self._compared(">=", of[0], of[1]), self._compared("<=", of[0], of[2]))
        if operator == "IN" and len(of) > 1:
            return reduce(_or, (self._compared("=", of[0], other) for other in of[1:]))
        return self._compared(operator, *of) if operator in _COMPARISONS else None

    def _compared(self, operator: str, one: _Part, other: _Part) -> Callable[[Path], Any]:
        kinds = {one.kind, other.kind} - {_NULL}
        if len(kinds) > 1 and not any(kinds <= alike for alike in _COMPARABLE):
            raise self._text.refused(f"{one.kind} is compared with {other.kind}. Cast one of them")
        if kinds and not kinds <= {EXACT, *_KINDS.values()}:
            raise self._text.refused(f"{kinds.pop()} cannot be compared here")
        key = in_order if kinds & FLOATS else (lambda x: x)
        compare = _COMPARISONS[operator]
        a, b = self._as(one, kinds), self._as(other, kinds)
        if operator == "<=>":
            return lambda path: _same(a(path), b(path), key)

        def compared(path: Path) -> bool | None:
            x, y = a(path), b(path)
            return None if x is None or y is None else compare(key(x), key(y))

        return compared

    def _computed(self, operator: str, one: _Part, other: _Part) -> tuple[Callable[[Path], Any], str]:
        kinds = {one.kind, other.kind} - {_NULL}
        result = _result(operator, one.kind, other.kind)
        if result is None:
            raise self._text.refused(
                f"{one.kind} {operator} {other.kind} is not possible. Cast decimals to DOUBLE, and write 1.1D for 1.1"
            )
        apply, a, b = arithmetic(operator, result), self._as(one, kinds), self._as(other, kinds)

        def computed(path: Path) -> Any:
            x, y = a(path), b(path)
            return None if x is None or y is None or (operator == "/" and not y) else apply(x, y)

        return computed, result

    def _coalesced(self, of: list[_Part]) -> tuple[Callable[[Path], Any], str]:
        kinds = {part.kind for part in of} - {_NULL}
        if len(kinds) > 1 and not kinds <= NUMBERS:
            raise self._text.refused(f"COALESCE of {' and '.join(sorted(kinds))}. Cast them")
        values = [self._as(part, kinds) for part in of]
        kind = widest(kinds) if len(kinds) > 1 else next(iter(kinds), _NULL)
        return lambda path: next((x for value in values if (x := value(path)) is not None), None), kind

    def _as(self, part: _Part, kinds: set[str]) -> Callable[[Path], Any]:
        """Returns the values of a part beside those of other kinds: other numbers beside floats are floats."""
        value = part.value
        if part.kind not in (WHOLE, EXACT) or not kinds & FLOATS:
            return value
        return lambda path: None if (x := value(path)) is None else float(x)

    def _require(self, operator: str, of: list[_Part], *kinds: str) -> None:
        for part in of:
            if part.kind not in (*kinds, _NULL):
                raise self._text.refused(f"{operator} does not take {part.kind}")


def _result(operator: str, one: str, other: str) -> str | None:
    """Returns the kind of a sum, difference, product or quotient; None if there is none."""
    kinds = {one, other} - {_NULL}
    if operator == "/" and kinds <= NUMBERS:
        return FLOAT if EXACT not in kinds or kinds & FLOATS else None
    if kinds <= NUMBERS:
        return widest(kinds) if kinds else WHOLE
    if operator == "-" and kinds in ({_TIME}, {"a local time"}):
        return _INTERVAL
    if operator in "+-" and kinds == {_INTERVAL}:
        return _INTERVAL
    if (operator == "+" and kinds == {_TIME, _INTERVAL}) or (operator, one, other) == ("-", _TIME, _INTERVAL):
        return _TIME
    return None


def _and(one: Callable[[Path], Any], other: Callable[[Path], Any]) -> Callable[[Path], Any]:
    def both(path: Path) -> bool | None:
        x = one(path)
        if x is False:
            return False
        y = other(path)
        return False if y is False else None if x is None or y is None else True

    return both


def _or(one: Callable[[Path], Any], other: Callable[[Path], Any]) -> Callable[[Path], Any]:
    def either(path: Path) -> bool | None:
        x = one(path)
        if x is True:
            return True
        y = other(path)
        return True if y is True else None if x is None or y is None else False

    return either


def _not(one: Callable[[Path], Any]) -> Callable[[Path], Any]:
    return lambda path: None if (x := one(path)) is None else not x


def _same(x: Any, y: Any, key: Callable[[Any], Any]) -> bool:
    return x is y if x is None or y is None else bool(key(x) == key(y))


_LOGIC: dict[str, Callable[..., Callable[[Path], Any]]] = {"AND": _and, "OR": _or, "NOT": _not}
_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda x, y: x == y,
    "<=>": lambda x, y: x == y,
    "<>": lambda x, y: x != y,
    "<": lambda x, y: x < y,
    "<=": lambda x, y: x <= y,
    ">": lambda x, y: x > y,
    ">=": lambda x, y: x >= y,
}
_OF_NUMBER: dict[str, Callable[[Any], Any]] = {"NEGATIVE": lambda x: -x, "ABS": abs}
