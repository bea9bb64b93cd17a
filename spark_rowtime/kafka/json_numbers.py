"""Numbers of JSON with a fraction or an exponent: their text is kept until the column is known that takes them."""

from decimal import Decimal
from math import isfinite
from typing import Any


class JsonNumber(Decimal):
    """A number as its text in JSON says it. Python's ``json`` would round it to a float."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def nearest_float(value: Any) -> Any:
    """The float nearest to a number of JSON. One beyond all floats stays as it is, and the sink refuses it."""
    if isinstance(value, JsonNumber) and isfinite(number := float(value)):
        return number
    return value
