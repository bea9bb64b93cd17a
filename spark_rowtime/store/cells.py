"""Which values the cells of a store's tables may have: whoever may write there could put any other into them.

Law (*no other value*): a row becomes an object of Python only if each number and status in it is one that a store
writes. So every time in an object can be shown, and a number that is missing is None where that is allowed, and nowhere
else.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from spark_rowtime.bounds.members import Status
from spark_rowtime.types.short_repr import short_repr
from spark_rowtime.types.timestamps import END
from spark_rowtime.types.values import FIRST_TIME


class Whole(NamedTuple):
    """The whole numbers from ``least`` to ``largest``, and perhaps NULL."""

    least: int
    largest: int
    null: bool = False

    def has(self, value: Any) -> bool:
        """Whether a cell may have the value."""
        return self.least <= value <= self.largest if type(value) is int else self.null and value is None


class Text(NamedTuple):
    """One of these texts."""

    texts: frozenset[str]

    def has(self, value: Any) -> bool:
        """Whether a cell may have the value."""
        return value in self.texts


STATUS = Text(frozenset(status.value for status in Status))
TIME, COUNT = Whole(FIRST_TIME, END), Whole(0, (1 << 63) - 1)
TIME_OR_NONE, COUNT_OR_NONE = TIME._replace(null=True), COUNT._replace(null=True)
SHIFT = Whole(-END // 2, END // 2)
"""What is added to a reading of a clock, so that the sum is a time."""


class Cells:
    """The cells of a row that are checked, each by the name of its column."""

    def __init__(self, columns: Sequence[str], **allowed: Whole | Text) -> None:
        self._checked = [(columns.index(name), name, values) for name, values in allowed.items()]

    def strange(self, row: Sequence[Any]) -> str | None:
        """Returns what is wrong with a row; None if nothing is."""
        for at, name, values in self._checked:
            if not values.has(row[at]):
                return f"{name} is {short_repr(row[at])}"
        return None
