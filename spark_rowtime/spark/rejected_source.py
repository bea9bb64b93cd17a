"""The streaming read of view=rejected: the rejections between two numbers.

A late row may have any rowtime, so there is no bound until the stream is complete; then no row follows.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from spark_rowtime.errors import DataLostError, InvalidOptionError, StreamCompleteError
from spark_rowtime.spark.directory_mark import DirectoryMark
from spark_rowtime.spark.event_wait import EventWait
from spark_rowtime.spark.options import Options
from spark_rowtime.spark.questions import AskedReader, Offset
from spark_rowtime.store import in_database, open_store
from spark_rowtime.store.base import Store
from spark_rowtime.store.commits import Rejection, rejects_only
from spark_rowtime.store.retention import require_replayed
from spark_rowtime.store.views import rejected_table
from spark_rowtime.types.timestamps import END

Gap = tuple[int, int]
GAPS = "gaps"
"""The key of an offset with the rejections that were removed before the query began."""
NOT_OF_REJECTIONS = ("order", "hold", "punctuate")
"""Options that concern the bound of a stream, which its rejections do not have."""


class RejectedStreamReader(AskedReader):
    """Reads the log of rejections.

    Law: an offset is the number of a rejection; the rejections up to it never change. So a batch that is run again gets
    the same rows, or a DataLostError if some of them have been removed. Those that were removed before the query began,
    between others that are kept, are in its first offset, as pairs of the first and the last one. ``columns`` is the
    number of columns that the query reads; it stays while the query runs, also if columns are added to the stream.

    The offset of the last rejection of a stream that is complete has END as its floor, for the extension. Other
    offsets have no floor.
    """

    def __init__(self, options: Options, columns: int) -> None:
        self._columns = columns
        self._path, self._from_latest = options.path, options.from_latest
        self._max_rows, self._max_bytes = options.count("maxRowsPerTrigger"), options.count("maxBytesPerTrigger")
        self._target: int | None = None
        self._seen: Offset = {}
        _check(options)

    def __getstate__(self) -> dict[str, Any]:
        """The tasks only read."""
        return {**self.__dict__, "_event_wait": None}

    def initialOffset(self) -> Offset:
        """Called once, when a new query starts. The earliest rejection is the first that is kept."""
        if self._from_latest:
            return self._offset(self._store.rejections_end())
        kept = [rejection.number for rejection in self._store.rejections()]
        gaps = [(one + 1, other - 1) for one, other in pairwise(kept) if other > one + 1]
        return self._offset(kept[0] - 1 if kept else 0, gaps)

    @property
    def answers(self) -> Mapping[str, Callable[..., Any]]:
        return {
            "next": lambda start, *, unlimited, **_: self.next(start, unlimited=unlimited),
            "news": self._has_events,
            "latest": lambda _: self.latest(),
            "target": lambda _, **__: self.prepareForTriggerAvailableNow(),
            "plan": lambda _, **__: {},  # only Python can read rejections
            "ended": lambda _, **__: None,
        }

    def next(self, start: Offset, *, unlimited: bool) -> Offset:
        """The end of the next batch. Nothing is registered, and no status is kept, for a reader of rejections."""
        self._seen = self.latest()
        after, end = self._number(start), self._number(self._seen)
        self._require_there(after, end)
        self._require_none_after_the_end(start, end)
        end = end if self._target is None else min(end, self._target)
        reached = max(after, end) if unlimited or self.limits is None else self._limited(after, end)
        return self._seen if reached == self._number(self._seen) else self._offset(reached, self._gaps(start))

    def latest(self) -> Offset:
        """The offset of the newest rejection. Whether the stream has ended is asked first: then none follows."""
        ended = self._has_ended()
        return self._offset(self._store.rejections_end()) | ({"floor": END} if ended else {})

    def _has_ended(self) -> bool:
        """Whether no row can be rejected any more. Bounds beside topics do not end: a topic goes on as it likes."""
        if (self._store.head().floor or 0) < END or self._store.has_cuts():
            return False
        return not any(rejects_only(producer.checkpoint) for producer in self._store.snapshot().records.values())

    def _has_events(self, _: Offset, *, seconds: float, streams: Sequence[str]) -> bool:
        """Whether there is more than the last answer knew, or ``streams`` have events."""
        if streams and self._event_wait is None:
            self._event_wait = EventWait([self._path, *streams])
        if self._event_wait is not None:
            return self._event_wait.wait(seconds) or self.latest() != self._seen
        self._store.wait(self._store.head().seq, seconds)
        return self.latest() != self._seen

    def _limited(self, after: int, end: int) -> int:
        """Returns the number of the rejection that reaches a limit. The limits are soft: a rejection is not divided."""
        rows = size = 0
        for rejection in self._store.rejections(after, end):
            rows, size = rows + rejection.rejected.rows.num_rows, size + rejection.rejected.rows.nbytes
            if rows >= (self._max_rows or rows + 1) or size >= (self._max_bytes or size + 1):
                return rejection.number
        return max(after, end)

    @property
    def limits(self) -> str | None:
        if self._max_rows is not None:
            return "maxRowsPerTrigger"
        return None if self._max_bytes is None else "maxBytesPerTrigger"

    def require_no_extension(self) -> None:
        """A late row has no bound, so the extension is not needed."""

    def prepareForTriggerAvailableNow(self) -> None:
        """The query reads exactly what is rejected now."""
        self._target = self._store.rejections_end()

    def between(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """What a Python worker reads of a batch, also of one that is run again after a restart."""
        after, upto = self._number(start), self._number(end)
        self._require_there(upto, self._store.rejections_end())
        gaps = self._gaps(start)
        if in_database(self._path):
            return [InputPartition(list(_whole(self._store, after, upto, gaps)))]
        return [InputPartition((after, upto, gaps, DirectoryMark.of(self._path)))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Called in a Python worker, once per batch."""
        if isinstance(partition.value, list):
            yield from self._tables(partition.value)
            return
        after, upto, gaps, directory = partition.value
        directory.require_same()
        with open_store(self._path) as store:
            yield from self._tables(_whole(store, after, upto, gaps))

    def _tables(self, rejections: Iterable[Rejection]) -> Iterator[pa.RecordBatch]:
        for rejection in rejections:
            table = rejected_table([rejection], rejection.rejected.rows.schema)
            yield from table.select(range(self._columns)).to_batches()

    def commit(self, end: Offset) -> None:
        """Called after the batch up to ``end`` is committed. Nothing is kept for a reader of rejections."""

    def _offset(self, number: int, gaps: Iterable[Gap] = ()) -> Offset:
        left = [gap for gap in gaps if gap[1] > number]
        return {"stream": self._store.stream, "rejection": number, **({GAPS: left} if left else {})}

    @staticmethod
    def _gaps(offset: Offset) -> list[Gap]:
        return [(first, last) for first, last in offset.get(GAPS, ())]

    def _number(self, offset: Offset) -> int:
        if offset.get("stream") != self._store.stream or not isinstance(offset.get("rejection"), int):
            raise DataLostError(
                f"The checkpoint is not of the rejections of the stream at {self._path}: the stream was deleted and "
                "created again, or the query read another view. Start the query with a new checkpoint.",
                path=self._path,
                offset=offset,
            )
        return int(offset["rejection"])

    def _require_there(self, number: int, end: int) -> None:
        if number > end:
            head = self._store.head()
            require_replayed(head, head.seq + 1, self._path)
            raise DataLostError(
                f"This query has read the rejections of {self._path} up to number {number}, but the last is {end}: the "
                "stream is an older copy. Bring the newer copy back, or start the query with a new checkpoint.",
                path=self._path,
                asked=number,
                last=end,
            )

    def _require_none_after_the_end(self, start: Offset, end: int) -> None:
        if start.get("floor") is not None and end > self._number(start):
            raise StreamCompleteError(
                f"The stream at {self._path} is complete, and this query has said so of its late rows. A query that "
                "reads a topic with these bounds has rejected further rows since. Read them by a batch read of "
                "view=rejected, or by a query with a new checkpoint and a new output, which then never ends.",
                path=self._path,
            )


