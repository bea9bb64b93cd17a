"""Stranger: a JSON object that somebody else wrote, read part by part; each part has the type that is asked for."""

from collections.abc import Callable
from typing import Any, Self, TypeVar

from spark_rowtime.types.arguments import is_whole
from spark_rowtime.types.json_values import load
from spark_rowtime.types.timestamps import END
from spark_rowtime.types.values import FIRST_TIME

MOST_CHARACTERS = 1_000_000
"""The largest text of another party that is parsed; a longer one is refused."""
_LARGEST = (1 << 63) - 1
_Part = TypeVar("_Part")


class Stranger:
    """One object. Every call raises ValueError where a part is of another type; a part that is missing is None."""

    def __init__(self, given: Any) -> None:
        if not isinstance(given, dict):
            raise _other("the object")
        self._given: dict[str, Any] = given

    @classmethod
    def of_text(cls, text: str) -> Self:
        """Reads the text of an object."""
        if len(text) > MOST_CHARACTERS:
            raise ValueError("too large")
        return cls(load(text))

    def __contains__(self, name: str) -> bool:
        return self._given.get(name) is not None

    def text(self, name: str) -> str | None:
        """A text that UTF-8 can encode."""
        value = self._given.get(name)
        if value is not None and not isinstance(value, str):
            raise _other(name)
        return value if value is None else _encodable(value)

    def whole(self, name: str) -> int | None:
        """A whole number of 64 bits."""
        value = self._given.get(name)
        if value is not None and not (is_whole(value) and -_LARGEST <= value <= _LARGEST):
            raise _other(name)
        return value

    def time(self, name: str) -> int | None:
        """A time in microseconds, at most the end of time."""
        value = self.whole(name)
        if value is not None and value < FIRST_TIME:
            raise _other(name)
        return None if value is None else min(value, END)

    def flag(self, name: str) -> bool:
        """True or False; False if it is missing."""
        value = self._given.get(name, False)
        if not isinstance(value, bool):
            raise _other(name)
        return value

    def part(self, name: str) -> "Stranger | None":
        """An object within."""
        value = self._given.get(name)
        return None if value is None else Stranger(value)

    def parts(self, name: str) -> "list[Stranger]":
        """A list of objects; empty if it is missing."""
        return [Stranger(value) for value in self._list(name)]

    def texts(self, name: str) -> list[str]:
        """A list of texts; empty if it is missing."""
        return [text for value in self._list(name) if (text := Stranger({name: value}).text(name)) is not None]

    def all(self, of: "Callable[[Stranger, str], _Part | None]") -> dict[str, _Part]:
        """All parts, each read by ``of``, such as ``Stranger.time``; without those that are null."""
        return {_encodable(name): found for name in self._given if (found := of(self, name)) is not None}

    def shown(self, name: str) -> str:
        """A part of any type, as a text that UTF-8 can encode."""
        return _encodable(str(self._given.get(name)))

    def _list(self, name: str) -> list[Any]:
        value = self._given.get(name, [])
        if not isinstance(value, list):
            raise _other(name)
        return value


def _encodable(text: str) -> str:
    return text.encode(errors="replace").decode()


def _other(name: str) -> ValueError:
    return ValueError(f"{name} is of another type")
