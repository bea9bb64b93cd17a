"""Checks of arguments of the public functions, for which a caller may pass any value."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from functools import wraps
from typing import Any, ParamSpec, TypeGuard, TypeVar
from unicodedata import category

from spark_rowtime.errors import InvalidOptionError, UnknownOptionError
from spark_rowtime.types.short_repr import short_repr

LONGEST_NAME = 500
"""The largest number of characters of a new name."""
_UNSEEN = ("Cc", "Cf", "Zl", "Zp")
"""Unicode's categories of control characters, of those of width 0 or that turn a text around, and of line breaks."""
_LARGEST_COUNT = (1 << 63) - 1
_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


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
    raise _refused(value, name, "must be a string without NUL characters and without unpaired surrogates")


def to_texts(value: Any, name: str) -> dict[str, str]:
    """A mapping of texts by name. Raises InvalidOptionError, which names ``name`` and shows no value, for others."""
    if isinstance(value, Mapping) and all(isinstance(text, str) for pair in value.items() for text in pair):
        return dict(value)
    raise InvalidOptionError(
        f"{name} must be a dict of texts by name, not a {type(value).__name__} with other values. (They are not shown: "
        "they may be secret.)",
        option=name,
    )


def to_name(value: Any, name: str) -> str:
    """Does what :func:`to_text` does for a new name, and refuses one that is no line of a text, or too long for one.

    So it can be shown in tables, logs, metrics and terminals. Names that are in a stream already are not looked at.
    """
    text = to_line(value, name)
    if not text.strip():
        raise _refused(value, name, "must not be empty")
    if len(text) > LONGEST_NAME:
        raise _refused(value, name, f"is too long for a name: it may have {LONGEST_NAME} characters")
    return text


def to_line(value: Any, name: str) -> str:
    """Does what :func:`to_text` does, and refuses line breaks, control characters, and those that nobody sees."""
    text = to_text(value, name)
    found = next(filter(is_unseen, text), None)
    if found is not None:
        why = f"has a line break, a control character or another one that cannot be seen, {found!a}"
        raise _refused(value, name, f"{why}. Leave these out")
    return text


def is_unseen(character: str) -> bool:
    """Whether a character cannot be seen, but breaks a line, moves a terminal or makes two texts look alike."""
    return category(character) in _UNSEEN


def is_whole(value: Any) -> TypeGuard[int]:
    """Whether ``value`` is a whole number; True and False, which are integers in Python, are not."""
    return isinstance(value, int) and not isinstance(value, bool)


def to_count(value: Any, name: str, least: int = 0, most: int = _LARGEST_COUNT, unit: str = "") -> int:
    """Returns a whole number from ``least`` to ``most``; raises InvalidOptionError, which names ``name``, for others.

    ``unit``: what is counted, for the message.
    """
    if is_whole(value) and least <= value <= most:
        return int(value)
    limits = f", {least} or more" if most == _LARGEST_COUNT else f" from {least} to {most}"
    raise _refused(value, name, f"must be a whole number{unit and f' of {unit}'}{limits}")


def to_choice(value: Any, name: str, *allowed: str) -> str:
    """Returns one of ``allowed``; raises InvalidOptionError, which names ``name``, for other values."""
    if isinstance(value, str) and value in allowed:
        return value
    raise _refused(value, name, f"is neither {' nor '.join(map(repr, allowed))}")


def to_flag(value: Any, name: str) -> bool:
    """Returns True or False; raises InvalidOptionError, which names ``name``, for other values, such as "no"."""
    if isinstance(value, bool):
        return value
    raise _refused(value, name, "must be True or False")


def _refused(value: Any, name: str, why: str) -> InvalidOptionError:
    shown = short_repr(value)
    return InvalidOptionError(f"{name}={shown} {why}.", option=name, value=shown)


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Returns the one of ``known`` that is most similar to ``name``; None if none is similar."""
    return next(iter(get_close_matches(name, list(known), n=1, cutoff=0.5)), None)


def did_you_mean(name: str | None) -> str:
    """Returns the sentence of an error that names the nearest, with a blank before it; empty for None."""
    return f" Did you mean {name!r}?" if name else ""


_OTHER_WORDS = {
    "name": "producer", "startingposition": "start", "startingoffsets": "startingposition", "onlate": "ondisorder",
    "maxfilespertrigger": "maxrowspertrigger", "maxoffsetspertrigger": "maxrowspertrigger",
}  # fmt: skip
"""Names that other calls, or other sources of Spark, have for the same thing. Letters would point to something else."""


def unknown_option(name: Any, known: Iterable[str], problem: str) -> UnknownOptionError:
    """The error for an option or a keyword that is not one of ``known``; it names the nearest, in any case of letters.

    ``problem`` is a sentence that says whose option it is.
    """
    by_lower = {option.lower(): option for option in known}
    meant = _OTHER_WORDS.get(str(name).lower())
    lower = meant if meant in by_lower else nearest(str(name).lower(), by_lower)
    near = by_lower[lower] if lower else None
    options = ", ".join(by_lower.values())
    return UnknownOptionError(
        f"{problem}{did_you_mean(near)} The options are {options}.", option=str(name), nearest=near
    )


def known_keywords(function: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """Makes a function raise UnknownOptionError, which names the nearest keyword, for one that it does not have."""
    known = list(inspect.signature(function).parameters)

    @wraps(function)
    def checked(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
        for name in kwargs:
            if name not in known:
                raise unknown_option(name, known, f"{function.__name__} has no option {name!r}.")
        return function(*args, **kwargs)

    return checked
