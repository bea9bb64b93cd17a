"""The commands ``rowtime close`` and ``rowtime detach``: what is declared about a producer that is lost."""

import shlex

import click

from spark_rowtime.admin.description import bound_json, show_bound
from spark_rowtime.bounds.bound import RowtimeBound
from spark_rowtime.bounds.clock import Status
from spark_rowtime.cli.output import as_json, echo_json
from spark_rowtime.producer.departure import closeProducer, detachProducer
from spark_rowtime.stream import StreamInfo


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
        click.echo(f"{stream}: the bound is now {show_bound(bound)}")


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
