"""Tests for pipelines, adapters and consumers of one's own.

``RowtimeTestStream`` drives a streaming query step by step. ``AdapterSuite`` and ``ConsumerSuite`` are classes of
pytest tests to inherit from. The fixtures ``rowtime_spark`` and ``rowtime_test`` come with the package: pytest finds
them by its entry point. Nothing here sleeps, and the wall clock of the streams is the test's.
"""

from spark_rowtime.testing.adapter_suite import AdapterSuite
from spark_rowtime.testing.consumer_suite import ConsumerSuite
from spark_rowtime.testing.stream import RowtimeTestStream

__all__ = ["AdapterSuite", "ConsumerSuite", "RowtimeTestStream"]
