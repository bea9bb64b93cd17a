"""What all stores do alike with rejected rows: how they are divided, and which of them have to go."""

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import NamedTuple

import pyarrow as pa

from spark_rowtime.store.commits import Rejected

LARGEST_REJECTION_BYTES = 100_000_000
"""A larger rejection is stored in several rows: a tenth of the largest value that SQLite and PostgreSQL accept."""
PORTION_REJECTIONS = 100
"""How many rejections are read at a time."""
KEPT_PARTS = 8
"""Once the limit is exceeded, this fraction of it is freed, so that not every commit removes something."""
MOST_REMOVED = 1000
"""A commit removes at most so many rejections, beside as many as it adds, so that no other producer waits for long."""


class Old(NamedTuple):
    """A rejection that may be removed: by its ``number``, with so many ``rows`` and bytes."""

    number: int
    rows: int
    size: int


def parts(rows: pa.RecordBatch) -> list[pa.RecordBatch]:
    """Returns the rows in as many rejections as they need."""
    if rows.nbytes <= LARGEST_REJECTION_BYTES or rows.num_rows < 2:
        return [rows]
    half = rows.num_rows // 2
    return parts(rows.slice(0, half)) + parts(rows.slice(half))


def marked(known: Sequence[Rejected], late: Sequence[Rejected]) -> list[tuple[Rejected, bool]]:
    """Returns all in their order, each with whether only the commit found it: those are what a receipt has."""
    return [*((one, False) for one in known), *((one, True) for one in late)]


def going(oldest: Iterable[Old], size: int, limit: int, added: int) -> list[Old]:
    """Returns the rejections that a commit removes, which has ``added`` so many that all now have ``size`` bytes.

    ``oldest``: those from before the commit that no receipt needs, in their order; no more of them are read than go.
    """
    gone: list[Old] = []
    if size <= limit:
        return gone
    for one in islice(oldest, MOST_REMOVED + added):
        if size <= limit - limit // KEPT_PARTS:
            break
        gone.append(one)
        size -= one.size
    return gone
