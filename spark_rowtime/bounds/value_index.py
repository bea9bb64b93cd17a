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
_HALF = np.uint64(32)
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
    some_long: bool = False
    """Whether some values may be longer than their heads."""

    def at(self, rows: Any) -> "_Words":
        """The values at ``rows``."""
        return _Words(self.hashes[rows], self.heads[rows], self.some_long)

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
        for table, factor in zip(self._tables, (_ONE, _OTHER), strict=True):
            places = self._places(words.hashes, factor)
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
        found = self._tables[0].take(self._places(words.hashes, _ONE))
        left = self._unlike(found, words, values, every)
        if len(left):
            words = words.at(left)
            again = self._tables[1].take(self._places(words.hashes, _OTHER))
            again[self._unlike(again, words, values, every, left)] = -1
            found[left] = again
        return found

    def _places(self, hashes: Any, factor: Any) -> Any:
        """The place of each hash in a table: the highest bits of a product, which all bits of the hash decide."""
        products = hashes * factor
        products >>= np.uint64(65 - self._tables.shape[1].bit_length())
        return products.view(np.int64)

    def _unlike(self, slots: Any, words: _Words, values: pa.Array, every: pa.Array, rows: Any = None) -> Any:
        """The positions of the slots whose value is not the one that is looked for. Where a slot is -1, it may be.

        ``rows``: the positions of the values looked for, if these are only some of ``values``.
        """
        known = self._heads.take(slots, axis=0, mode="clip")
        differ = (known != words.heads).view(np.uint16).ravel() != 0  # either word does
        if words.some_long:
            long = np.flatnonzero(~differ & words.have_length(_LONG) & (slots >= 0))
            asked = long if rows is None else rows[long]
            equal = pc.equal(every.take(pa.array(slots[long])), values.take(pa.array(asked)))
            differ[long] = ~equal.to_numpy(zero_copy_only=False)
        return np.flatnonzero(differ)

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
    if longest == lengths.min(initial=longest):  # then the words lie at equal distances, and one number is enough
        lengths, places = np.array([longest]), [words[start::longest][: len(at)] for start in range(0, longest, _WORD)]
    else:
        places = [words[np.minimum(at + start, len(words) - 1)] for start in range(0, longest, _WORD)]
    hashes = np.full(len(values), lengths.astype(np.uint64) * _ONE)
    heads = np.zeros((len(values), 2), np.uint64)
    for number, found in enumerate(places):
        word = found & _KEEPS.take(lengths - _WORD * number, mode="clip")
        if number < 2:
            heads[:, number] = word
        hashes ^= word
        hashes *= _OTHER
        hashes ^= hashes >> _HALF
    heads[:, 1] &= _KEEPS[_WORD - 1]
    heads[:, 1] |= np.minimum(lengths, _LONG).astype(np.uint64) << _LENGTH_BITS
    return _Words(hashes, heads, longest >= _LONG)


def _content(values: pa.Array) -> tuple[Any, Any]:
    """Where each text begins and ends, and for each byte of the texts the word that begins there."""
    _, ends, content = values.buffers()
    limits = np.frombuffer(ends, np.int32, len(values) + 1, 4 * values.offset)
    first, last = int(limits[0]), int(limits[-1])
    data = np.zeros(last - first + 2 * _WORD, np.uint8)
    data[: last - first] = np.frombuffer(content, np.uint8)[first:last] if last > first else 0
    return limits - first, np.ndarray((len(data) - _WORD + 1,), np.dtype("<u8"), data.data, 0, (1,))


def _mixed(hashes: Any) -> Any:
    return hashes ^ (hashes >> _HALF)
