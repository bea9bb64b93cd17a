"""The command ``rowtime tail``."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator

import click

from spark_rowtime.bounds.train import Train
from spark_rowtime.cli.cuts import PassedCuts
from spark_rowtime.cli.description import waiting_for
from spark_rowtime.cli.last_rows import start_of_last
from spark_rowtime.cli.output import parts_in_lines, styled
from spark_rowtime.reader.reader import RowReader, openReader
from spark_rowtime.stream import StreamInfo, describeStream
from spark_rowtime.types.json_values import dump, plain
from spark_rowtime.types.schema import ROWTIME

QUIET_SECONDS = 1.0
"""A stream that is followed is quiet after this many seconds without a train; then it is said what it waits for."""


@click.command()
@click.argument("stream")
@click.option("--follow", "-f", is_flag=True, help="Wait for more at the end of the stream.")
@click.option("-n", "last", type=click.IntRange(0), help="Begin with the last so many rows.  [default: all]")
@click.option(
    "--order",
    type=click.Choice(["rowtime", "arrival"]),
    default="rowtime",
    show_default=True,
    help="rowtime: sorted, as the bound releases rows; arrival: in the order of commits.",
)
@click.option("--start", default="earliest", show_default=True, help="earliest, latest, or a time.")
@click.option("--json", "as_json", is_flag=True, help='Lines of JSON: {"row": {...}} or {"bound": "...", ...}.')
def tail(stream: str, follow: bool, last: int | None, order: str, start: str, as_json: bool) -> None:
    """Print rows and bounds as they arrive, and what the stream waits for where it ends or is quiet."""
    lines, waits = (_json_lines, _json_waits) if as_json else (_lines, _waits)
    begin = start_of_last(stream, order, last) if last is not None and start == "earliest" else start
    with openReader(stream, order=order, start=begin) as reader:
        cuts = PassedCuts(stream, reader, as_json=as_json)
        for train in reader if last is None else _last(reader, last):
            _echo(lines(train))
            _echo(cuts.lines())
        _echo(cuts.lines(end=True))
        if follow:
            _follow(stream, reader, lines, waits, cuts)
        elif (info := describeStream(stream)).holders or info.rowsHeldBack:
            _echo(waits(info))


def _follow(
    stream: str,
    reader: RowReader,
    lines: Callable[[Train], Iterable[str]],
    waits: Callable[[StreamInfo], Iterable[str]],
    cuts: PassedCuts,
) -> None:
    """Prints trains for ever; each time that the stream is quiet, what it waits for, if this has changed."""
    said: list[str] = []
    while True:
        if (train := reader.read(timeout=QUIET_SECONDS)) is not None:
            _echo(lines(train))
            _echo(cuts.lines())
            continue
        _echo(cuts.lines(end=True))
        if (now := list(waits(describeStream(stream)))) != said:
            _echo(now)
            said = now


def _last(trains: Iterable[Train], count: int) -> Iterator[Train]:
    """The last trains, from the last ``count`` rows on."""
    kept: deque[Train] = deque()
    rows = 0
    for train in trains:
        kept.append(train)
        rows += train.rows.num_rows
        while len(kept) > 1 and rows - kept[0].rows.num_rows >= count:
            rows -= kept.popleft().rows.num_rows
    for train in kept:
        yield Train(train.rows.slice(max(rows - count, 0)), train.bound)
        rows = min(rows, count)


def _echo(lines: Iterable[str]) -> None:
    for line in lines:
        click.echo(line)


def _lines(train: Train) -> Iterator[str]:
    for row in train.rows.to_pylist():
        rest = [f"{name}={dump(value)}" for name, value in row.items() if name != ROWTIME]
        yield from parts_in_lines([str(plain(row[ROWTIME])), *rest])
    if train.bound is not None:
        yield styled(f"-- {train.bound}", dim=True)


def _waits(info: StreamInfo) -> Iterator[str]:
    what = f"{info.rowsHeldBack} row(s) wait" if info.rowsHeldBack else "the bound waits"
    yield styled(f"-- {what} for {waiting_for(info)}", dim=True)


def _json_lines(train: Train) -> Iterator[str]:
    for row in train.rows.to_pylist():
        yield dump({"row": row})
    if train.bound is not None:
        yield dump({"bound": train.bound.time, "strict": train.bound.strict})


def _json_waits(info: StreamInfo) -> Iterator[str]:
    yield dump({"holders": info.holders, "waitsFor": info.waitsFor, "rowsHeldBack": info.rowsHeldBack})