def _whole(store: Store, after: int, upto: int, gaps: Sequence[Gap]) -> Iterator[Rejection]:
    """Yields the rejections after ``after`` up to ``upto``.

    Raises DataLostError if one has been removed that is in none of the ``gaps``, which were there before.
    """
    behind = {first - 1: last for first, last in gaps}
    last = behind.get(after, after)
    for rejection in store.rejections(after, upto):
        if rejection.number != last + 1:
            break
        last = behind.get(rejection.number, rejection.number)
        yield rejection
    if last < upto:
        raise _removed(store, last + 1)


def _removed(store: Store, number: int) -> DataLostError:
    removed, kept = store.snapshot().rejected_removed, store.settings.retainRejected
    return DataLostError(
        f"Rejection {number} of {store.path} was removed before this query read it: the stream keeps {kept} bytes of "
        f"rejected rows (retainRejected), and has removed {removed} rows; all of them are counted. Start the query "
        "with a new checkpoint to read those that are left, and create streams with a larger retainRejected.",
        path=store.path,
        number=number,
        removed=removed,
    )


def _check(options: Options) -> None:
    for name in NOT_OF_REJECTIONS:
        if options.get(name) is not None:
            raise InvalidOptionError(f"{name} is for the rows of a stream; view=rejected has no bound.", option=name)
    start = (options.get("startingPosition") or "earliest").lower()
    if start not in ("earliest", "latest"):
        raise InvalidOptionError(
            f"startingPosition={start!r}: view=rejected starts at earliest or latest; filter by rejectedAt or rowtime.",
            option="startingPosition",
        )
