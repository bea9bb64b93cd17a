"""The floors of a key column's values as they are stored: a whole state, and parts that change it, in few bytes."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spark_rowtime.errors import StoreCorruptError

UNKNOWN = int(np.iinfo(np.int64).max)
"""The floor of a value that is not known: it does not count. It is above every time."""
Floors = npt.NDArray[np.int64]


class KeyChanges(NamedTuple):
    """What a commit stores of the floors: the values that have changed, or all values if it is ``whole``.

    ``content`` is a part, as ``KeyParts.pack`` returns it.
    """

    whole: bool
    content: bytes


class KeyParts:
    """Writes and reads parts. A part has values that were not stored before, and floors by the numbers of values.

    The values of the parts, in their order, have the numbers from 0 on. So a value is stored once, and each later floor
    of it costs a few bytes: numbers ascend and are stored as differences, floors as differences from the least one,
    each in as few bytes as the largest of the part needs.
    """

    def __init__(self, kind: pa.DataType) -> None:
        self._schema = pa.schema(
            [
                pa.field("values", pa.list_(kind)),
                pa.field("count", pa.int32()),
                pa.field("numbers", pa.binary()),
                pa.field("least", pa.int64()),
                pa.field("floors", pa.binary()),
            ]
        )

    def pack(self, values: pa.Array, numbers: Floors, floors: Floors) -> bytes:
        """Returns a part: the values that are new, and the floors of the values with these numbers, which ascend."""
        least = int(floors.min(initial=UNKNOWN))
        above = floors - (least - 1)
        if floors.max(initial=0) == UNKNOWN:
            above[floors == UNKNOWN] = 0
        columns = [
            pa.ListArray.from_arrays(pa.array([0, len(values)], pa.int32()), values),
            pa.array([len(numbers)], pa.int32()),
            pa.array([_narrow(np.diff(numbers, prepend=0))], pa.binary()),
            pa.array([least], pa.int64()),
            pa.array([_narrow(above)], pa.binary()),
        ]
        content: bytes = pa.RecordBatch.from_arrays(columns, schema=self._schema).serialize().to_pybytes()
        return content

    def unpack(self, parts: Sequence[bytes]) -> tuple[pa.Array, Floors]:
        """Returns the values of all parts, by their numbers, and the floor of each after the last part."""
        batches = [self._read(part) for part in parts]
        values = pa.concat_arrays([batch.column(0).values for batch in batches])
        floors: Floors = np.full(len(values), UNKNOWN, np.int64)
        for batch in batches:
            _, count, numbers, least, above = (column[0].as_py() for column in batch.columns)
            found = _wide(above, count)
            floors[np.cumsum(_wide(numbers, count))] = np.where(found == 0, UNKNOWN, found + (least - 1))
        return values, floors

    def _read(self, part: bytes) -> pa.RecordBatch:
        try:
            return pa.ipc.read_record_batch(pa.py_buffer(part), self._schema)
        except pa.ArrowException as error:
            raise StoreCorruptError(
                f"The stored bounds of a producer's values (inOrderPer) are damaged: {error}. Restore the stream from "
                "a copy; `rowtime check` says what is still readable."
            ) from error


def _narrow(numbers: Floors) -> bytes:
    """Numbers from 0 on, little-endian, each in 1, 2, 4 or 8 bytes."""
    return numbers.astype(np.min_scalar_type(int(numbers.max(initial=0))).newbyteorder("<")).tobytes()


def _wide(content: bytes, count: int) -> Floors:
    return np.frombuffer(content, f"<u{len(content) // count if count else 1}").astype(np.int64)
