"""The commands ``rowtime create``, ``rowtime describe`` and ``rowtime detach``."""

import shlex
from collections.abc import Sequence
from datetime import UTC, datetime

import click

from spark_rowtime.bounds.bound import RowtimeBound
from spark_rowtime.store import open_store
from spark_rowtime.store.base import REJECTED_BYTES
from spark_rowtime.stream import ProducerDescription, StreamInfo, createStream, describeStream
from spark_rowtime.types.schema import show_schema
from spark_rowtime.types.short_repr import short_repr
from spark_rowtime.types.timestamps import show_micros

ABSENT_DAYS = 1
"""A reader that was not seen for at least this long, and has unread rows, causes a warning."""


@click.command()
@click.argument("stream")
@click.option("--schema", required=True, help="DDL, such as 'rowtime TIMESTAMP NOT NULL, ticker STRING'.")
@click.option("--max-lag", help="How far, in rowtime, the slowest producer may hold the fastest back: '1 hour'.")
@click.option("--idle-timeout", help="A producer that is silent for longer stops counting: '30 s'.")
@click.option("--max-ahead", help="Reject rows that are further ahead of the wall clock: '1 day'.")
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
@click.option("--exist-ok", is_flag=True, help="Succeed if a stream of the same schema exists already.")
def create(
    stream: str,
    schema: str,
    max_lag: str | None,
    idle_timeout: str | None,
    max_ahead: str | None,
    retain_age: str | None,
    retain_bytes: int | None,
    retain_rejected: int,
    bounds_before_rows: bool,
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
        existOk=exist_ok,
    )


@click.command()
@click.argument("stream")
def describe(stream: str) -> None:
    """Show a stream's schema, how far it has come, and its producers."""
    info = describeStream(stream)
    for line in [*_facts(info), *_producers(info), *_readers(info), *blocking(info)]:
        click.echo(line)


@click.command()
@click.argument("stream")
@click.argument("producer")
def detach(stream: str, producer: str) -> None:
    """Detach a producer that will not come back, so that it no longer holds the stream's bound back."""
    store = open_store(stream)
    try:
        store.detach(producer)
        click.echo(f"{stream}: the bound is now {show_micros(store.head().floor)}")
    finally:
        store.close()


def _facts(info: StreamInfo) -> list[str]:
    return [
        f"stream    {info.path}",
        f"columns   {show_schema(info.schema)}",
        f"bound     {_time(info.bound)}{'' if info.bound is None else ': no later row is before that'}",
        f"clock     held by {info.waitsFor}",
        f"rows      {info.rows} accepted, {info.rejected} rejected; {info.seq} events in the log",
        *([f"settings  {', '.join(f'{k}={v}' for k, v in info.settings.items())}"] if info.settings else []),
        *([f"removed   the oldest {info.removed} rows"] if info.removed else []),
        *([f"          the oldest {info.rejectedRemoved} rejected rows"] if info.rejectedRemoved else []),
        *([f"forgotten {info.forgotten} producers that left long ago"] if info.forgotten else []),
    ]


def _producers(info: StreamInfo) -> list[str]:
    head = ("producer", "status", "bound", "accepted", "rejected", "epoch", "checkpoint")
    rows = [
        (p.name, p.status.value, _time(p.bound), str(p.accepted), str(p.rejected), str(p.epoch), p.checkpoint or "")
        for p in info.producers
    ]
    keys = [line for p in info.producers if p.keys for line in _keys(p)]
    return ["", *_aligned([head, *rows]), *keys] if rows else ["", "no producer yet"]


def _keys(producer: ProducerDescription) -> list[str]:
    """Returns how many values of its key column a producer has, and the weakest of them."""
    weakest = ", ".join(f"{short_repr(value)} at {_time(bound)}" for value, bound in producer.weakestKeys)
    return [f"{producer.name}: {producer.keys} values known; the weakest: {weakest}"]


def _readers(info: StreamInfo) -> list[str]:
    rows = [(r.name, str(r.seq), str(r.unread), f"{r.seen:%Y-%m-%dT%H:%M:%SZ}") for r in info.readers]
    return ["", *_aligned([("reader", "seq", "unread", "last seen"), *rows])] if rows else []


def blocking(info: StreamInfo) -> list[str]:
    """Returns a warning for each reader that prevents the removal of rows and may not come back."""
    found = []
    for reader in info.readers:
        days = (datetime.now(UTC) - reader.seen).days
        gone = ", and its checkpoint is gone" if reader.checkpointGone else ""
        if reader.unread and (gone or days >= ABSENT_DAYS):
            found.append(
                f"warning   {reader.unread} rows are kept for reader {reader.name!r}: it was last seen {days} days ago"
                f"{gone}. If it will not come back, run rowtime gc {info.path} --forget {shlex.quote(reader.name)}"
            )
    return found


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _time(bound: RowtimeBound | None) -> str:
    return show_micros(bound.floor if bound is not None else None)
