"""Sets the watermark that the function of applyInPandasWithState sees in a call for rows."""

from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

from pyspark.serializers import CPickleSerializer
from pyspark.sql.streaming.state import GroupState

from spark_rowtime.errors import ShimMismatchError

StateFunction = Callable[[Any, Any, GroupState], Iterator[Any]]

_WATERMARK = "_event_time_watermark_ms"
"""The attribute of PySpark's GroupState that ``getCurrentWatermarkMs`` returns and ``setTimeoutTimestamp`` checks."""


def load_with_watermark(command: bytes, watermark_ms: str) -> tuple[StateFunction, Any]:
    """Unpickles a pair of function and result type, and returns it with the function wrapped.

    The pickle that the extension puts in place of ``command`` calls this function. ``watermark_ms`` is the watermark
    of the previous batch, below which no row of this batch lies. If the function is large, ``command`` contains a
    broadcast of the pair.
    """
    pickled: Any = CPickleSerializer()
    found = pickled.loads(command)
    function, result_type = found if isinstance(found, tuple) else pickled.loads(found.value)
    return with_watermark(function, int(watermark_ms)), result_type


def with_watermark(function: StateFunction, watermark_ms: int) -> StateFunction:
    """Wraps the function: calls for rows see ``watermark_ms``, calls for timeouts the watermark of the batch."""

    @wraps(function)
    def called(key: Any, values: Any, state: GroupState) -> Iterator[Any]:
        if not hasattr(state, _WATERMARK):
            raise ShimMismatchError(
                f"PySpark's GroupState has no {_WATERMARK}: this version of PySpark is not supported. Install one "
                "of Spark 4.0 to 4.3."
            )
        if not state.hasTimedOut:
            setattr(state, _WATERMARK, min(watermark_ms, getattr(state, _WATERMARK)))
        return function(key, values, state)

    return called
