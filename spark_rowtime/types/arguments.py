"""Checks of arguments of the public functions, for which a caller may pass any value."""

from typing import Any, TypeGuard

from spark_rowtime.errors import InvalidOptionError
from spark_rowtime.types.short_repr import short_repr


def to_text(value: Any, name: str) -> str:
    """A text that a stream keeps (a producer's or reader's name, a checkpoint) as a plain str.

    Raises InvalidOptionError, which names ``name``, for other values, for NUL characters, and for text that UTF-8
    cannot encode.
    """
    if isinstance(value, str) and "\x00" not in value:
        try:
            return value.encode().decode()
        except UnicodeEncodeError:
            pass
    raise InvalidOptionError(
        f"{name}={short_repr(value)} must be a string without NUL characters and without unpaired surrogates.",
        option=name,
    )


def is_whole(value: Any) -> TypeGuard[int]:
    """Whether ``value`` is a whole number; True and False, which are integers in Python, are not."""
    return isinstance(value, int) and not isinstance(value, bool)


def to_flag(value: Any, name: str) -> bool:
    """Returns True or False; raises InvalidOptionError, which names ``name``, for other values, such as "no"."""
    if isinstance(value, bool):
        return value
    raise InvalidOptionError(f"{name}={short_repr(value)} must be True or False.", option=name)
