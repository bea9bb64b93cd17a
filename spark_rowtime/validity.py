"""Whether Arrow data that somebody hands over is what its types say."""

import numpy as np
import pyarrow as pa

LARGE = 4096
"""Rows from which on a look at the bytes as a whole is cheaper than Arrow's, text by text."""


def is_valid(batch: pa.RecordBatch) -> bool:
    """The same as ``batch.validate(full=True)``, which asks each text of its own whether it is UTF-8."""
    try:
        if batch.num_rows < LARGE:
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
    """Whether it is a column of texts, one behind the other, all of whose bytes are ASCII: so it is valid.

    ``validate`` has looked at the ends, and that the buffers are long enough for them. A column with nulls is
    left to Arrow, which counts them.
    """
    if column.type != pa.string() or (buffers := column.buffers())[0] is not None or buffers[2] is None:
        return False
    starts = np.frombuffer(buffers[1], np.int32)[column.offset : column.offset + len(column) + 1]
    if np.count_nonzero(starts[1:] < starts[:-1]):
        return False
    texts = np.frombuffer(buffers[2], np.uint8)[starts[0] : starts[-1]]
    return not len(texts) or int(texts.max()) < 128
