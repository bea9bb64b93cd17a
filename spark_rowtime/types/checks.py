"""Checks that Arrow data from a caller, or from a stream that anybody may have written, conforms to its types."""

import numpy as np
import pyarrow as pa

BYTE_SCAN_ROWS = 4096
"""The number of rows from which one scan of all bytes is cheaper than Arrow's check of each text."""


def is_valid(batch: pa.RecordBatch) -> bool:
    """Whether ``batch.validate(full=True)`` succeeds; faster, because that checks each text separately for UTF-8."""
    try:
        if batch.num_rows < BYTE_SCAN_ROWS:
            batch.validate(full=True)
            return True
        batch.validate()
        for column in batch.columns:
            if not _is_ascii(column):
                column.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _is_ascii(column: pa.Array) -> bool:
    """Whether the column consists of contiguous texts whose bytes are all ASCII, and is therefore valid.

    ``validate`` has checked the outer offsets, and that the buffers are long enough for them. A column with nulls
    is left to Arrow, which counts them.
    """
    if column.type != pa.string():
        return False
    nulls, starts, texts = column.buffers()
    if nulls is not None or texts is None:
        return False
    ends = np.frombuffer(starts, np.int32, len(column) + 1, 4 * column.offset)
    if np.count_nonzero(ends[1:] < ends[:-1]):
        return False
    used = np.frombuffer(texts, np.uint8)[ends[0] : ends[-1]]
    return not len(used) or int(used.max()) < 128
