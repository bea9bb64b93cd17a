"""Which rows of a train lie between two positions."""

import pyarrow as pa
import pytest

from spark_rowtime.store.difference import rows_between
from spark_rowtime.store.position import Position

START = Position(0, 0, None)


def train(*times: int) -> pa.RecordBatch:
    return pa.record_batch({"rowtime": pa.array(times, pa.timestamp("us", "UTC")), "n": pa.array(range(len(times)))})


def numbers(rows: pa.RecordBatch) -> list[int]:
    return rows.column("n").to_pylist()


@pytest.mark.parametrize("times", [(10, 20, 20, 30), (20, 10, 30, 20), ()])
@pytest.mark.parametrize("low", [None, 5, 10, 20, 30, 40])
@pytest.mark.parametrize("high", [None, 5, 10, 20, 30, 40])
def test_the_rows_from_the_one_cut_to_the_other_in_their_order(
    times: tuple[int, ...], low: int | None, high: int | None
) -> None:
    after = START if low is None else Position(1, low, None)  # a train beyond ``after`` is read from its first row
    found = rows_between(train(*times), 1, after, Position(1, high, None))
    wanted = [n for n, t in enumerate(times) if (low is None or t >= low) and (high is None or t < high)]
    assert numbers(found) == wanted


def test_rows_in_order_are_not_copied() -> None:
    rows = train(10, 20, 30, 40)
    found = rows_between(rows, 1, Position(1, 20, None), Position(1, 40, None))
    assert numbers(found) == [1, 2]
    assert found.column("n").buffers()[1].address == rows.column("n").buffers()[1].address
