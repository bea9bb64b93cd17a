"""The command ``rowtime send``."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource
from rich.console import Console
from rich.progress import Progress

from spark_rowtime.admin.description import bound_json
from spark_rowtime.bounds.bound import RowtimeBound
from spark_rowtime.bounds.topic_cut import offsets_of, to_cut
from spark_rowtime.cli.csv_feed import CsvFeed, FeedOptions
from spark_rowtime.cli.csv_rows import CsvRows
from spark_rowtime.cli.cuts import show_offsets
from spark_rowtime.cli.host import terminable
from spark_rowtime.cli.intervals import INTERVAL
from spark_rowtime.cli.output import as_json, echo_json, say
from spark_rowtime.cli.streams import uncreated
from spark_rowtime.errors import InvalidOptionError, StreamNotFoundError
from spark_rowtime.producer.rowsink import openSink
from spark_rowtime.sorted_runs import SortedRuns
from spark_rowtime.stream import createStream
from spark_rowtime.stream_description import describeStream
from spark_rowtime.stream_info import StreamInfo
from spark_rowtime.types.json_values import load
from spark_rowtime.types.local_time import LocalTime
from spark_rowtime.types.timestamps import to_interval


@click.command()
@click.argument("stream")
@click.option("--csv", "file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--rowtime", help="The column with each row's event time.")
@click.option(
    "--producer",
    metavar="COLUMN",
    help="The column that names each row's producer. All are opened before the first row.",
)
@click.option("--name", help="Without --producer: the name of the only producer.  [default: that of the file]")
@click.option(
    "--in-order-per",
    metavar="COLUMN",
    help="Declare each producer's rows to be in order per value of this column: see openSink(inOrderPer=...).",
)
@click.option(
    "--bounds", type=INTERVAL, help="The interval of rowtime at which every producer sends a bound: 1h, '15 minutes'."
)
@click.option("--final", help="The bound at the end.  [default: the last rowtime, strict]")
@click.option("--complete", is_flag=True, help="The producers will never send again: every window closes.")
@click.option(
    "--cut",
    metavar="JSON",
    help='Send the bound --final alone, without a file, behind these offsets of Kafka: {"orders": {"0": 4711}}.',
)
@click.option("--create/--no-create", default=False, help="Create the stream from the file if it does not exist.")
@click.option("--columns", help="Only these columns, separated by commas.  [default: all]")
@click.option("--delimiter", default=",", show_default=True)
@click.option("--null", "nulls", multiple=True, help="A text that stands for null, in addition to the empty one.")
@click.option("--time-format", help="For times that are not ISO 8601: '%d.%m.%Y %H:%M'.")
@click.option("--tz", help="The time zone of times that have none: 'Europe/Berlin'.  [default: UTC]")
@click.option("--on-late", type=click.Choice(["raise", "reject"]), default="raise", show_default=True)
@as_json
def send(
    *,
    stream: str,
    file: Path | None,
    rowtime: str | None,
    producer: str | None,
    name: str | None,
    in_order_per: str | None,
    bounds: str | None,
    final: str | None,
    complete: bool,
    cut: str | None,
    create: bool,
    columns: str | None,
    delimiter: str,
    nulls: tuple[str, ...],
    time_format: str | None,
    tz: str | None,
    on_late: str,
    as_json: bool,
) -> None:
    """Send a CSV file into a stream, sorted by time, with bounds.

    Times without a zone are in the zone --tz. A time that the clocks there skipped or showed twice is refused. A
    send that was interrupted and is repeated continues where it stopped. With --producer, the stream waits for the
    producers until then, or until `rowtime detach`.

    With --create, a column has the type that keeps what each of its texts says: BIGINT, DOUBLE, BOOLEAN, DATE or
    TIMESTAMP, and STRING if one has zeros in front (00123), more digits than the type, or none of these types. To
    have other types, create the stream first.

    With --cut it sends no file but a bound of the producer --name, whose rows are in topics of Kafka. The producer
    stays attached, for the next bound.
    """
    if cut is not None:
        _require_no_file(click.get_current_context())
        offsets = _offsets(cut)
        bound = send_cut(stream, name, final, offsets, tz, complete=complete)
        if as_json:
            echo_json({"stream": stream, "producer": name, "bound": bound_json(bound)})
        else:
            say(f"{stream}: a bound was sent by {name}, behind {show_offsets(offsets)}. Bound: {bound}.")
        return
    if file is None or rowtime is None:
        raise click.UsageError("Give --csv FILE and --rowtime COLUMN; or --cut, --final and --name for a bound alone.")
    existing = _existing(stream, create)
    kept = [column.strip() for column in columns.split(",")] if columns else ()
    local, schema = None if tz is None else LocalTime(tz), existing.schema if existing else None
    rows = CsvRows(file, rowtime, kept, delimiter.replace("\\t", "\t"), ("", *nulls), time_format, schema, local)
    if producer is not None and producer not in rows.schema.names:
        raise InvalidOptionError(
            f"--producer {producer}: there is no such column. The columns are {rows.schema.names}. To send the whole "
            f"file as one producer of that name, write --name {producer}."
        )
    last = RowtimeBound.inZone(final, False, None, local.zone if local else None) if final is not None else None
    interval = to_interval(bounds, "--bounds")
    options = FeedOptions(name or file.name, producer, interval or None, last, on_late, complete, in_order_per)
    with terminable(), SortedRuns() as runs:
        feed = CsvFeed(rows, options, runs)
        feed.read()
        if existing is None:
            createStream(stream, rows.schema)
        with _progress(feed.rows) as advance:
            sent = feed.send(stream, advance)
    now, rejected = describeStream(stream), existing.rejected if existing else 0
    if as_json:
        echo_json(_summary_json(feed, sent, rejected, now))
    else:
        say(_summary(feed, sent, rejected, now))


def _require_no_file(context: click.Context) -> None:
    """Raises UsageError for an option that is about a file."""
    for option in context.command.params:
        given = context.get_parameter_source(str(option.name)) is ParameterSource.COMMANDLINE
        if given and isinstance(option, click.Option) and not SEND_CUT_OPTIONS & {*option.opts}:
            raise click.UsageError(f"{option.opts[0]} is for a file, and --cut sends a bound alone. Leave one out.")


def _existing(stream: str, create: bool) -> StreamInfo | None:
    """Returns the stream; None if it is still to be created."""
    try:
        return describeStream(stream)
    except StreamNotFoundError as error:
        if not create:
            raise uncreated(error, "the file") from None
        return None


def _summary(feed: CsvFeed, sent: int, rejected_before: int, now: StreamInfo) -> str:
    rejected = now.rejected - rejected_before
    notes = [
        f"; {feed.rows - sent} of {feed.rows} had been sent before" if sent < feed.rows else "",
        f"; rejected: {rejected}" if rejected else "",
    ]
    count, bound = len(feed.producers), "none" if now.bound is None else str(now.bound)
    return f"{now.path}: {sent} row(s) sent by {count} producer(s){''.join(notes)}. Bound: {bound}."


def _summary_json(feed: CsvFeed, sent: int, rejected_before: int, now: StreamInfo) -> dict[str, Any]:
    return {
        "stream": now.path,
        "sent": sent,
        "alreadyThere": feed.rows - sent,
        "producers": sorted(feed.producers),
        "rejected": now.rejected - rejected_before,
        "bound": bound_json(now.bound),
    }


@contextmanager
def _progress(total: int) -> Iterator[Callable[[int], object]]:
    """Shows a progress bar on a terminal; elsewhere, for a large file, prints a line after each tenth."""
    console = Console(stderr=True)
    if console.is_terminal:
        with Progress(console=console, transient=True) as bar:
            task = bar.add_task("sending", total=total)
            yield lambda rows: bar.advance(task, rows)
    else:
        yield _Lines(total)


class _Lines:
    def __init__(self, total: int) -> None:
        self._total, self._done = total, 0
        self._step = max(total // 10, 100_000)

    def __call__(self, rows: int) -> None:
        before, self._done = self._done, self._done + rows
        if before // self._step < self._done // self._step:
            say(f"sent {self._done} of {self._total} rows", err=True)


SEND_CUT_OPTIONS = {"--cut", "--final", "--name", "--complete", "--tz", "--json"}


def send_cut(
    stream: str, name: str | None, final: str | None, offsets: Any, tz: str | None, *, complete: bool
) -> RowtimeBound | None:
    """Sends a bound behind offsets of Kafka by one producer, which stays attached; returns that of the stream."""
    if name is None or final is None:
        raise click.UsageError("--cut needs --final, the bound, and --name, the producer.")
    sink = openSink(stream, producer=name, rowsImplyBounds=False, lease=None)
    try:
        sink.sendRowtimeBound(final, tz=tz, cut=offsets)
        sink.flush()
        if complete:
            sink.close(complete=True)
    finally:
        sink.abandon()
    return describeStream(stream).bound


def _offsets(text: str) -> Any:
    """The offsets in a text of the form that Spark's Kafka source has: {"orders": {"0": 4711}}."""
    try:
        found = offsets_of(load(text))
    except (ValueError, AttributeError, TypeError):
        raise InvalidOptionError(
            f'--cut {text} is not a cut. It has the form \'{{"orders": {{"0": 4711, "1": 4690}}}}\': for each '
            "partition the offset after the last message that the bound follows.",
            option="--cut",
        ) from None
    to_cut(found)
    return found
