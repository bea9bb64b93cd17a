"""Who and what a store lets in, the same in each: its errors, and the rows that became late on the way."""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from spark_rowtime.errors import InvalidOptionError, ProducerFencedError
from spark_rowtime.schema import rowtime_micros
from spark_rowtime.store.base import Rejected, Staged, Store


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
