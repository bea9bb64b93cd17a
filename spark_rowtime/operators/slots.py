"""State by time: rows in chunks, one for each slot of time."""

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import MapState, StatefulProcessorHandle

from spark_rowtime.operators.chunks import from_bytes, micros, split, to_bytes


class Slots:
    """The rows that one group keeps under one name, by slot of their time.

    Law: ``since(t)`` is all rows at or after the start of t's slot; after ``drop_before(t)`` nothing
    is left of the slots that end at or before t.
    """

    def __init__(self, handle: StatefulProcessorHandle, name: str, width: int) -> None:
        self._map: MapState = handle.getMapState(name, "slot BIGINT", "chunk BINARY")
        self._width = width

    def starts(self) -> list[int]:
        """The slots that have rows, in order."""
        return sorted(slot for (slot,) in self._map.keys())  # noqa: SIM118  (no dict)

    def add(self, rows: pa.Table, time: str) -> None:
        """More rows, to those that are there."""
        for slot, part in zip(*split(rows, micros(rows, time) // self._width), strict=True):
            there = [self._read(slot)] if self._map.containsKey((slot,)) else []
            self._map.updateValue((slot,), (to_bytes(pa.concat_tables([*there, part])),))

    def since(self, t: int, starts: list[int]) -> Iterator[pa.Table]:
        """The rows of those of the slots that reach to ``t`` or beyond."""
        return (self._read(slot) for slot in starts if self.end(slot) > t)

    def drop_before(self, t: int, starts: list[int]) -> list[int]:
        """Frees the slots that end at or before ``t``; those that remain."""
        for slot in starts:
            if self.end(slot) <= t:
                self._map.removeKey((slot,))
        return [slot for slot in starts if self.end(slot) > t]

    def take_until(self, t: int) -> Iterator[pa.Table]:
        """Removes the slots that begin before ``t`` and gives their rows."""
        for slot in self.starts():
            if slot * self._width < t:
                yield self._read(slot)
                self._map.removeKey((slot,))

    def end(self, slot: int) -> int:
        """The first time after a slot."""
        return (slot + 1) * self._width

    def _read(self, slot: int) -> pa.Table:
        found = self._map.getValue((slot,))
        assert found is not None, f"slot {slot} was listed"
        return from_bytes(found[0])
