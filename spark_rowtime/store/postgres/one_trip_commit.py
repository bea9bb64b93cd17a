"""A commit in one round trip: the server decides it, by a function of the database.

It is for what nearly every commit is: at most one train, in the database, and a bound, of a producer that is attached
and becomes neither late nor too far ahead. The function locks the stream, checks that the commit is such a one, and
makes it as :mod:`spark_rowtime.store.ledger` would. Otherwise it does nothing, and the ledger decides the commit.
"""

from importlib.resources import files
from typing import Any, NamedTuple

from spark_rowtime.bounds.bound import is_end
from spark_rowtime.store.commits import Commit, Receipt, Staged
from spark_rowtime.store.postgres.eras import ERA_COMMITS, ERA_PRODUCERS
from spark_rowtime.store.postgres.inline import Inline
from spark_rowtime.store.postgres.trains import PART_BYTES
from spark_rowtime.store.settings import StreamSettings
from spark_rowtime.store.steady_clock import Reading
from spark_rowtime.store.widths import width_class

FUNCTION = (
    files(__package__)
    .joinpath("one_trip_commit.sql")
    .read_text("utf-8")
    .replace("ERA_COMMITS,", f"{ERA_COMMITS},")
    .replace("ERA_PRODUCERS *", f"{ERA_PRODUCERS} *")
)
_CALL = f"SELECT * FROM rowtime.commit_plainly({', '.join(['%s'] * 21)})"  # noqa: S608  (constants)
_NO_TRAIN = (None,) * 7


class Landed(NamedTuple):
    """The outcome of a commit: its receipt, and what decides whether old trains are to be removed."""

    receipt: Receipt
    uptime: int
    cleaned: int | None
    train_bytes: int


def one_trip_suffices(commit: Commit, settings: StreamSettings) -> bool:
    """Returns whether the server may decide the commit."""
    if settings.maxLag is not None or len(commit.trains) > 1 or is_end(commit.floor):
        return False
    if commit.idle or commit.rejected or commit.bounds or commit.keys is not None or commit.query_status is not None:
        return False
    if not commit.trains:
        return settings.boundsBeforeRows and commit.floor is not None
    place = commit.trains[0].location
    return isinstance(place, Inline) and place.length <= PART_BYTES


def call(
    commit: Commit, stream: int, name: str, settings: StreamSettings, replaced: Reading | None, wall: int | None
) -> tuple[str, tuple[Any, ...]]:
    """Returns the statement for a commit for which one round trip suffices.

    ``replaced``: a reading that replaces the database's clock; ``wall``: one that replaces its wall clock.
    """
    clock = (None, None, wall) if replaced is None else (replaced.boot, replaced.micros, wall)
    return _CALL, (
        stream, name, commit.producer, commit.epoch, commit.session, commit.number, commit.floor, commit.checkpoint,
        commit.disorder, settings.idleTimeout, settings.maxAhead, *clock,
        *(_train(commit.trains[0]) if commit.trains else _NO_TRAIN),
    )  # fmt: skip


def landed(row: tuple[Any, ...] | None) -> Landed | None:
    """Returns the outcome in the answer to ``call``; None: the server has changed nothing."""
    if row is None or row[0] is None:
        return None
    seq, floor, *more = row
    return Landed(Receipt(seq, floor), *more)


def _train(train: Staged) -> tuple[Any, ...]:
    place, width = train.location, width_class(train.least, train.largest)
    return train.rows, train.least, train.largest, width, place.length, place.checksum, place.content
