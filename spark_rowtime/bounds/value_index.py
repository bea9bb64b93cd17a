"""ValueIndex: finds the slots of many values at once, in arrays, without a Python object for each."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Slots = npt.NDArray[np.int64]
CHUNK_ROWS = 32_768
"""Values are found so many at a time, so that the arrays in between stay in the processor's cache."""
_ROOM = 4
"""The tables have at least so many times as many places as there are values."""
_ONE, _OTHER = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xFF51AFD7ED558CCD)
_WORD = 8
_KEEPS = np.array([(1 << 8 * count) - 1 for count in range(_WORD + 1)], np.uint64)
"""By number of bytes: what remains of a word if only so many of its first bytes count."""
_LENGTH_BITS = np.uint64(56)
"""The place of a value's length in the second word of its head."""
_LONG, _NULL = 2 * _WORD, 255
"""Stand in the place of a length, for a value that is longer than its head, and for a null."""


class _Words(NamedTuple):
    """Values as numbers: hashes, and heads of two words: the first 15 bytes of a text, and its length.

    Two values are the same if their heads are; where values are longer, Arrow compares them.
    """

    hashes: Any
    heads: Any
    rows: Any = None
    """The positions of the values, if these are only some of the values."""

    def at(self, rows: Any) -> "_Words":
        """The values at ``rows``."""
        return _Words(self.hashes[rows], self.heads[rows], rows)

    def have_length(self, length: int) -> Any:
        """For each value whether this stands in the place of its length."""
        return self.heads[:, 1] >> _LENGTH_BITS == length


class ValueIndex:
    """Two tables of slots by hash. A value is in one of them, or, rarely, in neither.

    Law (*a hint*): a slot that ``find`` returns is that of the value, since the two are compared; -1 says nothing.
    """

    def __init__(self) -> None:
        self.count = 0
        """The number of slots that were added."""
        self._tables = self._empty(1024)
        self._heads: Any = np.empty((0, 2), np.uint64)

    def add(self, every: pa.Array) -> None:
        """Adds the values of ``every`` from the slot ``count`` on."""
        if _ROOM * len(every) > self._tables.shape[1]:
            self.__init__()  # type: ignore[misc]
            self._tables = self._empty(1 << (_ROOM * len(every)).bit_length())
        slots, words = np.arange(self.count, len(every), dtype=np.int32), _words(every.slice(self.count))
        left = ~words.have_length(_NULL)
        for table, places in zip(self._tables, self._places(words.hashes), strict=True):
            free = left & (table[places] < 0)
            table[places[free]] = slots[free]
            left &= table[places] != slots
        self._heads = np.concatenate([self._heads, words.heads])
        self.count = len(every)

    def find(self, values: pa.Array, every: pa.Array) -> Slots:
        """Returns the slot of each value in ``every``, or -1."""
        found = np.full(len(values), -1, np.int64)
        for start in range(0, len(values) if self.count else 0, CHUNK_ROWS):
            part = values.slice(start, CHUNK_ROWS)
            found[start : start + len(part)] = self._find(part, every)
        return found

    def _find(self, values: pa.Array, every: pa.Array) -> Any:
        words = _words(values)
        one, other = self._places(words.hashes)
        found = self._checked(self._tables[0].take(one), words, values, every)
        left = np.flatnonzero(found < 0)
        if len(left):
            found[left] = self._checked(self._tables[1].take(other[left]), words.at(left), values, every)
        return found

    def _places(self, hashes: Any) -> tuple[Any, Any]:
        """The place of each hash in both tables: the highest bits of products, which all bits of the hash decide."""
        unused = np.uint64(65 - self._tables.shape[1].bit_length())
        return (hashes * _ONE >> unused).view(np.int64), (hashes * _OTHER >> unused).view(np.int64)

    def _checked(self, slots: Any, words: _Words, values: pa.Array, every: pa.Array) -> Any:
        """The slots whose value is the one that is looked for; -1 in place of all others."""
        known, asked = self._heads.take(slots, axis=0, mode="clip"), words.heads
        same = (known[:, 0] == asked[:, 0]) & (known[:, 1] == asked[:, 1]) & (slots >= 0)
        long = np.flatnonzero(same & words.have_length(_LONG))
        if len(long):
            rows = long if words.rows is None else words.rows[long]
            equal = pc.equal(every.take(pa.array(slots[long])), values.take(pa.array(rows)))
            same[long] = equal.to_numpy(zero_copy_only=False)
        return np.where(same, slots, np.int32(-1))

    @staticmethod
    def _empty(size: int) -> npt.NDArray[np.int32]:
        return np.full((2, size), -1, np.int32)


def indexable(kind: pa.DataType) -> bool:
    """Whether the values of a type can be found by a ValueIndex."""
    return bool(pa.types.is_integer(kind)) or kind in (pa.string(), pa.binary())


def _words(values: pa.Array) -> _Words:
    words = _integers(values) if pa.types.is_integer(values.type) else _texts(values)
    if values.null_count:
        words.heads[values.is_null().to_numpy(zero_copy_only=False), 1] = np.uint64(_NULL) << _LENGTH_BITS
    return words


def _integers(values: pa.Array) -> _Words:
    numbers = values.fill_null(0).to_numpy().astype(np.int64).view(np.uint64)
    return _Words(_mixed(numbers * _ONE), np.stack([numbers, np.zeros_like(numbers)], axis=1))


def _texts(values: pa.Array) -> _Words:
    """Texts or bytes, eight bytes at a time; what a null has in their place does not matter."""
    limits, words = _content(values)
    at, lengths = limits[:-1], np.diff(limits)
    longest = int(lengths.max(initial=0))
    alike = longest == lengths.min(initial=longest)  # then the words lie at equal distances
    hashes = lengths.astype(np.uint64) * _ONE
    heads = np.zeros((len(values), 2), np.uint64)
    for number in range(-(-longest // _WORD)):
        done = _WORD * number
        found = words[done::longest][: len(at)] if alike else words[np.minimum(at + done, len(words) - 1)]
        word = found & _KEEPS.take((longest if alike else lengths) - done, mode="clip")
        hashes = _mixed((hashes ^ word) * _OTHER)
        if number < 2:
            heads[:, number] = word
    heads[:, 1] &= _KEEPS[_WORD - 1]
    heads[:, 1] |= np.minimum(lengths, _LONG).astype(np.uint64) << _LENGTH_BITS
    return _Words(hashes, heads)


def _content(values: pa.Array) -> tuple[Any, Any]:
    """Where each text begins and ends, and for each byte of the texts the word that begins there."""
    _, ends, content = values.buffers()
    limits = np.frombuffer(ends, np.int32, len(values) + 1, 4 * values.offset)
    first, last = int(limits[0]), int(limits[-1])
    data = np.zeros(last - first + 2 * _WORD, np.uint8)
    data[: last - first] = np.frombuffer(content, np.uint8)[first:last] if last > first else 0
    return limits - first, np.ndarray((len(data) - _WORD + 1,), np.dtype("<u8"), data.data, 0, (1,))


def _mixed(hashes: Any) -> Any:
    return hashes ^ (hashes >> np.uint64(32))
