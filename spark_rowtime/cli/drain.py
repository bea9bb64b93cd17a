"""The command ``rowtime drain``, which sends a stream into a consumer, a table or a topic of Kafka."""

import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

import spark_rowtime.drain.kafka.sink as topic
from spark_rowtime.adapter.arguments import required
from spark_rowtime.adapter.loading import load_class
from spark_rowtime.admin.description import show_bound
from spark_rowtime.cli.argument_texts import client_settings, config_for, config_option, settings_option
from spark_rowtime.cli.host import terminable
from spark_rowtime.cli.intervals import INTERVAL
from spark_rowtime.cli.output import say
from spark_rowtime.cli.streams import waiting_for
from spark_rowtime.drain.gathering import GatheringSink
from spark_rowtime.drain.kafka.positions import POSITIONS
from spark_rowtime.drain.sink import BOUNDS_EVERY, EVERY, MAX_ROWS, PLUGINS
from spark_rowtime.drain.tables.open import openTableSink
from spark_rowtime.errors import InvalidOptionError
from spark_rowtime.kafka.address import KAFKA
from spark_rowtime.kafka.records import FORMATS
from spark_rowtime.reader.reader import RowReader, openReader
from spark_rowtime.store import open_store
from spark_rowtime.store.base import Store
from spark_rowtime.store.commits import Slice
from spark_rowtime.store.difference import rows_between
from spark_rowtime.store.position import Position
from spark_rowtime.stream_description import describeStream
from spark_rowtime.types.plugins import plugin_names


@click.command()
@click.argument("stream")
@click.argument(
    "target", metavar="MODULE:CLASS|delta:PATH|iceberg:CATALOG.NAMESPACE.TABLE|parquet:PATTERN|kafka://HOST:PORT/TOPIC"
)
@click.option("--follow", "-f", is_flag=True, help="Wait for more at the end of the stream.")
@click.option("--order", type=click.Choice(["rowtime", "arrival"]), default="rowtime", show_default=True)
@click.option("--start", default="earliest", show_default=True, help="earliest, latest, or a time.")
@click.option("--name", help="Register under this name: retention then keeps what is still to be drained.")
@click.option(
    "--every",
    type=INTERVAL,
    help=f"Into a table or a topic: the interval between two commits.  [default: {EVERY}; a topic: {topic.EVERY}]",
)
@click.option(
    "--bounds-every",
    type=INTERVAL,
    help=f"Into a table: the least interval between a commit and one that has a bound, but no rows.  "
    f"[default: {BOUNDS_EVERY}]",
)
@click.option(
    "--max-rows",
    type=click.IntRange(1),
    help=f"Into a table or a topic: the rows after which a commit is made before that; of Parquet, the rows of a row "
    f"group.  [default: {MAX_ROWS}; a topic: {topic.MAX_ROWS}]",
)
@click.option("--tz", help="Into Parquet: the time zone of the folders, such as Europe/Berlin.  [default: UTC]")
@click.option("--key", metavar="COLUMN", help="Into a topic: the column whose value is the key of a message.")
@click.option(
    "--encoder",
    type=click.Choice(FORMATS),
    help="Into a topic: what the values are; those of a schema registry need registry.url.  [default: json]",
)
@click.option("--partitions", type=click.IntRange(1), help="The partitions of a topic that is made.  [default: broker]")
@config_option
@settings_option
@click.option("--positions", help=f"The topic that keeps the positions of drains.  [default: {POSITIONS}]")
@click.option(
    "--anew",
    is_flag=True,
    help="A topic that was created again, or whose position is elsewhere, gets the stream from its beginning.",
)
def drain(
    *,
    stream: str,
    target: str,
    follow: bool,
    order: str,
    start: str,
    name: str | None,
    every: str | None,
    bounds_every: str | None,
    max_rows: int | None,
    tz: str | None,
    key: str | None,
    encoder: str | None,
    partitions: int | None,
    config: str | None,
    assignments: tuple[str, ...],
    positions: str | None,
    anew: bool,
) -> None:
    """Send a stream's rows and bounds to a consumer, into a table or into a topic of Kafka.

    A consumer is a class with sendRows and sendRowtimeBound. One that has flush and checkpoint resumes where it
    stopped. The class is called without arguments; it may read what it needs from environment variables.

    A table is made with the stream's columns if there is none. Rows, bound and position are one commit, so each row
    is there once, whatever process dies; a drain continues at the table's position. PATTERN is a folder and a
    pattern of folders by event time in UTC or in --tz, such as parquet:lake/orders/date=%Y-%m-%d/hour=%H; an hour is
    written when it is complete. An Iceberg catalog is one of PyIceberg's configuration.

    A topic is made if there is none. Rows, as JSON or in the --encoder of a schema registry, the bound behind them in
    each partition, and the position are one transaction.
    """
    gathering = {"every": every, "maxRows": max_rows, "boundsEvery": bounds_every, "tz": tz}
    topical: dict[str, Any] = {"key": key, "encoder": encoder, "partitions": partitions, "positions": positions}
    topical["anew"] = anew or None
    topical["options"] = client_settings(config_for(target, config), assignments) or None
    open_sink = _opener(target, gathering, topical)
    with terminable(), openReader(stream, order=order, start=start, follow=follow, name=name) as reader:
        if open_sink is not None:
            with open_sink(reader.schema) as sink:
                _drain_gathering(stream, reader, sink)
        else:
            consumer = _consumer(target)
            reader.drainTo(consumer)
            if hasattr(consumer, "close"):
                consumer.close()
    if order == "rowtime":
        _say_held_back(stream)


