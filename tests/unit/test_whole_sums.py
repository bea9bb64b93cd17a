"""Sums and averages of whole numbers over ranges, against Python's numbers, which have no limit."""

import random
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql.types import DoubleType, LongType

from spark_rowtime.operators.aggregates import Aggregate
from spark_rowtime.operators.sorted_rows import Ranges

LEAST, MOST = -(2**63), 2**63 - 1


def over(function: str, values: list[int | None], *ranges: tuple[int, int]) -> list[object]:
    low, high = (np.array(ends, np.int64) for ends in zip(*ranges, strict=True))
    result = LongType() if function == "sum" else DoubleType()
    rows = pa.table({"x": pa.array(values, pa.int64())})
    found: list[object] = Aggregate("a", function, "x", result).over(rows, Ranges(low, high, high - 1)).to_pylist()
    return found


def test_a_sum_at_the_edge_of_bigint_and_beyond() -> None:
    assert over("sum", [2**62 - 1, 2**62, LEAST, MOST, None], (0, 2), (0, 3), (2, 3), (2, 4), (3, 5), (4, 5)) == [
        MOST, -1, LEAST, -1, MOST, None
    ]  # fmt: skip
    assert over("sum", [MOST, MOST, LEAST, LEAST, 7], (0, 5)) == [5], "parts of it do not fit, the sum does"
    for values in ([MOST, 1], [LEAST, -1], [MOST, MOST, MOST], [LEAST, LEAST]):
        with pytest.raises(OverflowError, match="does not fit into BIGINT"):
            over("sum", values, (0, len(values)))


def test_an_average_of_numbers_whose_sum_does_not_fit() -> None:
    assert over("avg", [MOST, MOST, None, LEAST], (0, 2), (0, 3), (3, 4)) == [2.0**63, 2.0**63, -(2.0**63)]
    assert over("avg", [2**53 + 1, 2**53 + 1, 2], (0, 2), (2, 3)) == [2.0**53, 2.0]


@pytest.mark.parametrize("seed", range(20))
def test_random_numbers_of_all_sizes(seed: int) -> None:
    chosen = random.Random(seed)
    values = [chosen.randrange(-(2 ** chosen.randrange(1, 64)), 2 ** chosen.randrange(1, 64)) for _ in range(40)]
    ranges = [(low, chosen.randrange(low + 1, 41)) for low in range(40)]
    sums = {(low, high): sum(values[low:high]) for low, high in ranges}
    fitting = [ends for ends, total in sums.items() if LEAST <= total <= MOST]
    assert over("sum", values, *fitting) == [sums[ends] for ends in fitting]
    for (low, high), average in zip(ranges, over("avg", values, *ranges), strict=True):
        exact = Fraction(sums[low, high], high - low)
        assert average == pytest.approx(float(exact), rel=1e-15), (low, high)
