"""The text of a value in an error message."""

from typing import Any

REPR_CHARACTERS = 200
"""The largest number of characters of a value that an error shows; a row may have megabytes."""


def short_repr(value: Any) -> str:
    """The ``repr`` of a value, truncated if it is long; only the type if ``repr`` fails."""
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001  (the value is the caller's, and may raise anything)
        return f"<{type(value).__name__}>"
    return text if len(text) <= REPR_CHARACTERS else f"{text[:REPR_CHARACTERS]}... ({len(text)} characters)"
