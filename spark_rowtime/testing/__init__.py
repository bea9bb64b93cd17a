"""Tests for pipelines, adapters and consumers of one's own.

``RowtimeTestStream`` drives a streaming query step by step. ``AdapterSuite`` and ``ConsumerSuite`` are classes of
pytest tests to inherit from. The fixtures ``rowtime_spark`` and ``rowtime_test`` come with the package: pytest finds
them by its entry point. Nothing here sleeps, and the wall clock of the streams is the test's.
"""

from typing import TYPE_CHECKING, Any

from spark_rowtime.testing.adapter_suite import AdapterSuite
from spark_rowtime.testing.consumer_suite import ConsumerSuite

if TYPE_CHECKING:
    from spark_rowtime.testing.stream import RowtimeTestStream

__all__ = ["AdapterSuite", "ConsumerSuite", "RowtimeTestStream"]


def __getattr__(name: str) -> Any:
    """Imports PySpark only for the name that needs it."""
    if name == "RowtimeTestStream":
        import spark_rowtime.spark  # noqa: F401, PLC0415  (first: it says which PySpark is needed)
        from spark_rowtime.testing.stream import RowtimeTestStream  # noqa: PLC0415

        return RowtimeTestStream
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
