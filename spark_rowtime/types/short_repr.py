"""A value as an error shows it."""

from typing import Any

REPR_CHARACTERS = 200
"""Characters of a value that an error shows; a row may be megabytes."""


def short_repr(value: Any) -> str:
    """``repr``, cut where it is long; the type alone where there is no repr."""
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001  (the value is a stranger's)
        return f"<{type(value).__name__}>"
    return text if len(text) <= REPR_CHARACTERS else f"{text[:REPR_CHARACTERS]}... ({len(text)} characters)"
