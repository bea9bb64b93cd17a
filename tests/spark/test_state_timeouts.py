"""applyInPandasWithState with event-time timeouts, where the bound lies beyond the rows of its batch."""

from collections.abc import Iterator
from typing import Any

import pandas as pd
import pytest

from spark_rowtime.spark.state_calls import with_watermark
from tests.spark.observed_query import Observed
from tests.streams import Pipe, opened, send

GAP_MS = 600_000
SESSIONS = "k STRING, n BIGINT, shown BIGINT"


def ended_by_timeout(key: Any, frames: Iterator[pd.DataFrame], state: Any) -> Iterator[pd.DataFrame]:
    """The number of a key's rows, ten minutes after its last; and by how much the watermark was ahead of the rows."""
    if state.hasTimedOut:
        n, ahead = state.get
        state.remove()
        yield pd.DataFrame({"k": [key[0]], "n": [n], "shown": [ahead]})
        return
    times = pd.concat([frame["rowtime"] for frame in frames])
    first, last = (int(time.timestamp() * 1000) for time in (times.min(), times.max()))
    n, ahead = state.get if state.exists else (0, 0)
    state.update((n + len(times), max(ahead, state.getCurrentWatermarkMs() - first)))
    state.setTimeoutTimestamp(last + GAP_MS)


def sessions(pipe: Pipe) -> Any:
    grouped = pipe.read("orders").groupBy("k")
    return grouped.applyInPandasWithState(
        ended_by_timeout, SESSIONS, "n BIGINT, ahead BIGINT", "append", "EventTimeTimeout"
    )


@pytest.mark.long
@pytest.mark.smoke
def test_a_timeout_that_the_batch_itself_passes(pipe: Pipe, tmp_path) -> None:
    orders = opened(pipe.create("orders", "k STRING"), "p")
    query = Observed(sessions(pipe), tmp_path)
    with query:
        send(orders, ("10:00", "a"), ("10:05", "a"), ("10:30", "b"), promise="10:35")
        assert query.step() == [("a", 2, 0)], "Spark alone raises INVALID_TIMEOUT_TIMESTAMP, here and at each restart"
        send(orders, ("10:36", "b"), ("10:50", "a"), promise="10:52")
        assert query.step() == [("b", 2, 0)]
        assert query.query.lastProgress.stateOperators[0].numRowsTotal == 1
    again = query.lose_commit()
    with query:
        send(orders, promise="11:00")
        assert query.step() == [("b", 2, 0)]
        assert query.batches[again] == [("b", 2, 0)], "run again it gives the same"
        send(orders, promise="11:00:00.002")
        assert query.step() == [("a", 1, 0)]


@pytest.mark.long
def test_a_function_too_large_for_its_command(pipe: Pipe, tmp_path) -> None:
    """Spark then sends it as a broadcast."""
    ballast = bytes(range(256)) * 8192

    def heavy(key: Any, frames: Iterator[pd.DataFrame], state: Any) -> Iterator[pd.DataFrame]:
        assert len(ballast) > 1 << 20
        yield from ended_by_timeout(key, frames, state)

    orders = opened(pipe.create("orders", "k STRING"), "p")
    frame = (
        pipe.read("orders")
        .groupBy("k")
        .applyInPandasWithState(heavy, SESSIONS, "n BIGINT, ahead BIGINT", "append", "EventTimeTimeout")
    )
    with Observed(frame, tmp_path) as query:
        send(orders, ("10:00", "a"), promise="10:35")
        assert query.step() == [("a", 1, 0)]


@pytest.mark.long
def test_a_group_state_of_another_pyspark_is_refused() -> None:
    with pytest.raises(Exception, match="_event_time_watermark_ms"):
        with_watermark(lambda *_: iter(()), 1)("a", (), object())
