"""Template: a text with {placeholders} for the period that is announced, and for secrets in environment variables."""

import os
import re
from collections.abc import Callable, Mapping, Sequence

from spark_rowtime.errors import InvalidOptionError
from spark_rowtime.types.arguments import did_you_mean, nearest

_PLACEHOLDER = re.compile(r"\{([A-Za-z_][^{}\"\s]*)\}")
_ENVIRONMENT = "env:"
NAMES = ("start", "end", "key", "stream", "every")


class Template:
    """A text in which ``{start}``, ``{env:TOKEN}`` and the like stand for values. Other braces stand for themselves.

    ``secrets`` are the values of the environment variables that it names; no error shows them.
    """

    def __init__(self, text: str, option: str, names: Sequence[str] = NAMES, *, blanks: bool = True) -> None:
        """``names``: the placeholders that it may have besides those of environment variables.

        ``blanks``: whether the values of these may have blanks, which a URL has none of.
        """
        self.text = text
        self._environment: dict[str, str] = {}
        for name in _PLACEHOLDER.findall(text):
            if name.startswith(_ENVIRONMENT):
                self._environment[name] = _variable(name.removeprefix(_ENVIRONMENT), option, blanks)
            elif name not in names:
                raise _unknown(name, option, names)

    @property
    def secrets(self) -> list[str]:
        """The values of its environment variables."""
        return list(self._environment.values())

    def fill(self, fields: Mapping[str, str], write: Callable[[str], str] = str, *, raw: bool = False) -> str:
        """The text with the values of ``fields`` and of the environment, each as ``write`` writes it.

        ``raw``: the values of the environment are written as they are.
        """

        def value(found: re.Match[str]) -> str:
            name = found[1]
            if name in self._environment:
                return self._environment[name] if raw else write(self._environment[name])
            return write(fields[name])

        return _PLACEHOLDER.sub(value, self.text)


def _variable(name: str, option: str, blanks: bool) -> str:
    value = os.environ.get(name, "")
    if not blanks and " " in value:
        raise InvalidOptionError(
            f"{option} names the environment variable {name}, which has a blank. No URL has one: set it to what is to "
            "stand in the URL, with %20 for a blank that belongs there.",
            option=option,
            value=name,
        )
    if not value or not value.isprintable():
        problem = "holds characters that cannot be printed, such as an end of line" if value else "is not set, or empty"
        raise InvalidOptionError(
            f"{option} names the environment variable {name}, which {problem}. Set it to one line of text.",
            option=option,
            value=name,
        )
    return value


def _unknown(name: str, option: str, names: Sequence[str]) -> InvalidOptionError:
    known = ", ".join(f"{{{known}}}" for known in (*names, "env:NAME"))
    return InvalidOptionError(
        f"{option} has {{{name}}}, which stands for nothing.{did_you_mean(nearest(name, names))} It can have {known}; "
        "the last is the value of an environment variable.",
        option=option,
        value=name,
    )
