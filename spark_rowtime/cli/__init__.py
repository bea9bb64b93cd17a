"""The command ``rowtime``, with one file per family of commands. Only ``jar`` imports PySpark."""

import errno
import os
import shlex
import signal
from collections.abc import Callable, Iterable
from typing import Any

import click
from click.shell_completion import CompletionItem

try:
    from spark_rowtime.cli.admin import adopt, alter, check, close, copy, delete, detach, list_streams, rename
    from spark_rowtime.cli.announce import announce
    from spark_rowtime.cli.drain import drain
    from spark_rowtime.cli.gc import gc
    from spark_rowtime.cli.host import run
    from spark_rowtime.cli.output import as_json, echo_json, harmless
    from spark_rowtime.cli.send import send
    from spark_rowtime.cli.serve import serve
    from spark_rowtime.cli.streams import create, describe
    from spark_rowtime.cli.tail import rejected, tail
    from spark_rowtime.cli.watch import watch
    from spark_rowtime.cli.why import wait, why
    from spark_rowtime.errors import RowtimeError
    from spark_rowtime.stream_description import describeStream
    from spark_rowtime.stream_info import StreamInfo
    from spark_rowtime.types.arguments import did_you_mean, nearest
except KeyboardInterrupt:  # to load all this takes a second
    raise SystemExit(128 + signal.SIGINT) from None


@click.command()
@as_json
def jar(as_json: bool) -> None:
    """Print the path of the jar with Spark's extension, for spark.jars."""
    from spark_rowtime import jarPath  # noqa: PLC0415  (the only command that needs PySpark)

    if as_json:
        echo_json({"jar": str(jarPath())})
    else:
        click.echo(jarPath())


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


class _Commands(click.Group):
    """Prints a RowtimeError as one message without a traceback. The exit code is then 1; of wrong usage it is 2.

    Of a command that Ctrl-C has ended it is that of any program that SIGINT has ended, once all is closed.
    """

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except RowtimeError as error:
            raise click.ClickException("\n".join(map(harmless, str(error).split("\n")))) from error
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            raise click.ClickException(f"The output cannot be written ({error.strerror}).") from error
        except KeyboardInterrupt:
            click.echo("\nAborted!", err=True)
            raise SystemExit(128 + signal.SIGINT) from None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Finds the command; if there is none of that name, the error names the nearest."""
        name = args[0]
        if self.get_command(ctx, name) is None and not name.startswith("-"):
            commands = self.list_commands(ctx)
            hint = did_you_mean(nearest(name, commands))
            ctx.fail(f"No such command {name!r}.{hint} The commands are {', '.join(commands)}.")
        return super().resolve_command(ctx, args)


@click.group(cls=_Commands)
@click.version_option(package_name="spark-rowtime")
def main() -> None:
    """Create, inspect, fill and read streams of rows and rowtime bounds."""


for _command in (
    create,
    alter,
    describe,
    why,
    wait,
    close,
    detach,
    send,
    run,
    watch,
    tail,
    rejected,
    drain,
    announce,
    gc,
    check,
    copy,
    rename,
    adopt,
    delete,
    list_streams,
    serve,
    jar,
):
    main.add_command(_command)
add_completion(main)
