"""spark-rowtime: a Spark source and sink whose watermark moves when the source promises that a time is complete.

This module holds the public names only. Importing it does not import PySpark.

Example:
    >>> import spark_rowtime as rt
    >>> rt.createStream("memory://docs-package", "rowtime TIMESTAMP NOT NULL, ticker STRING")
    >>> with rt.openSink("memory://docs-package", producer="nyse") as sink:
    ...     sink.sendRow(("2026-01-05T14:30:00Z", "IBM"))
    ...     sink.sendRowtimeBound("2026-01-05T15:00:00Z")
    >>> with rt.openReader("memory://docs-package") as reader:
    ...     [(train.rows.num_rows, train.bound) for train in reader]
    [(1, RowtimeBound('2026-01-05T15:00:00Z'))]
"""

from typing import Any

from spark_rowtime.adapter.adapter import Adapter
from spark_rowtime.admin.alter import alterStream
from spark_rowtime.admin.copy import copyStream
from spark_rowtime.admin.delete import deleteStream
from spark_rowtime.admin.listing import ListedStream, listStreams
from spark_rowtime.admin.rename import renameStream
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
    StreamBusyError,
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
    "ListedStream",
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
    "StreamBusyError",
    "StreamExistsError",
    "StreamInfo",
    "StreamNotFoundError",
    "Train",
    "UnknownOptionError",
    "alterStream",
    "configure",
    "copyStream",
    "createStream",
    "currentRowtimeBound",
    "deleteStream",
    "describeStream",
    "jarPath",
    "listStreams",
    "openReader",
    "openSink",
    "renameStream",
]


def __getattr__(name: str) -> Any:
    if name in _FROM_SPARK:
        from importlib import import_module  # noqa: PLC0415  (imports PySpark only when one of these names is used)

        return getattr(import_module(f"spark_rowtime.spark.{_FROM_SPARK[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
