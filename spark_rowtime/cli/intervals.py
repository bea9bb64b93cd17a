"""INTERVAL: the type of options that are lengths of time."""

from typing import Any

import click

from spark_rowtime.errors import InvalidOptionError
from spark_rowtime.types.timestamps import to_required_interval


class Interval(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.2
    """A length of time, such as '1 hour', or one of ``words``. Another text is wrong usage, before anything is opened.

    The text is passed on as it is.
    """

    name = "interval"

    def __init__(self, *words: str) -> None:
        self._words = words

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Returns the text."""
        try:
            if value not in self._words:
                to_required_interval(value, "it")
        except InvalidOptionError:
            others = "".join(f", or {word!r}" for word in self._words)
            self.fail(
                f"{value!r} is no length of time. Write a number and a unit, such as '7 days' or '100 ms'{others}.",
                param,
                ctx,
            )
        return str(value)


INTERVAL = Interval()
