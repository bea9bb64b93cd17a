"""ValueIndex: finds the slots of many values at once, in arrays, without a Python object for each."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Slots = npt.NDArray[np.int64]
_ROOM = 4
"""The tables have at least so many times as many places as there are values."""
_ONE, _OTHER, _WORD = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xFF51AFD7ED558CCD), 8


class ValueIndex:
    """Two tables of slots by hash. A value is in one of them, or, rarely, in neither.

    Law (*a hint*): a slot that ``find`` returns is that of the value, since the two are compared; -1 says nothing.
    """

    def __init__(self) -> None:
        self.count = 0
        """The number of slots that were added."""
        self._tables = self._empty(1024)

    def add(self, every: pa.Array) -> None:
        """Adds the values of ``every`` from the slot ``count`` on."""
        if _ROOM * len(every) > self._tables.shape[1]:
            self._tables, self.count = self._empty(1 << (_ROOM * len(every)).bit_length()), 0
        slots, one_other = (
            np.arange(self.count, len(every), dtype=np.int32),
            self._places(_hashes(every.slice(self.count))),
        )
        left = np.full(len(slots), True)
        for table, places in zip(self._tables, one_other, strict=True):
            free = left & (table[places] < 0)
            table[places[free]] = slots[free]
            left &= table[places] != slots
        self.count = len(every)

    def find(self, values: pa.Array, every: pa.Array) -> Slots:
        """Returns the slot of each value in ``every``, or -1."""
        one, other = self._places(_hashes(values))
        found = self._checked(self._tables[0][one], values, every)
        left = np.flatnonzero(found < 0)
        if len(left):
            found[left] = self._checked(self._tables[1][other[left]], values.take(pa.array(left)), every)
        return found

    def _places(self, hashes: Any) -> tuple[Any, Any]:
        """The place of each hash in both tables: the highest bits of products, which all bits of the hash decide."""
        unused = np.uint64(65 - self._tables.shape[1].bit_length())
        return hashes * _ONE >> unused, hashes * _OTHER >> unused

    @staticmethod
    def _checked(slots: npt.NDArray[np.int32], values: pa.Array, every: pa.Array) -> Slots:
        """The slots whose value is the one that is looked for; -1 in place of all others."""
        if not len(every):
            return np.full(len(values), -1, np.int64)
        same = pc.equal(every.take(pa.array(np.maximum(slots, 0))), values).fill_null(False)
        return np.where(same.to_numpy(zero_copy_only=False), slots, -1).astype(np.int64)

    @staticmethod
    def _empty(size: int) -> npt.NDArray[np.int32]:
        return np.full((2, size), -1, np.int32)


def indexable(kind: pa.DataType) -> bool:
    """Whether the values of a type can be found by a ValueIndex."""
    return bool(pa.types.is_integer(kind)) or kind in (pa.string(), pa.binary())


def _hashes(values: pa.Array) -> Any:
    if pa.types.is_integer(values.type):
        numbers = values.fill_null(0).to_numpy().astype(np.int64).view(np.uint64)
        return _mixed(numbers * _ONE)
    return _text_hashes(values)


def _text_hashes(values: pa.Array) -> Any:
    """Hashes of texts or bytes, eight bytes at a time; what a null has in their place does not matter."""
    _, ends, content = values.buffers()
    limits = np.frombuffer(ends, np.int32, len(values) + 1, 4 * values.offset).astype(np.int64)
    data = np.zeros((content.size if content else 0) + 2 * _WORD, np.uint8)
    data[: -2 * _WORD] = np.frombuffer(content, np.uint8) if content else 0
    words = np.ndarray((len(data) - _WORD + 1,), np.dtype("<u8"), data.data, 0, (1,))
    at, left = limits[:-1], np.diff(limits)
    found = left.astype(np.uint64) * _ONE
    for _ in range(-(-int(left.max(initial=0)) // _WORD)):
        unused = (_WORD * np.maximum(_WORD - left, 0)).astype(np.uint64)
        word = np.where(left > 0, words[at] << np.minimum(unused, np.uint64(63)), np.uint64(0))
        found = _mixed((found ^ word) * _OTHER)
        at, left = np.minimum(at + _WORD, len(data) - _WORD), left - _WORD
    return found


def _mixed(hashes: Any) -> Any:
    return hashes ^ (hashes >> np.uint64(32))
