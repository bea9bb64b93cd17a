"""CurrentRows: state that holds one row for each of many keys."""

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import MapState, StatefulProcessorHandle, ValueState

from spark_rowtime.operators.asof_match import AsOf
from spark_rowtime.operators.chunks import from_bytes, split, to_bytes, together
from spark_rowtime.operators.sorted_rows import Index

HASH = "keyHash"
"""The column with Spark's hash of a row's key."""
PAGE_ROWS = 4096
"""A page has about so many rows at most: few calls for a batch of many keys, and little to rewrite for one key."""
_BUCKET_BITS = 16
"""The lowest bits of the hash, which may be the same in all rows of a bucket."""

_NOTHING = (1, 0, 0)


class CurrentRows:
    """The last right row of each key of a group, in pages of keys by their hash.

    A batch reads and writes the pages of its keys only. The number of pages doubles as the keys become more.
    Laws: ``of`` returns, of all rows that were ``put``, the last of each key whose hash is asked for. With a tolerance,
    no row stays for longer than twice that behind the time up to which no left row follows.
    """

    def __init__(self, handle: StatefulProcessorHandle, name: str, asof: AsOf) -> None:
        self._map: MapState = handle.getMapState(name, "page BIGINT", "chunk BINARY")
        self._sizes: ValueState = handle.getValueState(f"{name}Size", "pages BIGINT, rows BIGINT, swept BIGINT")
        self._asof = asof

    def open(self) -> None:
        """Call it once per group, before any other method, after Spark has made the group the current one."""
        self._stored = tuple(self._sizes.get() or _NOTHING)
        self._pages, self._rows, self._swept = self._stored
        self._read: dict[int, pa.Table | None] = {}

    def of(self, hashes: Index) -> list[pa.Table]:
        """Returns the rows whose keys have one of these hashes."""
        if not self._rows:
            return []
        found = self._tables(np.unique(self._page(hashes)))
        return [rows.filter(pa.array(np.isin(rows.column(HASH).to_numpy(), hashes))) for rows in found]

    def put(self, rows: pa.Table) -> None:
        """Adds rows, which arrived after those that are there. Keeps the last of each key."""
        fresh = self._asof.latest(rows)
        if self._rows + fresh.num_rows > PAGE_ROWS * self._pages:
            self._rebuild([*self._all(), fresh])
            return
        old = self._tables(np.unique(self._page(fresh.column(HASH).to_numpy())))
        kept = self._asof.latest(together([*old, fresh]))
        self._rows += kept.num_rows - sum(rows.num_rows for rows in old)
        self._write(kept)

    def due(self) -> int | None:
        """Returns the time at which ``close`` looks for rows to free; None if it never does."""
        return self._swept + self._asof.tolerance if self._rows and self._asof.tolerance is not None else None

    def close(self, until: int) -> None:
        """Frees the rows that no left row from ``until`` on gets, and writes what has changed."""
        due = self.due()
        if due is not None and until >= due:
            self._swept = until
            self._rebuild(self._all())
        sizes = (self._pages, self._rows, self._swept)
        if self._rows and sizes != self._stored:
            self._sizes.update(sizes)
        elif not self._rows and self._stored != _NOTHING:
            self._sizes.clear()

    def _rebuild(self, tables: list[pa.Table]) -> None:
        """Writes all rows again, into as many pages as they need."""
        kept = self._asof.latest(together(tables))
        if self._asof.tolerance is not None:
            kept = kept.filter(pa.array(self._asof.times(kept) >= self._swept - self._asof.tolerance))
        self._map.clear()
        self._rows, self._read = kept.num_rows, {}
        self._pages = 1 << (2 * self._rows // PAGE_ROWS).bit_length()
        self._write(kept)

    def _write(self, rows: pa.Table) -> None:
        for page, part in zip(*split(rows, self._page(rows.column(HASH).to_numpy())), strict=True):
            self._map.updateValue((page,), (to_bytes(part),))
            self._read[page] = part

    def _page(self, hashes: Index) -> Index:
        found: Index = (hashes >> _BUCKET_BITS) & (self._pages - 1)
        return found

    def _all(self) -> list[pa.Table]:
        return [from_bytes(chunk) for (chunk,) in self._map.values()]

    def _tables(self, pages: Iterable[int]) -> list[pa.Table]:
        return [rows for rows in (self._table(int(page)) for page in pages) if rows is not None]

    def _table(self, page: int) -> pa.Table | None:
        if page not in self._read:
            found = self._map.getValue((page,))
            self._read[page] = None if found is None else from_bytes(found[0])
        return self._read[page]
