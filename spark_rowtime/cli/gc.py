"""The command ``rowtime gc``."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import click

from spark_rowtime.admin.description import blocking
from spark_rowtime.admin.streams import Advance, progress_bar
from spark_rowtime.cli.intervals import INTERVAL
from spark_rowtime.cli.output import as_json, echo_json, say
from spark_rowtime.errors import RowtimeError
from spark_rowtime.store import open_store
from spark_rowtime.store.base import Store
from spark_rowtime.store.snapshot import Collected
from spark_rowtime.stream_description import describeStream
from spark_rowtime.types.timestamps import to_interval


@click.command()
@click.argument("stream")
@click.option(
    "--age",
    type=INTERVAL,
    help="Remove rows committed at least this long ago: '7 days'.  [default: the stream's retainAge]",
)
@click.option(
    "--bytes",
    "size",
    type=click.IntRange(0),
    help="Remove the oldest rows beyond this many bytes.  [default: the stream's retainBytes]",
)
@click.option("--forget", multiple=True, metavar="READER", help="First forget a reader that will not come back.")
@click.option(
    "--forget-older",
    type=INTERVAL,
    metavar="AGE",
    help="First forget the readers that were not seen for this long: '30 days'. A running one is seen each minute.",
)
@click.option("--force", is_flag=True, help="Also remove rows that registered readers and queries have still to read.")
@as_json
def gc(
    stream: str,
    age: str | None,
    size: int | None,
    forget: tuple[str, ...],
    forget_older: str | None,
    force: bool,
    as_json: bool,
) -> None:
    """Remove old rows that no reader needs any more.

    Rows that the bound has not released always stay. Rows that a query or a named reader has still to read stay
    unless --force is given; `rowtime describe` lists these readers.

    Producers that left a day ago or earlier are forgotten, unless they have a checkpoint, or rejected rows that are
    kept. Their rows stay counted.
    """
    with open_store(stream) as store:
        forgotten = list(dict.fromkeys([*forget, *_unseen(store, to_interval(forget_older, "forget-older"))]))
        for reader in forgotten:
            store.forget(reader)
            if not as_json:
                say(f"{stream}: forgot reader {reader!r}")
        with removal_progress(stream):
            done = store.gc(to_interval(age, "age"), size, force)
        kept_from = store.horizon().seq
    warnings = blocking(describeStream(stream)) if done.kept_for else []
    if as_json:
        echo_json({"stream": stream, "forgotten": forgotten, **_shown(done), "seq": kept_from, "warnings": warnings})
    else:
        _say_removed(stream, done, kept_from, warnings)


def _unseen(store: Store, age: int | None) -> list[str]:
    """The readers that were not seen for so many microseconds; none for None."""
    return [] if age is None else [reader.name for reader in store.snapshot().readers if reader.unseen >= age]


def _shown(done: Collected) -> dict[str, object]:
    """What was removed, by the keys of the JSON."""
    return {
        "rows": done.rows,
        "files": done.files,
        "bytes": done.size,
        "forgottenProducers": done.forgotten,
        "held": done.kept_for,
    }


def _say_removed(stream: str, done: Collected, kept_from: int, warnings: list[str]) -> None:
    say(f"{stream}: removed {done.rows} rows, and {done.files} files of {done.size} bytes")
    if done.forgotten:
        say(f"{stream}: forgot {done.forgotten} producers that left long ago; their rows stay counted")
    if done.kept_for:
        say(f"More rows are old enough, but are kept after seq {kept_from}: {done.kept_for}.")
    for warning in warnings:
        say(f"warning   {warning}")


LOOK_SECONDS = 0.5
"""The interval at which the number of removed rows is read."""


@contextmanager
def removal_progress(stream: str) -> Iterator[None]:
    """Shows on a terminal how many rows of the stream are removed, until the block ends."""
    with progress_bar("removing") as advance:
        if advance is None:
            yield
            return
        ended = threading.Event()
        looking = threading.Thread(target=_look, args=(stream, advance, ended), daemon=True)
        looking.start()
        try:
            yield
        finally:
            ended.set()
            looking.join()


def _look(stream: str, advance: Advance, ended: threading.Event) -> None:
    with suppress(RowtimeError), open_store(stream) as store:
        while not ended.wait(LOOK_SECONDS):
            advance(store.horizon().rows, store.head().rows)
