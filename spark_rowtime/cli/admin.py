"""The commands about whole streams (copy, rename, delete, list, alter, adopt, check), and lost producers."""

import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click

from spark_rowtime.admin.description import bound_json, columns_json, show_bound, show_settings
from spark_rowtime.admin.streams import (
    ListedStream,
    adoptLocation,
    alterStream,
    copyStream,
    deleteStream,
    listStreams,
    progress_bar,
    renameStream,
)
from spark_rowtime.bounds.bound import RowtimeBound
from spark_rowtime.bounds.clock import Status
from spark_rowtime.cli.intervals import Interval
from spark_rowtime.cli.output import as_json, echo_json, say, say_all, table, text_width
from spark_rowtime.producer.departure import closeProducer, detachProducer
from spark_rowtime.store import check_store, in_database
from spark_rowtime.stream_description import describeStream
from spark_rowtime.stream_info import StreamInfo
from spark_rowtime.types.json_values import dump
from spark_rowtime.types.schema import show_schema
from spark_rowtime.types.short_repr import shell_arguments


@click.command()
@click.argument("stream")
@click.argument("to")
@click.option("--location", metavar="URL", help="Where a copy in PostgreSQL keeps large trains: 's3://bucket/rowtime'.")
@click.option(
    "--until",
    metavar="TIME|SEQ",
    help="Leave out the first row or bound that lies after this time, or the first event after this one, and all that "
    "came then.",
)
@as_json
def copy(*, stream: str, to: str, location: str | None, until: str | None, as_json: bool) -> None:
    """Copy a stream, as it is at one moment, while others write to it. A terminal shows how far it is.

    With --until, a producer that has committed since is without its checkpoint, which a stream does not keep.
    """
    end = int(until) if until is not None and re.fullmatch("[0-9]{1,18}", until) else until
    unknown = copyStream(stream, to, location=location, progress=True, until=end)
    info = describeStream(to)
    rows = info.rows - info.removed
    if as_json:
        left_out = {} if until is None else {"withoutCheckpoint": list(unknown)}
        echo_json({"stream": stream, "to": to, "rows": rows, "seq": info.seq, **left_out})
        return
    say(f"{to}: {rows} rows, up to event {info.seq} of {stream}")
    for name in unknown:
        say(f"{to}: producer {name!r} has committed after that, so it has no checkpoint: its feed begins again")


@click.command()
@click.argument("stream")
@click.argument("to")
def rename(stream: str, to: str) -> None:
    """Give a stream another path. It is refused while somebody has the stream open."""
    renameStream(stream, to)


@click.command()
@click.argument("stream")
@click.option("--force", is_flag=True, help="Delete it although somebody uses it, or although it is damaged.")
def delete(stream: str, force: bool) -> None:
    """Delete a stream with all its rows. It is refused while somebody uses the stream, and says who."""
    deleteStream(stream, force=force)


@click.command(name="list")
@click.argument("folder")
@as_json
def list_streams(folder: str, as_json: bool) -> None:
    """List the streams in a folder, and how far each has come. With --json each stream is a line."""
    found = listStreams(folder)
    if as_json:
        say_all(dump(_facts(stream)) for stream in found)
    elif found:
        head = ("stream", "rows", "rejected", "bound", "clock held by")
        for lines in table(head, [_row(folder, stream) for stream in found], text_width()):
            say_all(lines)


def _facts(stream: ListedStream) -> dict[str, Any]:
    info = stream.info
    if info is None:
        return {"stream": stream.path, "error": str(stream.error)}
    return {
        "stream": stream.path,
        "columns": show_schema(info.schema),
        "rows": info.rows,
        "removed": info.removed,
        "rejected": info.rejected,
        "bound": bound_json(info.bound),
        "seq": info.seq,
        "holder": info.holder,
        "producers": len(info.producers),
        "readers": len(info.readers),
    }


def _name_in(folder: str, path: str) -> str:
    """The name of a stream in a folder; in a database it may have slashes."""
    if not in_database(path):
        return Path(path).name
    name, above = (urlsplit(place).path.split("/", 2)[2:] for place in (path, folder))
    return name[0].removeprefix(f"{above[0].rstrip('/')}/" if above else "")


def _row(folder: str, stream: ListedStream) -> tuple[str, ...]:
    info, name = stream.info, _name_in(folder, stream.path)
    if info is None:
        return name, "", "", "", str(stream.error)
    return name, str(info.rows), str(info.rejected), show_bound(info.bound), info.holder or "nobody"


