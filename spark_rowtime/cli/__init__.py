"""The command ``rowtime``, with one file per family of commands. Only ``jar`` imports PySpark."""

from typing import Any

import click

from spark_rowtime.cli.admin import adopt, alter, check, copy, delete, list_streams, rename
from spark_rowtime.cli.announce import announce
from spark_rowtime.cli.completion import add_completion
from spark_rowtime.cli.drain import drain
from spark_rowtime.cli.gc import gc
from spark_rowtime.cli.host import run
from spark_rowtime.cli.jar import jar
from spark_rowtime.cli.producers import close, detach
from spark_rowtime.cli.send import send
from spark_rowtime.cli.serve import serve
from spark_rowtime.cli.streams import create, describe
from spark_rowtime.cli.tail import rejected, tail
from spark_rowtime.cli.watch import watch
from spark_rowtime.cli.why import wait, why
from spark_rowtime.errors import RowtimeError
from spark_rowtime.types.arguments import did_you_mean, nearest


class _Commands(click.Group):
    """Prints a RowtimeError as one message without a traceback. The exit code is then 1; of wrong usage it is 2."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except RowtimeError as error:
            raise click.ClickException(str(error)) from error

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
