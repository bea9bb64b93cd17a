"""The least and the largest rowtime that the commits of a table have brought."""

import pyarrow as pa

from spark_rowtime.drain.properties import FIRST, LAST, extent_properties, require_times
from spark_rowtime.types.timestamps import LARGEST, LEAST, show_micros

TIME = 1_767_621_600_000_000


def rows(*times: int) -> pa.Table:
    return pa.table({"rowtime": pa.array(times, pa.int64()).cast(pa.timestamp("us", "UTC"))})


def test_a_value_that_no_stream_can_have_is_left_out() -> None:
    """Readers refuse it in a commit, and nobody could mend that."""
    found = extent_properties(rows(LEAST - 1, TIME, LARGEST + 1), {})
    assert found == {FIRST: show_micros(TIME), LAST: show_micros(TIME)}
    require_times(found, "delta:orders", "version 1")
    assert extent_properties(rows(LEAST - 1, LARGEST + 1), found) == found
    assert extent_properties(rows(LEAST - 1), {}) == {}
    assert extent_properties(rows(TIME + 1), found)[LAST] == show_micros(TIME + 1)
