"""The command ``rowtime wait``."""

import click

from spark_rowtime.cli.why import CANNOT_TELL, COMPLETE, NOT_COMPLETE
from spark_rowtime.diagnosis.wait import wait as wait_for
from spark_rowtime.errors import RowtimeError, WaitTimeoutError


@click.command()
@click.argument("token")
@click.argument("stream")
@click.option("--timeout", help="How long to wait, such as '30 s'; forever without it.")
@click.pass_context
def wait(context: click.Context, token: str, stream: str, timeout: str | None) -> None:
    """Wait until what was flushed is in the results of a stream.

    TOKEN is what sink.flush() has returned. The exit status is 0 when it is there, 1 if it is not after the timeout,
    and 2 if that cannot be told.
    """
    status = COMPLETE
    try:
        wait_for(token, stream, timeout=timeout)
    except RowtimeError as error:
        click.echo(f"Error: {error}", err=True)
        status = NOT_COMPLETE if isinstance(error, WaitTimeoutError) else CANNOT_TELL
    context.exit(status)
