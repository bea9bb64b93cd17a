"""spark-rowtime: a Spark streaming source and sink whose watermark moves when the source says so.

The public names, nothing else. Importing this does not import PySpark.
"""

from typing import Any

from spark_rowtime.adapter.adapter import Adapter
from spark_rowtime.bounds.bound import RowtimeBound
from spark_rowtime.bounds.train import Train
from spark_rowtime.errors import (
    BoundRegressionError,
    DataLostError,
    DisorderedOutputError,
    ExtraNotInstalledError,
    InvalidOptionError,
    LateRowError,
    ProducerFencedError,
    RowtimeError,
    SchemaMismatchError,
    ShimMismatchError,
    ShimMissingError,
    SinkClosedError,
    SinkNotClosedWarning,
    StoreCorruptError,
    StoreUnavailableError,
    StreamExistsError,
    StreamNotFoundError,
    UnknownOptionError,
)
from spark_rowtime.producer.rowsink import RowSink, openSink
from spark_rowtime.reader.reader import RowReader, openReader
from spark_rowtime.stream import StreamInfo, createStream, describeStream

_FROM_SPARK = {"configure": "session", "jarPath": "session", "currentRowtimeBound": "output_bound"}

__all__ = [
    "Adapter",
    "BoundRegressionError",
    "DataLostError",
    "DisorderedOutputError",
    "ExtraNotInstalledError",
    "InvalidOptionError",
    "LateRowError",
    "ProducerFencedError",
    "RowReader",
    "RowSink",
    "RowtimeBound",
    "RowtimeError",
    "SchemaMismatchError",
    "ShimMismatchError",
    "ShimMissingError",
    "SinkClosedError",
    "SinkNotClosedWarning",
    "StoreCorruptError",
    "StoreUnavailableError",
    "StreamExistsError",
    "StreamInfo",
    "StreamNotFoundError",
    "Train",
    "UnknownOptionError",
    "configure",
    "createStream",
    "currentRowtimeBound",
    "describeStream",
    "jarPath",
    "openReader",
    "openSink",
]


def __getattr__(name: str) -> Any:
    if name in _FROM_SPARK:
        from importlib import import_module  # noqa: PLC0415  (PySpark only for those who ask)

        return getattr(import_module(f"spark_rowtime.spark.{_FROM_SPARK[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