def _say_held_back(stream: str) -> None:
    """Says which rows the drain has not sent. Of a stream without a bound the reader has said it."""
    info = describeStream(stream)
    if info.rowsHeldBack and info.bound is not None:
        bound, waits = show_bound(info.bound), waiting_for(info)
        say(f"{info.rowsHeldBack} row(s) wait for the bound, which is {bound} and waits for {waits}.", err=True)


def _opener(target: str, gathering: dict[str, Any], topical: dict[str, Any]) -> Callable[[Any], GatheringSink] | None:
    """What opens a table or a topic for columns; None for a consumer. Raises UsageError for options of another kind."""
    gathering, topical = _given(gathering), _given(topical)
    if target.startswith(KAFKA):
        if "boundsEvery" in gathering:
            raise click.UsageError("--bounds-every is for tables: in a topic a bound costs no more than a row.")
        if "tz" in gathering:
            raise click.UsageError("--tz is for folders of Parquet.")
        return lambda schema: topic.openTopicSink(target, schema, **gathering, **topical)
    is_table = target.partition(":")[0] in plugin_names(PLUGINS)
    if not is_table:
        require_consumer_or(target)
    if topical:
        raise click.UsageError(
            "--key, --encoder, --partitions, --config, --set, --positions and --anew are for topics of Kafka."
        )
    if is_table:
        return lambda schema: openTableSink(target, schema, **gathering)
    if gathering:
        raise click.UsageError(
            "--every, --bounds-every, --max-rows and --tz are for tables and topics: a consumer decides itself when it "
            "commits."
        )
    return None


def _given(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def _drain_gathering(stream: str, reader: RowReader, sink: GatheringSink) -> None:
    with _progress(stream, sink.checkpoint or reader.position, sink) as counted:
        reader.drainTo(counted)
    kind = "topic" if isinstance(sink, topic.TopicSink) else "table"
    say(f"{sink.target}: {counted.rows} row(s) read; the {kind}'s bound is {show_bound(sink.rowtimeBound)}")


class _Counted:
    """A sink that counts the rows sent into it."""

    def __init__(self, sink: GatheringSink, progress: Progress, left: int) -> None:
        self._sink, self._progress, self.rows = sink, progress, 0
        self._task = progress.add_task("", total=left)

    def sendRows(self, rows: Any) -> None:
        self._sink.sendRows(rows)
        self.rows += rows.num_rows
        self._progress.update(self._task, completed=self.rows)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sink, name)


@contextmanager
def _progress(stream: str, position: str, sink: GatheringSink) -> Iterator[_Counted]:
    """Counts rows; on a terminal a bar shows how many of those that the stream has are left."""
    shown = sys.stderr.isatty()
    columns = (TextColumn("drained"), BarColumn(), MofNCompleteColumn(), TextColumn("rows"), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), disable=not shown) as bar:
        yield _Counted(sink, bar, _rows_after(position, stream) if shown else 0)


