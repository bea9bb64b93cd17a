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
    ReaderNotRegisteredWarning,
    RowtimeAheadError,
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
    StreamSetBackError,
    UnknownOptionError,
    WaitTimeoutError,
)

if TYPE_CHECKING:  # at run time __getattr__ imports them when they are used, so that a task of Spark starts sooner
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
    from spark_rowtime.drain.tables.why import whyTable
    from spark_rowtime.kafka.bounds import KafkaBounds
    from spark_rowtime.producer.departure import closeProducer, detachProducer
    from spark_rowtime.producer.rowsink import RowSink, openSink
    from spark_rowtime.producer.sink import StreamSink
    from spark_rowtime.reader.reader import RowReader, openReader
    from spark_rowtime.reader.rejected import rejectedRows
    from spark_rowtime.spark.output_bound import currentRowtimeBound
    from spark_rowtime.spark.punctuate import punctuate
    from spark_rowtime.spark.session import configure, jarPath
    from spark_rowtime.spark.table_writer import tableWriter
    from spark_rowtime.spark.with_bounds import withBounds
    from spark_rowtime.stream import createStream
    from spark_rowtime.stream_description import describeStream
    from spark_rowtime.stream_info import ProducerDescription, ReaderDescription, StreamInfo

__version__ = "0.1.0"
_MODULES = {
    "Adapter": "adapter.contract",
    "Cause": "diagnosis.causes",
    "ChainLink": "diagnosis.explanation",
    "Explanation": "diagnosis.explanation",
    "KafkaBounds": "kafka.bounds",
    "ListedStream": "admin.streams",
    "MultiAdapter": "adapter.contract",
    "ParquetSink": "drain.tables.parquet",
    "Period": "announce.period",
    "ProducerDescription": "stream_info",
    "ReaderDescription": "stream_info",
    "RowReader": "reader.reader",
    "RowSink": "producer.rowsink",
    "RowtimeBound": "bounds.bound",
    "Sinks": "adapter.sinks",
    "StreamInfo": "stream_info",
    "StreamSink": "producer.sink",
    "TableSink": "drain.sink",
    "Train": "bounds.train",
    "adoptLocation": "admin.streams",
    "alterStream": "admin.streams",
    "announceTo": "announce.announcer",
    "closeProducer": "producer.departure",
    "configure": "spark.session",
    "copyStream": "admin.streams",
    "createStream": "stream",
    "currentRowtimeBound": "spark.output_bound",
    "deleteStream": "admin.streams",
    "describeStream": "stream_description",
    "detachProducer": "producer.departure",
    "jarPath": "spark.session",
    "listStreams": "admin.streams",
    "openReader": "reader.reader",
    "openSink": "producer.rowsink",
    "openSinks": "adapter.sinks",
    "openTableSink": "drain.tables.open",
    "punctuate": "spark.punctuate",
    "readTableBound": "drain.tables.open",
    "whyTable": "drain.tables.why",
    "rejectedRows": "reader.rejected",
    "renameStream": "admin.streams",
    "runAdapter": "adapter.adapter",
    "tableWriter": "spark.table_writer",
    "wait": "diagnosis.wait",
    "why": "diagnosis.why",
    "withBounds": "spark.with_bounds",
}
"""Where each name is, apart from the errors; those of ``spark`` import PySpark."""

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
    "ReaderNotRegisteredWarning",
    "RowReader",
    "RowSink",
    "RowtimeAheadError",
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
    "StreamSetBackError",
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
    "whyTable",
    "withBounds",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        from importlib import import_module  # noqa: PLC0415  (only for these names)

        globals()[name] = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
        return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