@click.command()
@click.argument("stream")
@click.option("--add", help="Columns in DDL, such as 'coupon STRING, discount DECIMAL(5,2)'.")
@click.option(
    "--max-ahead",
    type=Interval("unlimited"),
    help="How far ahead of the clock rows and bounds may be: '1 week'; 'unlimited': any.",
)
@click.option(
    "--producer", "producers", multiple=True, help="A producer that the stream waits for; repeat it for each."
)
@click.option("--closed/--not-closed", default=None, help="Whether only the producers of --producer may send.")
@as_json
def alter(
    *,
    stream: str,
    add: str | None,
    max_ahead: str | None,
    producers: tuple[str, ...],
    closed: bool | None,
    as_json: bool,
) -> None:
    """Add columns at the end of a stream's schema, or change its settings.

    Rows from before are null in new columns. Sinks that are open keep the settings with which they were opened.
    """
    if add is None and max_ahead is None and not producers and closed is None:
        raise click.UsageError(
            "Nothing is to be altered. Give --add, --max-ahead, --producer, --closed or --not-closed."
        )
    ahead = {} if max_ahead is None else {"maxAhead": max_ahead}
    alterStream(stream, add=add, producers=producers, closed=closed, **ahead)
    info = describeStream(stream)
    if as_json:
        echo_json({"stream": stream, "columns": columns_json(info.schema), "settings": dict(info.settings)})
    else:
        settings = "".join(f", {name}={value}" for name, value in show_settings(info).items())
        say(f"{stream}: the columns are now {show_schema(info.schema)}{settings}")


@click.command()
@click.argument("stream")
def adopt(stream: str) -> None:
    """Make a stream's database the owner of its objects.

    For a database to which the stream has moved for good.

    A stream with a location keeps large rows as objects, which belong to the database that created it. A restored
    backup, and a standby that has taken over, leave them alone until they adopt them; the former owner is refused then.
    """
    adoptLocation(stream)
    say(f"{stream}: this database owns the objects now")


@click.command()
@click.argument("stream")
@as_json
def check(stream: str, as_json: bool) -> None:
    """Verify every checksum of a stream, and that all its parts are consistent. If not, the exit code is 1."""
    with progress_bar("checking") as advance:
        report = check_store(stream, advance)
    if as_json:
        echo_json(
            {
                "stream": stream,
                "whole": not report.damage,
                "damage": report.damage,
                "remarks": report.remarks,
                "rows": report.rows,
                "readableRows": report.readable_rows,
                "trains": report.trains,
                "readableTrains": report.readable_trains,
            }
        )
    else:
        say_all(f"remark    {line}" for line in report.remarks)
        say_all(f"damage    {line}" for line in report.damage)
        readable = f"{report.readable_rows} of {report.rows} rows, {report.readable_trains} of {report.trains} trains"
        say(f"readable  {readable}")
        say(f"{stream} is {'damaged' if report.damage else 'whole'}")
    if report.damage:
        raise SystemExit(1)


@click.command()
@click.argument("stream")
@click.argument("producer")
@click.option(
    "--complete",
    is_flag=True,
    help="It will never send again; also for one that has left. If the stream waits for no other producer, the stream "
    "is complete too: nobody can send into it again.",
)
@as_json
def close(stream: str, producer: str, complete: bool, as_json: bool) -> None:
    """Declare that a lost producer has left, as if it had closed: its rows count, and the stream goes on.

    A process that still has the producer open gets an error from its next call.
    """
    _echo(stream, producer, closeProducer(stream, producer, complete=complete), as_json)


@click.command()
@click.argument("stream")
@click.argument("producer")
@as_json
def detach(stream: str, producer: str, as_json: bool) -> None:
    """Stop waiting for a producer, which may come back, without a statement about its rows.

    It then joins at the stream's bound. A process that still has the producer open joins again with its next call.
    """
    _echo(stream, producer, detachProducer(stream, producer), as_json)


def _echo(stream: str, producer: str, bound: RowtimeBound | None, as_json: bool) -> None:
    if as_json:
        echo_json({"stream": stream, "producer": producer, "bound": bound_json(bound)})
    else:
        say(f"{stream}: the bound is now {show_bound(bound)}")


_BY_NEED = [Status.EXPECTED, Status.DETACHED, Status.IDLE, Status.ATTACHED, Status.LEFT, Status.COMPLETE]
"""The producers for which the commands are shown first."""


def releasing(info: StreamInfo) -> list[str]:
    """Returns the commands for a stream that waits for a producer that never came, or for nobody."""
    statuses = {p.name: p.status for p in info.producers}
    held = info.holder is not None and statuses[info.holder] is not Status.EXPECTED
    if held or not statuses or (info.bound is not None and info.bound.isEnd):
        return []
    name = info.holder or min(statuses, key=lambda known: _BY_NEED.index(statuses[known]))
    end = shell_arguments(info.path, name)
    if statuses[name] is Status.LEFT:
        return [f"          rowtime close --complete {end}: it will never send again"]
    return [
        f"          rowtime close {end}: it has left, so its rows count (--complete: it will never send again)",
        f"          rowtime detach {end}: the stream only stops waiting for it",
    ]
