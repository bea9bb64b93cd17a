"""is_valid says what Arrow's full validation says."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_rowtime.types.checks import BYTE_SCAN_ROWS, is_valid

ROWS = BYTE_SCAN_ROWS + 10
TEXTS = ["ab", "", "c"] * (ROWS // 3 + 1)
WHOLE = pa.array(TEXTS[:ROWS], pa.string())
_, ENDS, BYTES = WHOLE.buffers()


def by_arrow(batch: pa.RecordBatch) -> bool:
    try:
        batch.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def one(column: pa.Array) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([column], ["v"])


def text(ends: bytes, data: bytes, rows: int = ROWS, offset: int = 0) -> pa.RecordBatch:
    return one(pa.Array.from_buffers(pa.string(), rows, [None, pa.py_buffer(ends), pa.py_buffer(data)], offset=offset))


@given(st.integers(0, ROWS), st.integers(-2, 5), st.integers(0, 9))
def test_is_valid_where_an_end_is_moved(row: int, by: int, offset: int) -> None:
    ends = bytearray(ENDS)
    here = slice(4 * row, 4 * row + 4)
    ends[here] = (int.from_bytes(ends[here], "little", signed=True) + by).to_bytes(4, "little", signed=True)
    try:
        batch = text(bytes(ends), BYTES.to_pybytes(), ROWS - offset, offset)
    except pa.ArrowInvalid:
        return  # not even PyArrow makes that
    assert is_valid(batch) == by_arrow(batch)


@given(st.integers(0, BYTES.size - 1), st.binary(min_size=1, max_size=3))
def test_is_valid_where_bytes_are_others(at: int, put: bytes) -> None:
    data = bytearray(BYTES.to_pybytes())
    data[at : at + len(put)] = put
    batch = text(ENDS.to_pybytes(), bytes(data))
    assert is_valid(batch) == by_arrow(batch)


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["é", "漢"] * ROWS),
        pa.array([None, "a"] * ROWS),
        pa.array([None] * ROWS, pa.string()),
        pa.array([""] * ROWS),
        pa.array(range(ROWS)),
        pa.array([b"\xff"] * ROWS),
        WHOLE.slice(7),
        pa.Array.from_buffers(pa.string(), ROWS, [None, pa.py_buffer(ENDS.to_pybytes() + b"xx"), BYTES]),
        pa.array(["é", *TEXTS[:ROWS]]).slice(1),
    ],
    ids=str,
)
def test_what_is_well_made_is_valid(column: pa.Array) -> None:
    assert is_valid(one(column))


def test_a_number_of_nulls_that_is_wrong_is_not() -> None:
    bitmap, *rest = pa.array([None, "a"] * ROWS).buffers()
    batch = one(pa.Array.from_buffers(pa.string(), ROWS, [bitmap, *rest], null_count=1))
    assert not is_valid(batch)
    assert not by_arrow(batch)
