"""ValueIndex: the law of its docstring, and that it is more than a hint for nearly all values."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_rowtime.bounds.value_index import ValueIndex, indexable

VALUES = {
    pa.string(): st.none() | st.text(max_size=20),
    pa.binary(): st.none() | st.binary(max_size=20),
    pa.int8(): st.none() | st.integers(-128, 127),
    pa.int64(): st.none() | st.integers(-(2**63), 2**63 - 1),
}


@given(st.data(), st.sampled_from(list(VALUES)))
def test_a_hint(data, kind):
    """a hint: a slot that is found is that of the value; also in slices, and as values are added."""
    draw = lambda unique: data.draw(st.lists(VALUES[kind], max_size=12, unique=unique))  # noqa: E731
    known, asked, index = draw(True), pa.array(draw(False), kind), ValueIndex()
    for count in (len(known) // 2, len(known)):
        every = pa.array([None, *known], kind).slice(1, count)
        index.add(every)
        cut = asked.slice(len(asked) // 3)
        for values in (asked, cut):
            found = index.find(values, every)
            assert len(found) == len(values)
            assert all(slot < 0 or known[slot] == value for slot, value in zip(found, values.to_pylist(), strict=True))
            alone = [slot for slot, value in zip(found, values.to_pylist(), strict=True) if value not in known[:count]]
            assert all(slot < 0 for slot in alone)


NAMES = [
    pa.array([f"device-{number:06}" for number in range(20_000)]),
    pa.array([str(number) for number in range(20_000)]),
    pa.array([f"device-{number}" for number in range(20_000)]),
    pa.array([f"{number % 7}{'x' * 30}{number:05}{'y' * 9}" for number in range(20_000)]),
    pa.array([number.to_bytes(8, "big") for number in range(20_000)]),
    pa.array(np.arange(20_000) * 4096),
    pa.array(np.arange(20_000), pa.uint32()),
]


@pytest.mark.parametrize("every", NAMES, ids=lambda every: str(every[-1]))
def test_nearly_all_are_found(every):
    assert indexable(every.type)
    index = ValueIndex()
    for count in range(0, len(every) + 1, 2500):
        index.add(every.slice(0, count))
    order = np.random.default_rng(1).permutation(len(every))  # a value has other neighbours then
    found = index.find(every.take(pa.array(order)), every)
    assert (found < 0).mean() < 0.01
    assert (found[found >= 0] == order[found >= 0]).all()
