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

from typing import TYPE_CHECKING, Any

from spark_rowtime.adapter.adapter import runAdapter
from spark_rowtime.adapter.contract import Adapter, MultiAdapter
from spark_rowtime.adapter.sinks import Sinks, openSinks
from spark_rowtime.admin.streams import (
    ListedStream,
    adoptLocation,
    alterStream,
    copyStream,
    deleteStream,
    listStreams,
    renameStream,
)
from spark_rowtime.announce.announcer import announceTo
from spark_rowtime.announce.period import Period
from spark_rowtime.bounds.bound import RowtimeBound
from spark_rowtime.bounds.train import Train
from spark_rowtime.diagnosis.causes import Cause
from spark_rowtime.diagnosis.explanation import ChainLink, Explanation
from spark_rowtime.diagnosis.wait import wait
from spark_rowtime.diagnosis.why import why
from spark_rowtime.drain.sink import TableSink
from spark_rowtime.drain.tables.open import openTableSink, readTableBound
from spark_rowtime.drain.tables.parquet import ParquetSink
from spark_rowtime.errors import (
    AnnouncementError,
    BoundRegressionError,
    CutRegressionError,
    DataLostError,
    DisorderedOutputError,
    ExtraNotInstalledError,
    InvalidOptionError,
    KafkaTopicError,
    KafkaUnavailableError,
    LateRowError,
    MessageDecodeError,
    MessageNotReadyError,
    NotSerializableError,
    ProcessForkedError,
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
    StreamCompleteError,
    StreamExistsError,
    StreamNotFoundError,
    UnknownOptionError,
    WaitTimeoutError,
)
from spark_rowtime.kafka.bounds import KafkaBounds
from spark_rowtime.producer.departure import closeProducer, detachProducer
from spark_rowtime.producer.rowsink import RowSink, openSink
from spark_rowtime.producer.sink import StreamSink
from spark_rowtime.reader.reader import RowReader, openReader
from spark_rowtime.reader.rejected import rejectedRows
from spark_rowtime.stream import ProducerDescription, ReaderDescription, StreamInfo, createStream, describeStream

if TYPE_CHECKING:  # at run time __getattr__ imports them, with PySpark, when they are used
    from spark_rowtime.spark.output_bound import currentRowtimeBound
    from spark_rowtime.spark.punctuate import punctuate
    from spark_rowtime.spark.session import configure, jarPath
    from spark_rowtime.spark.table_writer import tableWriter

__version__ = "0.1.0"
_FROM_SPARK = {
    "configure": "session",
    "jarPath": "session",
    "currentRowtimeBound": "output_bound",
    "punctuate": "punctuate",
    "tableWriter": "table_writer",
}

__all__ = [
    "Adapter",
    "AnnouncementError",
    "BoundRegressionError",
    "Cause",
    "ChainLink",
    "CutRegressionError",
    "DataLostError",
    "DisorderedOutputError",
    "Explanation",
    "ExtraNotInstalledError",
    "InvalidOptionError",
    "KafkaBounds",
    "KafkaTopicError",
    "KafkaUnavailableError",
    "LateRowError",
    "ListedStream",
    "MessageDecodeError",
    "MessageNotReadyError",
    "MultiAdapter",
    "NotSerializableError",
    "ParquetSink",
    "Period",
    "ProcessForkedError",
    "ProducerDescription",
    "ProducerFencedError",
    "ReaderDescription",
    "RowReader",
    "RowSink",
    "RowtimeBound",
    "RowtimeError",
    "SchemaMismatchError",
    "ShimMismatchError",
    "ShimMissingError",
    "SinkClosedError",
    "SinkNotClosedWarning",
    "Sinks",
    "StoreCorruptError",
    "StoreUnavailableError",
    "StreamBusyError",
    "StreamCompleteError",
    "StreamExistsError",
    "StreamInfo",
    "StreamNotFoundError",
    "StreamSink",
    "TableSink",
    "Train",
    "UnknownOptionError",
    "WaitTimeoutError",
    "__version__",
    "adoptLocation",
    "alterStream",
    "announceTo",
    "closeProducer",
    "configure",
    "copyStream",
    "createStream",
    "currentRowtimeBound",
    "deleteStream",
    "describeStream",
    "detachProducer",
    "jarPath",
    "listStreams",
    "openReader",
    "openSink",
    "openSinks",
    "openTableSink",
    "punctuate",
    "readTableBound",
    "rejectedRows",
    "renameStream",
    "runAdapter",
    "tableWriter",
    "wait",
    "why",
]


def __getattr__(name: str) -> Any:
    if name in _FROM_SPARK:
        from importlib import import_module  # noqa: PLC0415  (imports PySpark only when one of these names is used)

        return getattr(import_module(f"spark_rowtime.spark.{_FROM_SPARK[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_FROM_SPARK})
