"""Who and what a store lets in, the same in each: its errors, and the rows that became late on the way."""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from spark_rowtime.errors import InvalidOptionError, LateRowError, ProducerFencedError
from spark_rowtime.store.base import Commit, Rejected, Staged, Store
from spark_rowtime.types.schema import rowtime_micros
from spark_rowtime.types.timestamps import show_micros


def admit(store: Store, trains: Sequence[Staged], floor: int | None) -> tuple[tuple[Staged, ...], tuple[Rejected, ...]]:
    """What of ``trains`` is not below the stream's ``floor`` as it stands at the commit, and what is.

    Only what went wrong since the sink looked (idleTimeout, maxLag, a lost lease) is rejected here.
    """
    if floor is None or all(train.least >= floor for train in trains):
        return tuple(trains), ()
    accepted, rejected = [], []
    for train in trains:
        if train.least >= floor:
            accepted.append(train)
            continue
        fits, late = split_late(store.read(train), floor)
        rejected.append(Rejected("late", floor, late))
        if fits.num_rows:
            accepted.append(store.stage(fits))
    return tuple(accepted), tuple(rejected)


def require_whole(commit: Commit, late: Sequence[Rejected]) -> None:
    """LateRowError where ``commit`` is to land whole, but ``late`` rows of it would be rejected."""
    if not commit.whole or not late:
        return
    rows, bound = sum(r.rows.num_rows for r in late), late[0].bound
    raise LateRowError(
        f"{rows} row(s) of producer {commit.producer!r} lie below {show_micros(bound)}, the stream's bound at the "
        "commit. Nothing of the commit has landed.",
        producer=commit.producer,
        rows=rows,
        bound=bound,
    )


def split_late(rows: pa.RecordBatch, floor: int) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    """The rows at or above ``floor``, and those below it."""
    fits = pc.greater_equal(rowtime_micros(rows), floor)
    return rows.filter(fits), rows.filter(pc.invert(fits))


def fenced(producer: str, epoch: int, now: int) -> ProducerFencedError:
    """The error for a call of an epoch that is over."""
    return ProducerFencedError(
        f"Producer {producer!r} was taken over: this sink has epoch {epoch}, the stream {now}. Nothing of "
        "this call has landed. Open a new sink under the name if this process is to go on, and look "
        "for the other one.",
        producer=producer,
        epoch=epoch,
        current=now,
    )


def never_attached(producer: str) -> InvalidOptionError:
    """The error for a call in the name of a producer that the stream does not know."""
    return InvalidOptionError(f"No producer {producer!r} has ever been attached to this stream.", producer=producer)


def redeclared(producer: str, stored: str, given: str) -> InvalidOptionError:
    """The error for a takeover with another declaration of order."""
    return InvalidOptionError(
        f"Producer {producer!r} was declared as {stored}, not {given}. The state of its disorder cannot carry "
        "over: open it as it was declared, or under another name.",
        producer=producer,
        stored=stored,
        given=given,
    )
