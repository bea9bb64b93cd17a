"""The commands ``rowtime why`` and ``rowtime wait``."""

from datetime import UTC, datetime, timedelta

import click

from spark_rowtime.admin.description import show_bound
from spark_rowtime.cli.intervals import INTERVAL
from spark_rowtime.cli.output import as_json, duration, echo_json, fact, marked, say, say_all, text_width
from spark_rowtime.diagnosis.explanation import Explanation
from spark_rowtime.diagnosis.wait import wait as wait_for
from spark_rowtime.diagnosis.why import why as explain
from spark_rowtime.drain.tables.why import is_table, whyTable
from spark_rowtime.errors import RowtimeError, WaitTimeoutError
from spark_rowtime.types.timestamps import show_micros, to_micros

COMPLETE, NOT_COMPLETE, CANNOT_TELL = 0, 1, 2
"""The exit statuses."""
_LINKS = ("link", "kind", "bound", "behind", "moved")

_WITHIN = click.option(
    "--within",
    multiple=True,
    metavar="FOLDER",
    help="Follow queries there, too; repeat it. Or iceberg:CATALOG.",
)


@click.command()
@click.argument("stream")
@click.option(
    "--at", help="The time that the stream is to be complete at; without it, the latest of its feeds. A table needs it."
)
@click.option("--query", help="The name or id of a query that reads the stream: about its output instead.")
@click.option(
    "--silent-after",
    type=INTERVAL,
    default="10 s",
    show_default=True,
    help="A producer that sent nothing for so long is silent.",
)
@_WITHIN
@as_json
@click.pass_context
def why(
    context: click.Context,
    stream: str,
    at: str | None,
    query: str | None,
    silent_after: str,
    within: tuple[str, ...],
    as_json: bool,
) -> None:
    """Name what holds a stream or a table, and what would release it.

    A table is delta:PATH, or iceberg:CATALOG.NAMESPACE.TABLE.

    The exit status is 0 if the stream is complete at the time, 1 if it is not, and 2 if that cannot be told.
    """
    try:
        if is_table(stream):
            found = whyTable(stream, at, query=query, silentAfter=silent_after, within=within)
        else:
            found = explain(stream, at, query=query, silentAfter=silent_after, within=within)
    except RowtimeError as error:
        say(f"Error: {error}", err=True)
        context.exit(CANNOT_TELL)
    if as_json:
        echo_json(found.toJson())
    else:
        say_all(lines_of(found, text_width(), datetime.now(UTC)))
    context.exit(COMPLETE if found.complete else NOT_COMPLETE)


def lines_of(found: Explanation, width: int, now: datetime) -> list[str]:
    """The text of ``rowtime why``, in lines of at most ``width`` characters where names and paths allow it."""
    facts = [
        ("table" if is_table(found.stream) else "stream", found.stream),
        ("at", "no time yet: no feed has sent anything" if found.at is None else show_micros(to_micros(found.at))),
        ("complete", f"{'yes' if found.complete else 'no'}; the bound is {show_bound(found.bound)}"),
        ("held by", found.holder or ""),
        ("cause", "" if found.complete else f"{found.cause.value}: {found.note}"),
        ("remedy", found.remedy),
        *(("not followed", path) for path in found.notFollowed),
    ]
    lines = [line for label, text in facts if text for line in fact(label, text, width)]
    return [*lines, "", *_chain(found, width, now)]


def _chain(found: Explanation, width: int, now: datetime) -> list[str]:
    rows = [
        (
            link.name,
            link.kind,
            show_bound(link.bound),
            "" if link.behindSeconds is None else duration(timedelta(seconds=link.behindSeconds)),
            "" if link.lastMoved is None else f"{duration(now - link.lastMoved)} ago",
        )
        for link in found.chain
    ]
    causes = [link.cause is not None for link in found.chain]
    return [line for lines in marked(_LINKS, rows, causes, width) for line in lines]


@click.command()
@click.argument("token")
@click.argument("stream")
@click.option("--timeout", type=INTERVAL, help="How long to wait, such as '30 s'; forever without it.")
@_WITHIN
@click.pass_context
def wait(context: click.Context, token: str, stream: str, timeout: str | None, within: tuple[str, ...]) -> None:
    """Wait until what was flushed is in the results of a stream.

    TOKEN is what sink.flush() has returned. The exit status is 0 when it is there, 1 if it is not after the timeout,
    and 2 if that cannot be told.
    """
    status = COMPLETE
    try:
        wait_for(token, stream, timeout=timeout, within=within)
    except RowtimeError as error:
        say(f"Error: {error}", err=True)
        status = NOT_COMPLETE if isinstance(error, WaitTimeoutError) else CANNOT_TELL
    context.exit(status)
