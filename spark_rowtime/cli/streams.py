"""The commands ``rowtime create`` and ``rowtime describe``."""

from datetime import UTC, datetime

import click

from spark_rowtime.admin.description import described
from spark_rowtime.cli.description import lines_of
from spark_rowtime.cli.output import as_json, echo_json, text_width
from spark_rowtime.errors import StreamNotFoundError
from spark_rowtime.store.base import REJECTED_BYTES
from spark_rowtime.stream import createStream, describeStream


@click.command()
@click.argument("stream")
@click.option("--schema", required=True, help="DDL, such as 'rowtime TIMESTAMP NOT NULL, ticker STRING'.")
@click.option("--max-lag", help="How far, in rowtime, the slowest producer may hold the fastest back: '1 hour'.")
@click.option("--idle-timeout", help="A producer that is silent for longer stops counting: '30 s'.")
@click.option(
    "--max-ahead",
    default="1 day",
    show_default=True,
    help="Reject rows and refuse bounds that are further ahead of the clock; 'unlimited': take any.",
)
@click.option("--retain-age", help="Remove rows committed at least this long ago that no reader needs: '7 days'.")
@click.option("--retain-bytes", type=click.IntRange(0), help="Remove the oldest rows beyond this many bytes, likewise.")
@click.option(
    "--retain-rejected",
    type=click.IntRange(0),
    default=REJECTED_BYTES,
    show_default=True,
    help="Keep the newest rejected rows, up to this many bytes.",
)
@click.option(
    "--bounds-before-rows/--no-bounds-before-rows", default=True, help="Whether a bound counts before the first row."
)
@click.option(
    "--producer", "producers", multiple=True, help="A producer that the stream waits for; repeat it for each."
)
@click.option("--closed", is_flag=True, help="No other producers may send than those of --producer.")
@click.option(
    "--location", metavar="URL", help="Where a stream in PostgreSQL keeps large trains: 's3://bucket/rowtime'."
)
@click.option("--exist-ok", is_flag=True, help="Succeed if a stream of the same schema exists already.")
def create(
    *,
    stream: str,
    schema: str,
    max_lag: str | None,
    idle_timeout: str | None,
    max_ahead: str,
    retain_age: str | None,
    retain_bytes: int | None,
    retain_rejected: int,
    bounds_before_rows: bool,
    producers: tuple[str, ...],
    closed: bool,
    location: str | None,
    exist_ok: bool,
) -> None:
    """Create an empty stream."""
    createStream(
        stream,
        schema,
        boundsBeforeRows=bounds_before_rows,
        maxLag=max_lag,
        idleTimeout=idle_timeout,
        maxAhead=max_ahead,
        retainAge=retain_age,
        retainBytes=retain_bytes,
        retainRejected=retain_rejected,
        producers=producers,
        closed=closed,
        location=location,
        existOk=exist_ok,
    )


@click.command()
@click.argument("stream")
@as_json
def describe(stream: str, as_json: bool) -> None:
    """Show a stream's schema, how far it has come, its producers and readers, and what holds its bound back."""
    info = describeStream(stream)
    if as_json:
        echo_json(described(info))
    else:
        for line in lines_of(info, text_width(), datetime.now(UTC)):
            click.echo(line)


def uncreated(error: StreamNotFoundError, schema_from: str) -> StreamNotFoundError:
    """Returns the error with a hint. ``schema_from`` is what the command would take the schema from."""
    hint = f"If the path is right, add --create, which creates the stream with the schema of {schema_from}."
    return StreamNotFoundError(f"{error} {hint}", **error.values)
