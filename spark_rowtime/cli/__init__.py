"""The command ``rowtime``, with one file per family of commands. Only ``jar`` imports PySpark."""

from typing import Any

import click

from spark_rowtime.cli.admin import copy, delete, list_streams, rename
from spark_rowtime.cli.alter import alter
from spark_rowtime.cli.check import check
from spark_rowtime.cli.gc import gc
from spark_rowtime.cli.host import drain, run
from spark_rowtime.cli.jar import jar
from spark_rowtime.cli.send import send
from spark_rowtime.cli.streams import create, describe, detach
from spark_rowtime.cli.tail import tail
from spark_rowtime.errors import RowtimeError


class _Commands(click.Group):
    """Prints a RowtimeError as one message without a traceback. The exit code is then 1."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except RowtimeError as error:
            raise click.ClickException(str(error)) from error


@click.group(cls=_Commands)
@click.version_option(package_name="spark-rowtime")
def main() -> None:
    """Create, inspect, fill and read streams of rows and rowtime bounds."""


for _command in (
    create,
    alter,
    describe,
    detach,
    send,
    run,
    tail,
    drain,
    gc,
    check,
    copy,
    rename,
    delete,
    list_streams,
    jar,
):
    main.add_command(_command)
