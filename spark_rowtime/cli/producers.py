"""The commands ``rowtime close`` and ``rowtime detach``: what is declared about a producer that is lost."""

import shlex

import click

from spark_rowtime.bounds.bound import RowtimeBound
from spark_rowtime.bounds.clock import Status
from spark_rowtime.producer.departure import closeProducer, detachProducer
from spark_rowtime.stream import StreamInfo
from spark_rowtime.types.timestamps import show_micros


@click.command()
@click.argument("stream")
@click.argument("producer")
@click.option("--complete", is_flag=True, help="It will never send again; also for one that has left.")
def close(stream: str, producer: str, complete: bool) -> None:
    """Declare that a lost producer has left, as if it had closed: its rows count, and the stream goes on.

    A process that still has the producer open gets an error from its next call.
    """
    click.echo(_now(stream, closeProducer(stream, producer, complete=complete)))


@click.command()
@click.argument("stream")
@click.argument("producer")
def detach(stream: str, producer: str) -> None:
    """Stop waiting for a producer, which may come back, without a statement about its rows.

    It then joins at the stream's bound. A process that still has the producer open joins again with its next call.
    """
    click.echo(_now(stream, detachProducer(stream, producer)))


def _now(stream: str, bound: RowtimeBound | None) -> str:
    return f"{stream}: the bound is now {show_bound(bound)}"


def show_bound(bound: RowtimeBound | None) -> str:
    """Returns the bound's floor as a time; "none" and "the end of time" for what is no time."""
    if bound is not None and bound.isEnd:
        return "the end of time"
    return show_micros(bound.floor if bound is not None else None)


_BY_NEED = [Status.EXPECTED, Status.DETACHED, Status.IDLE, Status.ATTACHED, Status.LEFT, Status.COMPLETE]
"""The producers for which the commands are shown first."""


def releasing(info: StreamInfo) -> list[str]:
    """Returns the commands for a stream that waits for a producer that never came, or for nobody."""
    statuses = {p.name: p.status for p in info.producers}
    held = info.holder is not None and statuses[info.holder] is not Status.EXPECTED
    if held or not statuses or (info.bound is not None and info.bound.isEnd):
        return []
    name = info.holder or min(statuses, key=lambda known: _BY_NEED.index(statuses[known]))
    end = f"{shlex.quote(info.path)} {shlex.quote(name)}"
    if statuses[name] is Status.LEFT:
        return [f"          rowtime close {end} --complete: it will never send again"]
    return [
        f"          rowtime close {end}: it has left, so its rows count (--complete: it will never send again)",
        f"          rowtime detach {end}: the stream only stops waiting for it",
    ]
