"""The functions that select values of a frame instead of combining them: first, last, rank, median."""

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_rowtime.operators.ranges import Array
from spark_rowtime.operators.sorted_rows import Ranges

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