def _rows_after(position: str, stream: str) -> int:
    """How many rows come after the position: those committed later, and those that it has not released."""
    fields = json.loads(position)
    at = Position(fields["seq"], fields["cut"], fields["floor"])
    with open_store(stream) as store:
        held = [] if at.cut is None else store.slices(at, Position(at.seq, None, None))
        later = store.head().rows - store.at(at.seq).rows
        return later + sum(_rows_of(store, piece, at) for piece in held)


def _rows_of(store: Store, piece: Slice, at: Position) -> int:
    """How many rows of a train are not below the cut; they are read only if that is not known."""
    if at.cut is None or piece.least >= at.cut:
        return piece.rows
    return int(rows_between(store.read(piece), piece.seq, at, Position(at.seq, None, None)).num_rows)


def _consumer(consumer: str) -> Any:
    """Returns a consumer of the class that ``consumer`` names. Raises InvalidOptionError if it needs arguments."""
    found = load_class(consumer, "a consumer", ("sendRows", "sendRowtimeBound"))
    needed = required(found)
    if needed:
        raise InvalidOptionError(
            f"The constructor of {consumer!r} needs {' and '.join(needed)}, but `rowtime drain` calls it without "
            "arguments. Give each a default, such as the value of an environment variable, or drain from Python: "
            "reader.drainTo(consumer).",
            spec=consumer,
            missing=needed,
        )
    return found()


_CLASS = re.compile(r"[^\W\d][\w.]*:[^\W\d]\w*")
_DOTTED = re.compile(r"([^\W\d][\w.]*)\.([A-Z]\w*)")
"""The name of a class with a dot before it, as Python writes it."""
_CALLED = {"deltalake": "delta", "delta-lake": "delta", "delta_lake": "delta"}
"""Formats, by what they are called instead."""
_PERIODS = "date=%Y-%m-%d/hour=%H"
_FORMS = (
    "delta:PATH, iceberg:CATALOG.NAMESPACE.TABLE, parquet:FOLDER/date=%Y-%m-%d/hour=%H, kafka://HOST:PORT/TOPIC, or "
    "module:Class for a consumer of your own"
)


def require_consumer_or(target: str) -> None:
    """Raises InvalidOptionError, which offers what is meant, unless ``target`` can name a class."""
    kind, _, place = target.partition(":")
    offered = _as_format(kind, place) or (None if _CLASS.fullmatch(target) else _as_place(kind, place, target))
    if offered is not None:
        raise InvalidOptionError(
            f"{target!r} is no target of a drain. {offered} A target is {_FORMS}.", option="target", value=target
        )


def _as_format(kind: str, place: str) -> str | None:
    """What is meant by the name of a format in another form."""
    meant = _CALLED.get(kind.lower(), kind.lower() if kind.lower() in plugin_names(PLUGINS) else None)
    if kind.lower() == "kafka":
        return f"Did you mean kafka://{place.lstrip('/') or 'HOST:PORT/TOPIC'}?"
    return None if meant is None else f"Did you mean {meant}:{place}?"


def _as_place(kind: str, place: str, target: str) -> str | None:
    """What is meant by a path, a URL or a stream."""
    if kind in ("memory", "postgresql", "postgres") or _is_stream(target):
        return "A stream is copied with `rowtime copy`, or with reader.drainTo(openSink(...)) in Python."
    if dotted := _DOTTED.fullmatch(target):
        return f"Did you mean {dotted[1]}:{dotted[2]}?"
    path = re.sub("^//(?=/)", "", place) if kind == "file" else target
    if os.path.isdir(os.path.join(path, "_delta_log")):  # noqa: PTH112, PTH118  (which takes a path of any length)
        return f"Did you mean delta:{path}?"
    known = kind in ("file", "s3", "s3a", "gs", "abfss", "abfs", "hdfs") or "/" in target or "." in target
    if "%" in path:
        return f"Did you mean parquet:{path}?"
    if "://" in path:
        return f"Did you mean delta:{path}?"
    return f"Did you mean delta:{path}, or parquet:{path.rstrip('/')}/{_PERIODS}?" if known else None


def _is_stream(target: str) -> bool:
    inside = (os.path.join(target, name) for name in ("catalog.db", "segments"))  # noqa: PTH118
    return target.endswith(".rowtime") or all(map(os.path.exists, inside))
