"""The text of a value in an error message."""

import shlex
from collections.abc import Iterable, Sequence
from typing import Any

from spark_rowtime.errors import RowtimeError
from spark_rowtime.types.hidden import hide

REPR_CHARACTERS = 200
"""The largest number of characters of a value that an error shows; a row may have megabytes."""


def short_repr(value: Any) -> str:
    """The ``repr`` of a value, truncated if it is long; only the type if ``repr`` fails."""
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001  (the value is the caller's, and may raise anything)
        return f"<{type(value).__name__}>"
    return text if len(text) <= REPR_CHARACTERS else f"{text[:REPR_CHARACTERS]}... ({len(text)} characters)"


def some(texts: Sequence[str], most: int) -> str:
    """The first texts, and how many more there are.

    >>> some(["Berlin", "Köln", "Ulm"], 2)
    'Berlin, Köln and 1 more'
    >>> some(["Berlin", "Köln"], 2)
    'Berlin, Köln'
    """
    more = f" and {len(texts) - most} more" if len(texts) > most else ""
    return ", ".join(texts[:most]) + more


def shell_arguments(*texts: str) -> str:
    """The texts as the last arguments of a command, for a shell. One that begins with "-" is not taken for an option.

    >>> shell_arguments("my orders", "-x")
    "-- 'my orders' -x"
    """
    return shlex.join(["--", *texts] if any(text.startswith("-") for text in texts) else texts)


ERROR_CHARACTERS = 300
"""How many characters of an error short_error keeps."""


def traced(error: BaseException) -> BaseException | None:
    """The error, if a log is to show its traceback. A RowtimeError says in its text what happened, and what to do."""
    return None if isinstance(error, RowtimeError) else error


def short_error(error: BaseException, secrets: Iterable[str] = ()) -> str:
    r"""The class of an error and the first line of its message, as a stream records it for whoever asks why it stands.

    >>> short_error(ValueError("no such shop: 7\nstack"))
    'ValueError: no such shop: 7'

    ``secrets`` are hidden in it.
    """
    first = next(iter(hide(str(error), secrets).splitlines()), "")
    shown = f"{type(error).__name__}: {first}"[:ERROR_CHARACTERS]
    return shown.encode(errors="backslashreplace").decode()
