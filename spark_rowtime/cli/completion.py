"""What the shell completes beyond commands and options: paths of streams, and names of producers and readers."""

import os
import shlex
from collections.abc import Callable, Iterable
from typing import Any

import click
from click.shell_completion import CompletionItem

from spark_rowtime.errors import RowtimeError
from spark_rowtime.stream import StreamInfo, describeStream


class _Path(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.2
    """A directory. The text is passed on as it is: whether a stream is there, the command says."""

    name = "text"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Lets the shell complete directories."""
        del ctx, param
        return [CompletionItem(incomplete, type="dir")]


class _Name(click.ParamType):  # type: ignore[type-arg]
    """A name that the stream named before it knows."""

    name = "text"

    def __init__(self, names: Callable[[StreamInfo], Iterable[str]]) -> None:
        self._names = names

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Completes the names that begin so. A stream that cannot be read has none."""
        del param
        stream = ctx.params.get("stream") or next(iter(ctx.args), None)  # behind an option nothing is parsed yet
        try:
            info = describeStream(stream or "")
        except RowtimeError:
            return []
        shown = ((name, _quoted(name)) for name in self._names(info) if name.isprintable())
        return [
            CompletionItem(text) for name, text in shown if name.startswith(incomplete) or text.startswith(incomplete)
        ]


def _quoted(name: str) -> str:
    """The name as the shell reads it: others have chosen it. Bash takes what it gets as it is; the others quote it."""
    return shlex.quote(name) if os.environ.get("_ROWTIME_COMPLETE", "").startswith("bash") else name


_TYPES: dict[str, Any] = {
    **dict.fromkeys(("stream", "to", "folder", "paths"), _Path()),
    "producer": _Name(lambda info: [producer.name for producer in info.producers]),
    "forget": _Name(lambda info: [reader.name for reader in info.readers]),
}


def add_completion(group: click.Group) -> None:
    """Gives the arguments of all commands the types that complete them."""
    for command in group.commands.values():
        for param in command.params:
            if param.name in _TYPES and (isinstance(param, click.Argument) or param.name == "forget"):
                param.type = _TYPES[param.name]
