"""What the function of applyInPandasWithState is shown in a call for rows."""

from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

from pyspark.serializers import CPickleSerializer
from pyspark.sql.streaming.state import GroupState

from spark_rowtime.errors import ShimMismatchError

StateFunction = Callable[[Any, Any, GroupState], Iterator[Any]]

_WATERMARK = "_event_time_watermark_ms"
"""Where PySpark keeps what ``getCurrentWatermarkMs`` gives and ``setTimeoutTimestamp`` compares with."""


def showing(command: bytes, watermark_ms: str) -> tuple[StateFunction, Any]:
    """Of the pickled pair of function and result type, the pair with the function wrapped.

    Called by the pickle that the extension puts in place of ``command``. ``watermark_ms``: the one of the batch
    before, which no row of this batch lies below. Where the function was large, ``command`` is of a broadcast.
    """
    pickled: Any = CPickleSerializer()
    found = pickled.loads(command)
    function, result_type = found if isinstance(found, tuple) else pickled.loads(found.value)
    return showing_before(function, int(watermark_ms)), result_type


def showing_before(function: StateFunction, watermark_ms: int) -> StateFunction:
    """The function with ``watermark_ms`` in calls for rows; in calls for timeouts, with the batch's own."""

    @wraps(function)
    def called(key: Any, values: Any, state: GroupState) -> Iterator[Any]:
        if not hasattr(state, _WATERMARK):
            raise ShimMismatchError(f"PySpark's GroupState has no {_WATERMARK}: it is not of a version that was tried.")
        if not state.hasTimedOut:
            setattr(state, _WATERMARK, min(watermark_ms, getattr(state, _WATERMARK)))
        return function(key, values, state)

    return called
