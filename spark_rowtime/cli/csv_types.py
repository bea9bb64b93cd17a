"""Which types the columns of a CSV file have: the inferred ones, where these keep what each text says."""

import re
from collections.abc import Iterable, Mapping
from decimal import Decimal, InvalidOperation
from math import inf

import pyarrow as pa
import pyarrow.compute as pc

from spark_rowtime.types.values import LARGEST_FLOAT, column

_SPACES = r"[ \t]*"
_WHOLE = rf"^{_SPACES}(0|-?[1-9][0-9]*){_SPACES}$"
_NUMBER = (
    rf"^{_SPACES}-?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?{_SPACES}$"
    rf"|^{_SPACES}(nan|NaN|NAN|-?(inf|Inf|INF|infinity|Infinity|INFINITY)){_SPACES}$"
)
_TRUTH = rf"^{_SPACES}(true|True|TRUE|false|False|FALSE){_SPACES}$"
_BEYOND_MICROS = r"\.[0-9]{6}0*[1-9]"
_SAFE_DIGITS = 15
"""A double has each decimal number of so many digits, and a 64-bit integer each integer."""


def kept_types(
    inferred: Mapping[str, pa.DataType], texts: Iterable[pa.RecordBatch], rowtime: str
) -> dict[str, pa.DataType]:
    """Returns the types of columns, by name; ``texts`` are all rows, with each column that is ``unsure`` as STRING.

    Law: a column has the inferred type only if ``keeps`` is true of all its texts; else it is DOUBLE if that keeps what
    is inferred as an integer; else STRING. The column ``rowtime`` becomes a time anyway, of microseconds.
    """
    left = {name: _candidates(inferred[name]) for name in unsure(inferred, rowtime)}
    for batch in texts:
        for name, kinds in left.items():
            left[name] = [kind for kind in kinds if keeps(kind, batch.column(name))]
    return {**inferred, **{name: kinds[0] if kinds else pa.string() for name, kinds in left.items()}}


def unsure(inferred: Mapping[str, pa.DataType], rowtime: str) -> list[str]:
    """The columns whose inferred type may not keep what a text says."""
    return [name for name, kind in inferred.items() if name != rowtime and _candidates(kind)]


_DECIMAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def to_decimal(text: str, kind: pa.DataType) -> pa.Array:
    """The text as a DECIMAL; raises ValueError if it is none of this type."""
    if not _DECIMAL.fullmatch(text):
        raise ValueError("it is not a number")
    try:
        return column([Decimal(text)], kind)
    except ArithmeticError:
        raise ValueError("it is not a number that a DECIMAL holds") from None


def keeps(kind: pa.DataType, texts: pa.Array) -> bool:
    """Whether each text says a value of a type, and that value says all that the text does.

    A number loses zeros and a plus sign in front, as codes and telephone numbers have them, and a double digits;
    1 is not read as TRUE; a time loses what is less than a microsecond. Zeros at the end of a fraction say nothing.
    """
    if pa.types.is_timestamp(kind):
        return not _any(pc.match_substring_regex(texts, _BEYOND_MICROS))
    pattern = {pa.int64(): _WHOLE, pa.float64(): _NUMBER, pa.bool_(): _TRUTH}[kind]
    if _any(pc.invert(pc.match_substring_regex(texts, pattern))):
        return False
    if kind == pa.bool_():
        return True
    long = texts.filter(pc.greater(pc.utf8_length(texts), _SAFE_DIGITS)) if kind == pa.int64() else _long(texts)
    return all(map(_is_bigint if kind == pa.int64() else _is_double, long.to_pylist()))


def require_finite(kind: pa.DataType, text: str) -> None:
    """Raises ValueError if a text says a number beyond the type, FLOAT or DOUBLE: Arrow reads it as an infinite one."""
    name, least_beyond = ("FLOAT", LARGEST_FLOAT) if pa.types.is_float32(kind) else ("DOUBLE", inf)
    if any(map(str.isdigit, text)) and abs(float(text)) >= least_beyond:
        raise ValueError(f"it is beyond the largest {name}")


def _candidates(kind: pa.DataType) -> list[pa.DataType]:
    """The types that may keep what is inferred as one, the best first; none if it keeps each text anyway."""
    if kind == pa.int64():
        return [kind, pa.float64()]
    return [kind] if kind in (pa.float64(), pa.bool_()) or pa.types.is_timestamp(kind) else []


def _long(texts: pa.Array) -> pa.Array:
    """The numbers that a double may not have: with many digits or an exponent, and not written as it is shown."""
    long = texts.filter(
        pc.or_(pc.greater(pc.utf8_length(texts), _SAFE_DIGITS), pc.match_substring(texts, "e", ignore_case=True))
    )
    try:
        return long.filter(pc.not_equal(long.cast(pa.float64()).cast(pa.string()), long))
    except pa.ArrowInvalid:  # a form that this cast does not read
        return long


def _is_bigint(text: str) -> bool:
    return -(1 << 63) <= int(text) < 1 << 63


def _is_double(text: str) -> bool:
    """Whether the shortest text of the double that is nearest to a number says the same number."""
    try:
        number, read = Decimal(text.strip()), Decimal(repr(float(text)))
    except InvalidOperation:  # an exponent of twenty digits
        return False
    return number == read or (number.is_nan() and read.is_nan())


def _any(which: pa.Array) -> bool:
    return bool(pc.any(which).as_py())
