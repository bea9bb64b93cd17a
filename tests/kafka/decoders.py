"""Functions that decode the messages of a test."""

from typing import Any

from tests.kafka.feeds import moment


def bound(message: Any) -> Any:
    """A message such as ``until 5`` is a bound."""
    word, _, seconds = message.value().decode().partition(" ")
    return moment(float(seconds)) if word == "until" else None


def row(message: Any) -> Any:
    """A message such as ``1 3`` is the row 1 at 3 seconds; ``skip`` is none."""
    n, _, seconds = message.value().decode().partition(" ")
    return None if n == "skip" else (moment(float(seconds)), int(n))
