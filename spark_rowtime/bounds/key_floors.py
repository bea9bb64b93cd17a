"""KeyFloors: the floor of each value of a key column, in arrays, and what of it has changed since the last commit."""

from collections.abc import Sequence
from datetime import timedelta
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spark_rowtime.bounds.key_parts import UNKNOWN, Floors, KeyChanges, KeyParts
from spark_rowtime.bounds.value_index import ValueIndex, indexable

MOST_PARTS = 1024
"""After this many parts, the state is written as a whole again."""
MOST_BYTES_PER_BYTE = 4
"""The state is also written as a whole again where the parts after it have more than so many bytes per byte of it."""
FEW = 16
"""Fewer values than this are looked up one by one."""
FORGOTTEN_SHARE = 16
"""The list of ``one_by_one`` is dropped where one in so many of its entries, or more, would have to be forgotten."""


class _Returned(NamedTuple):
    """Changes that were returned, the slots and floors in them, and the numbers of the slots' values in the parts."""

    changes: KeyChanges
    slots: Floors
    floors: Floors
    numbers: Floors


class KeyFloors:
    """The values known, each with a slot in the array ``floors``, in microseconds.

    Law (*costs what changed*): what ``changes`` returns has only the values whose floor is not the stored one, except
    that from time to time it has all values, so that the parts that are stored do not outgrow them.
    """

    def __init__(self, kind: pa.DataType) -> None:
        self._packing = KeyParts(kind)
        self.slots: dict[Any, int] = {}
        """The slot of each value, also of values that were let go."""
        self._values = pa.array([], kind)
        self._fresh: list[Any] = []
        self._weakest = 0, UNKNOWN
        self.peak = 0
        """At least the largest floor of a value that is known: a row from here on is in order, whatever its value."""
        self._indexable, self._index = indexable(kind), ValueIndex()
        self.floors: Floors = np.full(64, UNKNOWN, np.int64)
        self._one_by_one: list[timedelta | None] = []
        self._stored, self._restored = self.floors.copy(), self.floors.copy()
        self._numbers: npt.NDArray[np.int32] = np.full(64, -1, np.int32)
        """The number of each value in the parts that are stored; -1: it is in none of them."""
        self._count = self._parts = self._whole_bytes = self._later_bytes = 0
        self._returned: _Returned | None = None

    def __len__(self) -> int:
        """The number of values known."""
        return int(np.count_nonzero(self.floors != UNKNOWN))

    def find(self, values: pa.Array) -> Floors:
        """Returns the slot of each value; -1 for a value that has none."""
        if len(values) < FEW or not self._indexable:
            return self._find_by_one(values)
        every = self._every()
        if self._index.count < len(every):
            self._index.add(every)
        found = self._index.find(values, every)
        left = np.flatnonzero(found < 0)
        if len(left):
            found[left] = self._find_by_one(values.take(pa.array(left)))
        return found

    def at(self, slots: Floors) -> Floors:
        """Returns the floors at ``slots``; 0 for a value that is not known."""
        found: Floors = self.floors.take(slots, mode="clip")
        if slots.min(initial=0) < 0 or found.max(initial=0) == UNKNOWN:
            found[(slots < 0) | (found == UNKNOWN)] = 0
        return found

    def of(self, value: Any) -> int | None:
        """Returns the floor of one value; None if it is not known."""
        floor = int(self.floors[self.slots[value]]) if value in self.slots else UNKNOWN
        return None if floor == UNKNOWN else floor

    def raised(self, value: Any) -> int | None:
        """Returns the floor of one value, if it is known and not as it was when the state was restored."""
        floor = self.of(value)
        return None if floor is None or floor == self._restored[self.slots[value]] else floor

    def set(self, values: pa.Array, slots: Floors, floors: Floors) -> None:
        """Sets the floors of values; of one that is named several times, the last floor counts.

        ``slots`` is what ``find`` returned for them.
        """
        new = np.flatnonzero(slots < 0)
        if len(new):
            strangers, slots = values.take(pa.array(new)), slots.copy()
            self._place(strangers.unique().to_pylist())
            slots[new] = self._find_by_one(strangers)
        self._put(slots, floors)
        self._forget(slots)

    def rise(self, values: pa.Array, floors: Floors) -> None:
        """Raises the floors of known values to those that are in ``one_by_one`` already; the last of a value counts."""
        self._put(self.find(values), floors)

    def one_by_one(self) -> list[timedelta | None]:
        """Returns a list in which rows that come one by one keep the floors of their values, by slot.

        None stands where ``floors`` has the floor. The caller passes the others to ``rise`` before any other call.
        """
        if not self._one_by_one:
            self._one_by_one = [None] * len(self.floors)
        return self._one_by_one

    def forget_one_by_one(self) -> None:
        """Lets ``floors`` have all floors again."""
        self._one_by_one = []

    def set_one(self, value: Any, floor: int) -> None:
        """Sets the floor of one value."""
        slot = self.slots[value] if value in self.slots else self._place([value])[0]
        self._put(np.array([slot]), np.array([floor]))
        self._forget([slot])

    def remove(self, slots: Any) -> None:
        """Lets values go, which are no longer known."""
        self.floors[slots] = UNKNOWN
        self._forget(np.atleast_1d(slots))

    def weakest(self) -> int | None:
        """Returns the least floor of a known value; None if no value is known.

        A floor rises, or its value is let go. So the value that was the weakest still is, if its floor is unchanged.
        """
        slot, floor = self._weakest
        if self.floors[slot] != floor:
            slot = int(self.floors.argmin())
            self._weakest = slot, int(self.floors[slot])
        return None if self._weakest[1] == UNKNOWN else self._weakest[1]

    def changes(self) -> KeyChanges | None:
        """Returns what the next commit stores; None if nothing has changed since the last one."""
        changed = np.flatnonzero(self.floors != self._stored)
        if not len(changed):
            return None
        outgrown = self._later_bytes > MOST_BYTES_PER_BYTE * self._whole_bytes
        whole = outgrown or not 0 < self._parts < MOST_PARTS
        self._returned = self._pack_all() if whole else self._pack(changed)
        return self._returned.changes

    def landed(self, changes: KeyChanges) -> None:
        """Records that a commit has stored ``changes``, the last that were returned."""
        assert self._returned is not None
        returned, self._returned = self._returned, None
        assert returned.changes is changes
        if changes.whole:
            self._numbers[:] = -1
            self._stored[:] = UNKNOWN
        self._count = 0 if changes.whole else self._count
        self._stored[returned.slots], new = returned.floors, int(np.searchsorted(returned.numbers, self._count))
        self._numbers[returned.slots[new:]] = returned.numbers[new:]
        self._count += len(returned.numbers) - new
        self._grow([len(changes.content)], whole=changes.whole)
        if len(self.slots) > len(self.floors) // 2 and len(self) < len(self.floors) // 4:
            self._compact()

    def restore(self, parts: Sequence[bytes]) -> None:
        """Continues from the parts that were stored, in their order. Nothing is known before."""
        if not parts:
            return
        values, floors = self._packing.unpack(parts)
        numbers = np.flatnonzero(floors != UNKNOWN)
        self._place(values.take(pa.array(numbers)).to_pylist())
        slots = slice(len(numbers))
        self.floors[slots], self._numbers[slots] = floors[numbers], numbers
        self.peak = int(floors[numbers].max(initial=0))
        self._stored, self._restored = self.floors.copy(), self.floors.copy()
        self._weakest, self._count = (0, -1), len(values)
        self._grow([len(part) for part in parts], whole=True)

    def known(self) -> list[tuple[Any, int]]:
        """Returns the known values and their floors."""
        pairs = ((value, int(self.floors[slot])) for value, slot in self.slots.items())
        return [pair for pair in pairs if pair[1] != UNKNOWN]

    def _find_by_one(self, values: pa.Array) -> Floors:
        if len(values) < FEW:
            return np.fromiter(map(self.slots.get, values.to_pylist(), repeat(-1)), np.int64, len(values))
        coded = values.dictionary_encode(null_encoding="encode")
        distinct = coded.dictionary
        slots = np.fromiter(map(self.slots.get, distinct.to_pylist(), repeat(-1)), np.int64, len(distinct))
        found: Floors = slots[coded.indices.to_numpy()]
        return found

    def _forget(self, slots: Any) -> None:
        if FORGOTTEN_SHARE * len(slots) >= len(self._one_by_one):
            self.forget_one_by_one()
        for slot in slots if self._one_by_one else ():
            self._one_by_one[slot] = None

    def _put(self, slots: Floors, floors: Floors) -> None:
        """Sets floors. The least of them becomes the weakest, if it is below: a value that becomes known may be."""
        self.floors[slots] = floors
        self.peak = max(self.peak, int(floors.max(initial=0)))
        if floors.min(initial=UNKNOWN) < self._weakest[1]:
            slot = int(slots[self.floors[slots].argmin()])
            self._weakest = min(self._weakest, (slot, int(self.floors[slot])), key=lambda place: place[1])

    def _pack(self, slots: Floors) -> _Returned:
        """The floors at ``slots``, after what is stored already."""
        numbers = self._numbers[slots].astype(np.int64)
        new = np.flatnonzero(numbers < 0)
        numbers[new] = np.arange(self._count, self._count + len(new))
        if np.diff(numbers).min(initial=1) < 1:
            order = np.argsort(numbers)
            slots, numbers = slots[order], numbers[order]
        return self._packed(slots, numbers, slots[len(slots) - len(new) :], whole=False)

    def _pack_all(self) -> _Returned:
        slots = np.flatnonzero(self.floors != UNKNOWN)
        return self._packed(slots, np.arange(len(slots)), slots, whole=True)

    def _packed(self, slots: Floors, numbers: Floors, new: Floors, *, whole: bool) -> _Returned:
        floors = self.floors[slots]
        content = self._packing.pack(self._every().take(pa.array(new)), numbers, floors)
        return _Returned(KeyChanges(whole, content), slots, floors, numbers)

    def _grow(self, sizes: list[int], *, whole: bool) -> None:
        """Counts parts that are stored, by their sizes; the first is ``whole``, or none is."""
        if whole:
            self._parts, self._whole_bytes, self._later_bytes = 0, sizes[0], -sizes[0]
        self._parts, self._later_bytes = self._parts + len(sizes), self._later_bytes + sum(sizes)

    def _every(self) -> pa.Array:
        """Returns all values, by slot."""
        if self._fresh:
            fresh, self._fresh = pa.array(self._fresh, self._values.type), []
            self._values = pa.concat_arrays([self._values, fresh])
        return self._values

    def _place(self, values: list[Any]) -> range:
        """Returns the slots that new values have from now on."""
        slots = range(len(self.slots), len(self.slots) + len(values))
        self._fresh += values
        self.slots.update(zip(values, slots, strict=True))
        if len(self.slots) > len(self.floors):
            self._resize(slice(None))
        return slots

    def _compact(self) -> None:
        """Drops the values that were let go, so that memory does not grow with values that come and go."""
        count = len(self.slots)
        kept = np.flatnonzero((self.floors[:count] != UNKNOWN) | (self._stored[:count] != UNKNOWN))
        self._values = self._every().take(pa.array(kept))
        self._index, self._numbers, self._one_by_one = ValueIndex(), self._numbers[kept], []
        self.slots.clear()
        self.slots.update(zip(self._values.to_pylist(), range(len(kept)), strict=True))
        self._resize(kept)

    def _resize(self, kept: Any) -> None:
        """Makes room for all slots; the first ones are those ``kept``."""
        size, self._weakest = max(64, 1 << len(self.slots).bit_length()), (0, -1)
        self._numbers = np.concatenate([self._numbers, np.full(size - len(self._numbers), -1, np.int32)])
        self._one_by_one += [None] * (size - len(self._one_by_one)) if self._one_by_one else []
        self.floors, self._stored, self._restored = (
            np.concatenate([array[kept], np.full(size - len(array[kept]), UNKNOWN, np.int64)])
            for array in (self.floors, self._stored, self._restored)
        )
