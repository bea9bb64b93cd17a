"""RowState: state that holds rows by time, one chunk for each slot of time. WaitingRows: those not yet complete."""

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.streaming.stateful_processor import MapState, StatefulProcessorHandle

from spark_rowtime.operators.chunks import from_bytes, micros, nullable_micros, split, to_bytes, together


class RowState:
    """The rows that a group keeps under one name, by slot of their time.

    Spark keeps a map for each group. Each call to it is a message to the JVM, so :meth:`open` reads once
    which slots exist. Laws: ``between(t, u)`` returns all rows from the start of t's slot to the end of
    u's. After ``drop_before(t)``, nothing is left of the slots that end at or before t.
    """

    def __init__(self, handle: StatefulProcessorHandle, name: str, width: int) -> None:
        self._map: MapState = handle.getMapState(name, "slot BIGINT", "chunk BINARY")
        self._width = width
        self._slots: list[int] = []

    def open(self) -> None:
        """Call it once per group, before any other method, after Spark has made the group the current one."""
        self._slots = sorted(slot for (slot,) in self._map.keys())  # noqa: SIM118  (no dict)

    def starts(self) -> list[int]:
        """Returns the first time of each slot that has rows, in order."""
        return [slot * self._width for slot in self._slots]

    def ends(self) -> list[int]:
        """Returns the first time after each slot that has rows, in order."""
        return [(slot + 1) * self._width for slot in self._slots]

    def first(self) -> pa.Table | None:
        """Returns the rows of the first slot; None without any."""
        return self._read(self._slots[0]) if self._slots else None

    def add(self, rows: pa.Table, time: str) -> None:
        """Adds rows to those in the state."""
        for slot, part in zip(*split(rows, micros(rows, time) // self._width), strict=True):
            there = [self._read(slot)] if slot in self._slots else []
            self._map.updateValue((slot,), (to_bytes(together([*there, part])),))
            self._slots = sorted({*self._slots, slot})

    def between(self, least: int, most: int) -> Iterator[pa.Table]:
        """Yields the rows of the slots that contain times from ``least`` to ``most``, both inclusive."""
        return (self._read(s) for s in self._slots if (s + 1) * self._width > least and s * self._width <= most)

    def drop_before(self, t: int) -> None:
        """Frees the slots that end at or before ``t``."""
        self._remove([slot for slot in self._slots if (slot + 1) * self._width <= t])

    def take_until(self, t: int) -> list[pa.Table]:
        """Removes the slots that begin before ``t``, and returns their rows."""
        slots = [slot for slot in self._slots if slot * self._width < t]
        rows = [self._read(slot) for slot in slots]
        self._remove(slots)
        return rows

    def _remove(self, slots: list[int]) -> None:
        for slot in slots:
            self._map.removeKey((slot,))
        self._slots = [slot for slot in self._slots if slot not in slots]

    def _read(self, slot: int) -> pa.Table:
        found = self._map.getValue((slot,))
        assert found is not None, f"slot {slot} was listed"
        return from_bytes(found[0])


class WaitingRows(RowState):
    """Laws: ``take`` returns each row once, in the first call whose time is above the row's own.

    Rows of one time are returned in the order in which they were given. A row without a time is returned at once.
    """

    def __init__(self, handle: StatefulProcessorHandle, name: str, width: int, time: str) -> None:
        super().__init__(handle, name, width)
        self._time = time
        self._until = 0
        self._put_back: list[int] = []

    def take(self, new: list[pa.Table], until: int) -> pa.Table | None:
        """Removes and returns the rows before ``until``, those of ``new`` last; keeps the others. None without rows."""
        rows = [*self.take_until(until), *new]
        self._until, self._put_back = until, []
        if not rows:
            return None
        table = together(rows)
        complete = pa.array(nullable_micros(table, self._time) < until)
        self._wait(table.filter(pc.invert(complete)))
        return table.filter(complete)

    def earliest(self) -> int | None:
        """Returns a time, after ``take``: no row that waits has an earlier one. None if none waits."""
        # The start of a slot that was not read is early enough for its rows.
        unread = [start for start in self.starts()[:1] if start >= self._until]
        return min(self._put_back + unread, default=None)

    def _wait(self, rows: pa.Table) -> None:
        if rows.num_rows:
            self.add(rows, self._time)
            self._put_back = [int(micros(rows, self._time).min())]
