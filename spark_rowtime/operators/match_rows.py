"""Matches in tables of rows: which rows are matched, what is given out, and which rows have to be kept."""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from spark_rowtime.errors import SchemaMismatchError
from spark_rowtime.operators.chunks import micros
from spark_rowtime.operators.match_path import Path
from spark_rowtime.operators.match_references import Reference
from spark_rowtime.operators.match_search import Search
from spark_rowtime.operators.sorted_rows import in_sequence, key_codes

OPEN = "__matchOpen"
"""The column that says whether a match may begin at a row, or at one behind it."""


def column_of(text: str) -> str:
    """Returns the name of the column with the values of an SQL text: a changed query has it for the same text alone."""
    return f"__match_{hashlib.sha256(text.encode()).hexdigest()[:16]}"


@dataclass(frozen=True)
class Matches:
    """The matches of rows with the columns ``by``, ``rowtime`` and those of ``columns``.

    ``columns``: the column with the values of each SQL text over a row. ``results``: the references that are given out,
    by their column. ``sequence``: the columns that order rows of one key and time. ``back``: how far before a row
    another one is that counts for it.

    Laws: ``advance`` gives out each match once, with the floor from which on no later row changes it. The rows that it
    keeps are those from the first one on at which a match may still begin, and at most ``back`` before it, if they are
    at most ``within`` below that one, or, without one, below the floor.
    """

    search: Search
    by: list[str]
    rowtime: str
    columns: Mapping[str, str]
    results: Mapping[str, Reference]
    sequence: list[str]
    back: int

    def require(self, rows: pa.Table) -> None:
        """Raises SchemaMismatchError if rows of the state are of a query with other conditions or measures."""
        texts = {name: text for text, name in self.columns.items()}
        order = [] if OPEN in rows.column_names else self.sequence
        missing = [name for name in (*self.by, self.rowtime, *order, *texts) if name not in rows.column_names]
        if missing:
            text = texts.get(missing[0], missing[0])
            raise SchemaMismatchError(
                f"matchRecognize needs {text!r} of each row, but rows in its state came before the query was changed, "
                "and do not have it. Start the query with a new checkpoint, or with define and measures as they were.",
                column=text,
            )

    def opened(self, rows: pa.Table) -> pa.Table:
        """Returns rows that are new, in their order, with the columns that are kept."""
        slim = in_sequence(rows, self.sequence).select([*self.by, self.rowtime, *self.columns.values()])
        return slim.append_column(OPEN, pa.array(np.ones(rows.num_rows, np.bool_)))

    def advance(self, rows: pa.Table, floor: int | None) -> tuple[pa.Table, pa.Table]:
        """Returns the matches, and the rows to keep. Later rows are at or after ``floor``; None: there are none."""
        codes = key_codes(rows, self.by)
        order = np.lexsort((micros(rows, self.rowtime), codes))
        rows, codes = rows.take(pa.array(order)), codes[order]
        times, fresh = micros(rows, self.rowtime), rows.column(OPEN).to_numpy()
        values = {text: _values(rows.column(name)) for text, name in self.columns.items()}
        found, kept, still = list[tuple[int, Path]](), np.zeros(len(times), np.bool_), np.zeros(len(times), np.bool_)
        for low, high in _groups(codes):
            own = {text: of[low:high] for text, of in values.items()}
            begin = int(np.max(np.flatnonzero(~fresh[low:high]), initial=-1)) + 1
            paths, rest = self.search.matches(times[low:high].tolist(), own, begin, floor)
            found += [(low, path) for path in paths]
            still[low + rest : high] = True
            first = floor if low + rest == high else int(times[low + rest])
            if first is not None:
                before = slice(low + max(0, rest - self.back), high)
                kept[before] = times[before] >= first - self.search.within
        rest_rows = rows.set_column(rows.column_names.index(OPEN), OPEN, pa.array(still))
        return self._given(rows, found), rest_rows.filter(pa.array(kept))

    def due(self, kept: pa.Table, floor: int) -> int | None:
        """Returns the next floor at which kept rows are decided or freed; None without any."""
        floors = micros(kept, self.rowtime) + self.search.within + 1
        return min(floors[floors > floor].tolist(), default=None)

    def _given(self, rows: pa.Table, found: list[tuple[int, Path]]) -> pa.Table:
        """Returns a row for each match, in the order of the times of their last rows."""
        times = micros(rows, self.rowtime)
        found = sorted(found, key=lambda match: times[match[0] + match[1].last])
        last = pa.array([low + path.last for low, path in found], pa.int64())
        given = {name: rows.column(name).take(last) for name in (*self.by, self.rowtime)}
        for name, reference in self.results.items():
            given[name] = self._result(rows, reference, found)
        return pa.table(given)

    def _result(self, rows: pa.Table, reference: Reference, found: list[tuple[int, Path]]) -> Any:
        if reference.function in ("COUNT", "SUM", "AVG"):
            whole = reference.function == "COUNT" or (
                reference.function == "SUM" and pa.types.is_integer(rows.column(self.columns[reference.text]).type)
            )
            return pa.array([path.value(reference) for _, path in found], pa.int64() if whole else pa.float64())
        one = Path.extreme if reference.function in ("MIN", "MAX") else Path.row
        at = [(low, one(path, reference)) for low, path in found]
        places = pa.array([None if row is None else low + row for low, row in at], pa.int64())
        return rows.column(self.columns[reference.text]).take(places)


def _groups(codes: np.ndarray[Any, np.dtype[np.int64]]) -> Iterator[tuple[int, int]]:
    """Yields the range of the rows of each key."""
    ends = [*(np.flatnonzero(np.diff(codes)) + 1).tolist(), len(codes)] if len(codes) else []
    yield from zip([0, *ends], ends, strict=False)


def _values(column: pa.ChunkedArray) -> list[Any]:
    """Returns the values for conditions: times and intervals in microseconds, dates in days."""
    if pa.types.is_timestamp(column.type) or pa.types.is_duration(column.type):
        return list(column.cast(pa.int64()).to_pylist())
    return list((column.cast(pa.int32()) if pa.types.is_date32(column.type) else column).to_pylist())
