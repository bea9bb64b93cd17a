"""The bytes of a commit: of its trains, apart from objects, of its rejected rows and of its keys."""

from collections.abc import Iterable, Iterator

import pyarrow as pa

from spark_rowtime.store.commits import Commit
from spark_rowtime.store.limits import Cuts
from spark_rowtime.store.postgres import rejections, trains
from spark_rowtime.store.postgres.inline import Inline

Contents = Iterator[tuple[object, list[bytes]]]
"""Things, each with the bytes of its parts: what ``Ahead`` takes."""


def of_commit(commit: Commit, cuts: Cuts) -> Contents:
    """Yields the contents of a commit whose late rows were cut off by ``cuts``."""
    for place, whole in enumerate(commit.trains):
        train = cuts[place].fits if place in cuts else whole
        if train is not None and isinstance(train.location, Inline):
            yield train, [content for *_, content in trains.parts(0, train)]
    yield from of_rows(found.late for found in cuts.values())
    yield from of_rows(rejected.rows for rejected in commit.rejected)
    if commit.keys is not None:
        yield commit.keys, [commit.keys.content]


def of_rows(batches: Iterable[pa.RecordBatch]) -> Contents:
    """Yields the contents of rejected rows."""
    for rows in batches:
        yield rows, [content for _, content in rejections.contents(rows)]
