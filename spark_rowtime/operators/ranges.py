"""Aggregates over many overlapping ranges of one array: combined (ranges), or selected (first, last, rank, median)."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from spark_rowtime.operators.sorted_rows import Index, Ranges

Array = npt.NDArray[Any]
Combine = Callable[[Array, Array], Array]

_HALF_BITS = 32
_LOWER_BITS = 2**_HALF_BITS - 1


def differences(values: Array, low: Index, high: Index) -> Array:
    """Returns the sums of ``values[low:high]``. They are exact only for integers: prefix sums of floats lose digits."""
    prefix = np.concatenate([np.zeros(1, values.dtype), np.cumsum(values, dtype=values.dtype)])
    found: Array = prefix[high] - prefix[low]
    return found


def whole_sums(values: Array, low: Index, high: Index) -> tuple[Array, Array]:
    """Returns the exact sums of ``values[low:high]`` as the numbers (upper, lower), which mean upper * 2**32 + lower.

    The values are of 64 bits, and ``lower`` is from 0 to 2**32 - 1. So a sum fits into 64 bits exactly when
    ``upper`` fits into 32. No step overflows for up to 2**31 values.
    """
    lower = differences(values & _LOWER_BITS, low, high)
    upper = differences(values >> _HALF_BITS, low, high) + (lower >> _HALF_BITS)
    return upper, lower & _LOWER_BITS


def combined(values: Array, low: Index, high: Index, combine: Combine, neutral: float) -> Array:
    """Returns ``combine`` over each ``values[low:high]``; ``neutral`` for an empty range.

    A range is composed of aligned blocks of 1, 2, 4, ... values, with at most two blocks of each size.
    Nothing is ever subtracted, so no digits are lost, and an infinity affects only ranges that contain it.
    """
    result = np.full(len(low), neutral, values.dtype)
    low, high, level = low.copy(), high.copy(), values
    with np.errstate(all="ignore"):  # infinity - infinity is NaN, as in SQL
        while len(level) and (low < high).any():
            _add(result, level, low, (low & 1 == 1) & (low < high), combine)
            low += low & 1
            _add(result, level, high - 1, (high & 1 == 1) & (low < high), combine)
            high -= high & 1
            low, high, level = low >> 1, high >> 1, _halved(level, combine)
    return result


def _add(result: Array, level: Array, at: Index, where: npt.NDArray[np.bool_], combine: Combine) -> None:
    result[where] = combine(result[where], level[at[where]])


def _halved(level: Array, combine: Combine) -> Array:
    """Combines each pair of values. Drops an odd last value, which no range uses at the next level."""
    even = len(level) - len(level) % 2
    return combine(level[0:even:2], level[1:even:2])


_NO_CODE = np.iinfo(np.int64).max
"""The code of a null, which is smaller than the code of no value."""


def first(values: pa.ChunkedArray, ranges: Ranges) -> pa.Array:
    """Returns the value of the frame's first row, which may be null."""
    return values.take(pa.array(ranges.low)).combine_chunks()


def last(values: pa.ChunkedArray, ranges: Ranges) -> pa.Array:
    """Returns the value of the frame's last row, which may be null."""
    return values.take(pa.array(ranges.high - 1)).combine_chunks()


def rank(values: pa.ChunkedArray, ranges: Ranges) -> pa.Array:
    """Returns 1 + the number of values in the frame that are smaller than the row's own; null if that is null."""
    present = _present(values)
    codes = np.full(len(values), _NO_CODE)
    codes[present] = np.unique(values.drop_null().to_numpy(), return_inverse=True)[1]
    own = codes[ranges.own]
    found = [1 + np.count_nonzero(part < one) for part, one in zip(_parts(codes, ranges), own, strict=True)]
    return pa.array(found, pa.int64(), mask=own == _NO_CODE)


def median(values: pa.ChunkedArray, ranges: Ranges) -> pa.Array:
    """Returns the middle one of the frame's values, or the mean of the two in the middle; null without values."""
    numbers, present = pc.fill_null(pc.cast(values, pa.float64(), safe=False), 0).to_numpy(), _present(values)
    parts = zip(_parts(numbers, ranges), _parts(present, ranges), strict=True)
    found = [_middle(np.sort(part[there])) for part, there in parts]
    return pa.array(found, pa.float64())


HOLISTIC: dict[str, Callable[[pa.ChunkedArray, Ranges], pa.Array]] = {
    "first": first,
    "last": last,
    "rank": rank,
    "median": median,
}


def _parts(values: Array, ranges: Ranges) -> list[Array]:
    return [values[low:high] for low, high in zip(ranges.low.tolist(), ranges.high.tolist(), strict=True)]


def _present(values: pa.ChunkedArray) -> Array:
    found: Array = np.asarray(pc.is_valid(values))
    return found


def _middle(values: Array) -> float | None:
    """Returns the median of sorted values, NaN last; None if there are none."""
    half = len(values) // 2
    if not len(values):
        return None
    return float(values[half] if len(values) % 2 else values[half - 1] / 2 + values[half] / 2)
