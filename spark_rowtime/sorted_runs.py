"""Sorts any number of rows by rowtime in bounded memory, by merging sorted runs on disk."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import Self

import pyarrow as pa
import pyarrow.compute as pc

from spark_rowtime.errors import StoreUnavailableError
from spark_rowtime.types.schema import ROWTIME, rowtime_micros


class SortedRuns:
    """Takes batches in any order, and then returns all their rows sorted by ``rowtime``.

    Law (*sorted*): the result equals ``sorted()`` by rowtime over all rows, so rows with the same rowtime
    stay in the order in which they were added. It needs memory for a few times ``run_bytes``, or for a
    batch of ``batch_rows`` per run. Use it in one thread: call ``add`` any number of times, then ``merged`` once.
    """

    def __init__(self, run_bytes: int = 64 << 20, batch_rows: int = 8192) -> None:
        self._run_bytes, self._batch_rows = run_bytes, batch_rows
        self._pending: list[pa.RecordBatch] = []
        self._bytes = 0
        self._folder: TemporaryDirectory[str] | None = None
        self._files: list[Path] = []

    def add(self, rows: pa.RecordBatch) -> None:
        """Adds rows. All rows must have the same schema."""
        self._pending.append(rows)
        self._bytes += rows.nbytes
        if self._bytes >= self._run_bytes:
            self._spill()

    def merged(self) -> Iterator[pa.RecordBatch]:
        """Yields all rows, sorted."""
        last = self._take_sorted()
        return _merge([*map(_read, self._files), iter(last)]) if self._files else iter(last)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._folder is not None:
            self._folder.cleanup()

    def _take_sorted(self) -> list[pa.RecordBatch]:
        pending, self._pending, self._bytes = self._pending, [], 0
        batches: list[pa.RecordBatch] = _sort(pending).to_batches(self._batch_rows) if pending else []
        return batches

    def _spill(self) -> None:
        batches = self._take_sorted()
        try:
            if self._folder is None:
                self._folder = TemporaryDirectory(prefix="rowtime-sort-")
            file = Path(self._folder.name) / f"{len(self._files)}.arrow"
            with pa.ipc.new_file(str(file), batches[0].schema) as run:
                for batch in batches:
                    run.write_batch(batch)
        except OSError as error:
            raise StoreUnavailableError(
                f"The rows cannot be sorted in {gettempdir()} ({error}). Nothing was sent. Free space there, or name "
                "another folder in TMPDIR.",
                path=gettempdir(),
            ) from None
        self._files.append(file)


def _read(file: Path) -> Iterator[pa.RecordBatch]:
    with pa.memory_map(str(file)) as source, pa.ipc.open_file(source) as run:
        for number in range(run.num_record_batches):
            yield run.get_batch(number)


def _sort(batches: list[pa.RecordBatch]) -> pa.Table:
    """Sorts by rowtime. The sort is stable."""
    table = pa.Table.from_batches(batches).combine_chunks()
    return table.take(pc.sort_indices(table, sort_keys=[(ROWTIME, "ascending")]))


def _merge(runs: list[Iterator[pa.RecordBatch]]) -> Iterator[pa.RecordBatch]:
    """Merges sorted runs into one. Rows with the same rowtime stay in the order of their runs.

    Each step yields the batch that ends first, with all rows of the other runs that sort before its end. Of two
    batches with the same end, it takes that of the earlier run. So no row overtakes a row of an earlier run.
    """
    heads = {number: rows for number, run in enumerate(runs) if (rows := next(run, None)) is not None}
    while heads:
        end, leader = min((_time(rows, -1), number) for number, rows in heads.items())
        pieces = []
        for number, rows in list(heads.items()):
            count = _count_upto(rows, end, inclusive=number <= leader)
            pieces.append(rows.slice(0, count))
            rest = rows.slice(count) if count < rows.num_rows else next(runs[number], None)
            if rest is None:
                del heads[number]
            else:
                heads[number] = rest
        yield from _sort(pieces).to_batches()


def _time(rows: pa.RecordBatch, at: int) -> int:
    time: int = rows.column(ROWTIME)[at].value
    return time


def _count_upto(rows: pa.RecordBatch, end: int, inclusive: bool) -> int:
    bisect = bisect_right if inclusive else bisect_left
    return bisect(rowtime_micros(rows), end, key=lambda scalar: scalar.as_py())
