"""Compares rows as a test expects them with rows as they came, and describes a difference line by line."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

Row = Sequence[Any]
_WORDS = re.compile(r"(?!(None|True|False|nan|inf)$)[^\W\d]([\w .:/-]*[\w.:/-])?|\d+(:\d+)+(\.\d+)?")
"""Words, and times of day: texts that no other value is written as, so that they need no quotes."""


def difference(expected: Iterable[Row], found: Iterable[Row]) -> list[str]:
    """Describes how ``found`` differs from ``expected`` as a bag of rows; an empty list if it does not.

    A line starts with "-" for a row that is missing, with "+" for one that was not expected, and with a blank for one
    that is in both. Lines are sorted by the rows' texts, so that a row and its wrong twin are next to each other.

    Example:
        >>> difference([("Berlin", 3)], [("Berlin", 4)])
        ['- Berlin, 3', '+ Berlin, 4']
        >>> difference([("Berlin", 3)], [("Berlin", 3)])
        []
    """
    wanted, came = Counter(map(show, expected)), Counter(map(show, found))
    if wanted == came:
        return []
    lines = []
    for text in sorted(wanted.keys() | came.keys()):
        both = min(wanted[text], came[text])
        lines += [f"  {text}"] * both + [f"- {text}"] * (wanted[text] - both) + [f"+ {text}"] * (came[text] - both)
    return lines


def show(row: Row) -> str:
    """The values of a row as one line; times in ISO 8601, other values as Python writes them, words without quotes.

    Law: two rows of one schema have the same line only if they have the same values.

    Example:
        >>> show((datetime(2026, 1, 5, 14, 30), "Berlin", None))
        '2026-01-05T14:30:00, Berlin, None'
    """
    return ", ".join(map(_show_value, row))


def _show_value(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    return value if isinstance(value, str) and _WORDS.fullmatch(value) else repr(value)
