"""The commands ``rowtime create`` and ``rowtime describe``, and the texts that describe a stream."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import click

from spark_rowtime.admin.description import described, show_bound, show_settings, warnings
from spark_rowtime.bounds.clock import Status
from spark_rowtime.cli.admin import releasing
from spark_rowtime.cli.cuts import show_offsets
from spark_rowtime.cli.intervals import INTERVAL, Interval
from spark_rowtime.cli.output import as_json, duration, echo_json, fact, marked, say_all, styled, table, text_width
from spark_rowtime.errors import StreamNotFoundError
from spark_rowtime.store.record import ATTACHED
from spark_rowtime.store.settings import REJECTED_BYTES
from spark_rowtime.stream import createStream
from spark_rowtime.stream_description import describeStream
from spark_rowtime.stream_info import ProducerDescription, ReaderDescription, StreamInfo
from spark_rowtime.types.schema import show_schema
from spark_rowtime.types.short_repr import short_repr, some


@click.command()
@click.argument("stream")
@click.option("--schema", required=True, help="DDL, such as 'rowtime TIMESTAMP NOT NULL, ticker STRING'.")
@click.option(
    "--max-lag", type=INTERVAL, help="How far, in rowtime, the slowest producer may hold the fastest back: '1 hour'."
)
@click.option("--idle-timeout", type=INTERVAL, help="A producer that is silent for longer stops counting: '30 s'.")
@click.option(
    "--max-ahead",
    type=Interval("unlimited"),
    default="1 day",
    show_default=True,
    help="Reject rows and refuse bounds that are further ahead of the clock; 'unlimited': take any.",
)
@click.option(
    "--retain-age", type=INTERVAL, help="Remove rows committed at least this long ago that no reader needs: '7 days'."
)
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
    if stream.startswith("memory://"):
        raise click.UsageError(f"{stream} would be gone when this command ends. Give a folder or a database.")
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
        say_all(lines_of(info, text_width(), datetime.now(UTC)))


def uncreated(error: StreamNotFoundError, schema_from: str) -> StreamNotFoundError:
    """Returns the error with a hint. ``schema_from`` is what the command would take the schema from."""
    hint = f"If the path is right, add --create, which creates the stream with the schema of {schema_from}."
    return StreamNotFoundError(f"{error} {hint}", **error.values)


SILENT = timedelta(minutes=1)
"""Of a producer that holds the bound back and has not sent for this long, the text says so."""
_NAMED = 3
"""The largest number of producers that one sentence names."""
_MEANING = {False: ": no later row is before that", True: ": no row follows"}
_STATUS = {Status.EXPECTED: "expected, has not opened"}
_PRODUCER = ("producer", "status", "bound", "rows", "rejected", "seen ago", "lease")
_READER = ("reader", "seq", "unread", "seen ago")


def lines_of(info: StreamInfo, width: int, now: datetime) -> list[str]:
    """The text of ``rowtime describe``, in lines of at most ``width`` characters where names and paths allow it.

    A warning is one line, because it has a command that is to be copied.
    """
    warned = [styled(f"warning   {text}", fg="yellow") for text in warnings(info)]
    return [*_facts(info, width), "", *_producers(info, width, now), *_readers(info, width, now), *warned]


def _facts(info: StreamInfo, width: int) -> list[str]:
    settings = ", ".join(f"{name}={value}" for name, value in show_settings(info).items())
    facts = [
        ("stream", info.path),
        ("columns", show_schema(info.schema)),
        ("bound", f"{show_bound(info.bound)}{'' if info.bound is None else _MEANING[info.bound.isEnd]}"),
        ("clock", f"held by {waiting_for(info)}"),
        ("waiting", _held_back(info) if info.rowsHeldBack else ""),
        ("rows", f"{info.rows} accepted, {info.rejected} rejected; {info.seq} events in the log"),
        ("settings", settings),
        ("removed", f"the oldest {info.removed} rows" if info.removed else ""),
        ("", f"the oldest {info.rejectedRemoved} rejected rows" if info.rejectedRemoved else ""),
        ("forgotten", f"{info.forgotten} producers that left long ago" if info.forgotten else ""),
    ]
    lines = {label: fact(label, text, width) for label, text in facts if text}
    lines["clock"] += releasing(info)
    return [line for group in lines.values() for line in group]


def _held_back(info: StreamInfo) -> str:
    return f"{info.rowsHeldBack} row(s) are accepted, and wait for the bound"


def waiting_for(info: StreamInfo) -> str:
    """All producers that hold the bound back; if none does, the reason, which begins with "nobody"."""
    statuses = {producer.name: producer.status for producer in info.producers}
    if not info.holders or statuses[info.holders[0]] is Status.EXPECTED:
        return info.waitsFor
    return some(info.holders, _NAMED)


def _producers(info: StreamInfo, width: int, now: datetime) -> list[str]:
    if not info.producers:
        return ["no producer yet"]
    legend = ["* holds the clock"] if info.holders else []
    return [*legend, *_producer_table(info, width, now)]


def _producer_table(info: StreamInfo, width: int, now: datetime) -> list[str]:
    """The table of the producers, with notes below each that needs one."""
    holders = set(info.holders)
    holds = [producer.name in holders for producer in info.producers]
    found, *groups = marked(_PRODUCER, [_cells(producer, now) for producer in info.producers], holds, width)
    for producer, held, lines in zip(info.producers, holds, groups, strict=True):
        found += [*lines, *(f"    {_cut(note, width - 4)}" for note in _notes(producer, held, now))]
    return found


def _cells(producer: ProducerDescription, now: datetime) -> Sequence[str]:
    left = producer.leaseLeft
    waits = producer.status in ATTACHED
    return (
        producer.name,
        _STATUS.get(producer.status, producer.status.value),
        show_bound(producer.bound),
        str(producer.accepted),
        str(producer.rejected),
        "" if producer.seen is None else duration(now - producer.seen),
        duration(left) if left is not None else "none" if waits else "",
    )


def _notes(producer: ProducerDescription, holds: bool, now: datetime) -> list[str]:
    if producer.sent is None:
        return []
    silence = now - producer.sent
    return [
        *([f"query {producer.query}"] if producer.query else []),
        *([f"has sent nothing for {duration(silence)}"] if holds and silence >= SILENT else []),
        *([f"taken over or reopened: epoch {producer.epoch}"] if producer.epoch > 1 else []),
        *([f"checkpoint {producer.checkpoint!r}"] if producer.checkpoint is not None else []),
        *([f"{producer.lag} messages behind the end of its partition, at its last commit"] if producer.lag else []),
        *([f"bounds up to {show_offsets(producer.cut)}"] if producer.cut else []),
        *([f"{producer.keys} values known; the weakest:"] if producer.keys else []),
        *[f"  {short_repr(value)} at {show_bound(bound)}" for value, bound in producer.weakestKeys],
    ]


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: max(width - 3, 0)]}..."


def _readers(info: StreamInfo, width: int, now: datetime) -> list[str]:
    rows = [(_reader(one), str(one.seq), str(one.unread), duration(now - one.seen)) for one in info.readers]
    return ["", *[line for lines in table(_READER, rows, width) for line in lines]] if rows else []


def _reader(reader: ReaderDescription) -> str:
    return f"{reader.name} (beside a topic)" if reader.reads == "topic" else reader.name
