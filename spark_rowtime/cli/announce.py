"""The command ``rowtime announce``."""

from typing import Any

import click

from spark_rowtime.adapter.adapter import RESTART_SECONDS
from spark_rowtime.admin.description import show_bound
from spark_rowtime.announce.announcer import announcements, repetitions
from spark_rowtime.announce.http_call import is_secret
from spark_rowtime.announce.period import Period, iso_text
from spark_rowtime.announce.targets import METHODS
from spark_rowtime.cli.argument_texts import client_settings, config_for, config_option
from spark_rowtime.cli.host import terminable
from spark_rowtime.cli.intervals import INTERVAL
from spark_rowtime.cli.output import as_json, log_to_stderr, say
from spark_rowtime.cli.streams import waiting_for
from spark_rowtime.errors import InvalidOptionError
from spark_rowtime.stream_description import describeStream
from spark_rowtime.types.json_values import dump


@click.command()
@click.argument(
    "stream", metavar="STREAM|delta:PATH|iceberg:CATALOG.NAMESPACE.TABLE|parquet:FOLDER|kafka://HOST:PORT/TOPIC"
)
@click.option(
    "--every", required=True, help="The length of a period, such as 15min, 1h, 1d, '1 week', '1 month' or '1 year'."
)
@click.option(
    "--to",
    required=True,
    metavar="KIND:PLACE",
    help="success-file:PATTERN, http:URL, airflow:URL or dagster:URL. A pattern is a folder, such as "
    "out/date=%Y-%m-%d/hour=%H.",
)
@click.option("--tz", help="The time zone of the periods, such as Europe/Berlin.  [default: UTC]")
@click.option(
    "--window-ends", is_flag=True, help="The rows have the end of their window as rowtime: 10:00 is of the hour before."
)
@click.option(
    "--start",
    "--from",
    "start",
    default="earliest",
    show_default=True,
    help="Where a new name begins: earliest, the period of the first row; latest; or the period of a time.",
)
@click.option("--follow", "-f", is_flag=True, help="Wait for more, until the stream is complete.")
@click.option("--name", help="The name of the position.  [default: made of --to, --asset, --every and --tz]")
@click.option("--key", help="The form of the names of periods, such as %Y-%m-%d-%H:%M.")
@click.option("--asset", help="The asset in Airflow (its name or URI) or in Dagster (its key, such as sales/orders).")
@click.option("--body", help="The body of a request, with {start}, {end}, {key}, {stream}, {every}, {env:NAME}.")
@click.option(
    "--header",
    "headers",
    multiple=True,
    metavar="NAME: VALUE",
    help="A header, such as 'Authorization: Bearer {env:TOKEN}', with the secret in the environment variable TOKEN.",
)
@click.option("--method", type=click.Choice(METHODS), help="The HTTP method.  [default: POST]")
@click.option(
    "--taken",
    type=int,
    multiple=True,
    metavar="STATUS",
    help="A status, such as 409, by which the target says that it has a call already; 2xx is one anyway.",
)
@click.option("--timeout", type=INTERVAL, help="How long a whole call may take.  [default: 30 s]")
@click.option(
    "--retries",
    type=click.IntRange(0, 1_000_000),
    help=f"How many times in a row a call is repeated that is not taken.  [default: {len(RESTART_SECONDS)}, in about 5 "
    "minutes; with --follow without a limit]",
)
@click.option(
    "--positions",
    metavar="STREAM",
    help="Of a table or a topic: the stream that keeps the position; it is made if there is none.",
)
@config_option
@as_json
def announce(
    *,
    stream: str,
    every: str,
    to: str,
    tz: str | None,
    window_ends: bool,
    start: str,
    follow: bool,
    name: str | None,
    key: str | None,
    asset: str | None,
    body: str | None,
    headers: tuple[str, ...],
    method: str | None,
    taken: tuple[int, ...],
    timeout: str | None,
    retries: int | None,
    positions: str | None,
    config: str | None,
    as_json: bool,
) -> None:
    """Tell a scheduler that an hour, a day or another period of a stream, a table or a topic is complete.

    One call for each period that the bound has passed, in order, at least once. The next run continues where this one
    ends. Announce what the jobs read: of a stream that is drained into a table, the table.
    """
    log_to_stderr()
    options: dict[str, Any] = {"key": key, "asset": asset, "body": body, "method": method, "timeout": timeout}
    options |= {"headers": _headers(headers) if headers else None, "taken": taken or None}
    more: dict[str, Any] = {"ends": window_ends, "positions": positions}
    more["clientOptions"] = client_settings(config_for(stream, config), ()) or None
    delays = repetitions(retries, follow)
    with terminable():
        count = 0
        for period in announcements(stream, to, every, tz, start, follow, name, options, delays, **more):
            say(dump(period.fields()) if as_json else _line(period))
            count += 1
    if not count:
        say("No new period is complete." if positions else _nothing_new(stream), err=True)


def _nothing_new(stream: str) -> str:
    info = describeStream(stream)
    bound, waits = show_bound(info.bound), waiting_for(info)
    return f"No new period is complete. The bound of {stream} is {bound}, and waits for {waits}."


def _line(period: Period) -> str:
    return f"{period.key}  complete: {iso_text(period.start)} to {iso_text(period.end)}"


def _headers(texts: tuple[str, ...]) -> dict[str, str]:
    """The headers, by name. Errors do not show a value, which may be secret."""
    headers: dict[str, str] = {}
    for number, text in enumerate(texts, start=1):
        name, colon, value = (part.strip() for part in text.partition(":"))
        if not colon or not name:
            raise InvalidOptionError(
                f"The --header number {number} is not of the form 'Name: value'. (Its text is not shown: it may be "
                "secret.)",
                option="--header",
            )
        if is_secret(name) and "{env:" not in value:
            raise InvalidOptionError(
                f"The value of the header {name!r} is a secret, which other users of the machine can see among the "
                f"arguments of a process. Set an environment variable, and write --header '{name}: {{env:NAME}}'.",
                option="--header",
            )
        headers[name] = value
    return headers
