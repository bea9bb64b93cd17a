"""The commands that print rows: ``rowtime tail`` and ``rowtime rejected``."""

import json
import time
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import click

from spark_rowtime.adapter.adapter import RESTART_SECONDS
from spark_rowtime.bounds.bound import as_bound
from spark_rowtime.bounds.origin import BoundOrigin
from spark_rowtime.bounds.train import Train
from spark_rowtime.cli.cuts import PassedCuts
from spark_rowtime.cli.output import as_json, parts_in_lines, say, say_all, styled
from spark_rowtime.cli.streams import waiting_for
from spark_rowtime.errors import DataLostError, StoreUnavailableError
from spark_rowtime.reader.reader import RowReader, openReader
from spark_rowtime.reader.release import dump_position
from spark_rowtime.store import open_store
from spark_rowtime.store.base import Store
from spark_rowtime.store.position import Position
from spark_rowtime.store.views import REJECTED_COLUMNS
from spark_rowtime.stream_description import describeStream
from spark_rowtime.stream_info import StreamInfo
from spark_rowtime.types.json_values import dump, plain
from spark_rowtime.types.schema import ROWTIME
from spark_rowtime.types.timestamps import SECOND_MICROS

QUIET_SECONDS = 1.0
"""A followed stream is quiet after this many seconds without a train. Then the command prints what it waits for."""


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
        if last is not None or not follow:
            for train in reader if last is None else _last(reader, last):
                say_all(lines(train))
                say_all(cuts.lines())
            say_all(cuts.lines(end=True))
        if follow:
            _follow(stream, reader, lines, waits, cuts)
        elif (info := describeStream(stream)).holders or info.rowsHeldBack:
            say_all(waits(info))


def _follow(
    stream: str,
    reader: RowReader,
    lines: Callable[[Train], Iterable[str]],
    waits: Callable[[StreamInfo], Iterable[str]],
    cuts: PassedCuts,
) -> None:
    """Prints trains for ever; each time that the stream is quiet, what it waits for, if this has changed.

    While the store is away, as a database is that starts again, it tries again as often as an adapter is restarted.
    """
    said: list[str] = []
    delays = iter(RESTART_SECONDS)
    while True:
        try:
            if (train := reader.read(timeout=QUIET_SECONDS)) is not None:
                say_all(lines(train))
                say_all(cuts.lines())
            else:
                say_all(cuts.lines(end=True))
                if (now := list(waits(describeStream(stream)))) != said:
                    say_all(now)
                    said = now
            delays = iter(RESTART_SECONDS)
        except StoreUnavailableError as error:
            if (delay := next(delays, None)) is None:
                raise
            say(f"{error} Trying again in {delay:g} s.", err=True)
            time.sleep(delay)


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


def start_of_last(stream: str, order: str, count: int) -> Any:
    """Returns a start for ``openReader`` from which it hands out the last ``count`` rows, and few before them.

    The cost depends on ``count``, and not on the length of the stream.
    """
    try:
        with open_store(stream) as store:
            return _by_arrival(store, count) if order == "arrival" else _by_rowtime(store, count)
    except DataLostError:  # retention has removed rows meanwhile
        return "earliest"


def _by_arrival(store: Store, count: int) -> str:
    head, first = store.head(), store.horizon().seq
    later = bisect_right(range(first, head.seq + 1), head.rows - count, key=lambda seq: store.at(seq).rows)
    if later == 0:
        return "earliest"
    at = store.at(first + later - 1)
    return json.dumps(dump_position(Position(at.seq, None, at.floor), store.stream, "arrival"))


def _by_rowtime(store: Store, count: int) -> Any:
    """Looks back from the bound over ever longer spans of rowtime, until so many rows are certain to be there."""
    head, removed = store.head(), store.horizon().largest
    cut = 0 if head.floor is None else head.floor + 1
    reach = SECOND_MICROS
    while (since := cut - reach) > 0 and (removed is None or removed < since):
        pieces = store.slices(Position(head.seq, since, None), Position(head.seq, cut, None))
        if sum(piece.rows for piece in pieces if piece.least >= since and piece.largest < cut) >= count:
            return as_bound(since)
        reach *= 16
    return "earliest"


_OWN_COLUMNS = len(REJECTED_COLUMNS)


@click.command()
@click.argument("stream")
@as_json
@click.option("-n", "newest", type=click.IntRange(min=1), help="Print only the newest N rows.")
def rejected(stream: str, as_json: bool, newest: int | None) -> None:
    """Print the rejected rows of a stream, oldest first, with the bound that each fell below and whose it was.

    With --json each row is a line.
    """
    with open_store(stream) as store:
        table, removed = store.rejected(), store.snapshot().rejected_removed
    for batch in table.slice(max(table.num_rows - newest, 0) if newest else 0).to_batches():
        own = batch.select(range(_OWN_COLUMNS)).to_pylist()
        rows = batch.select(range(_OWN_COLUMNS, batch.num_columns)).to_pylist()
        for entry, row in zip(own, rows, strict=True):
            say_all([dump({**entry, "row": row})] if as_json else _rejection(entry, row))
    if removed:
        say(f"{removed} older rejected row(s) are counted but no longer kept (retainRejected).", err=True)


def _rejection(entry: dict[str, Any], row: dict[str, Any]) -> list[str]:
    relation = "late, below" if entry["reason"] == "late" else "too far ahead of"
    owner = BoundOrigin(entry["boundOf"], entry["boundBy"], entry["boundEvent"]) if entry["boundOf"] else None
    bound = f"{plain(entry['bound'])}" + (f", {owner}" if owner else "")
    rest = "  ".join(f"{name}={dump(value)}" for name, value in row.items() if name != ROWTIME)
    said = f"{entry['producer']!r} at {plain(entry['rejectedAt'])}: {relation} {bound}"
    return [f"{plain(row[ROWTIME])}  {rest}", f"    rejected from producer {said}"]
