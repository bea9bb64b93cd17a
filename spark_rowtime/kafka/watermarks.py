"""Messages of a change feed that are no rows but promises: CockroachDB's ``resolved``, TiCDC's watermarks."""

from collections.abc import Callable, Mapping
from typing import Any

from spark_rowtime.bounds.bound import RowtimeBound
from spark_rowtime.kafka.message_headers import headers_of
from spark_rowtime.kafka.times import time_reader
from spark_rowtime.types.timestamps import LARGEST, show_micros

Watermark = Callable[[Mapping[str, Any]], RowtimeBound | None]
"""Returns the bound that a decoded message is; None if it is a row."""


def resolved(record: Mapping[str, Any]) -> RowtimeBound | None:
    """CockroachDB's ``{"resolved": "1700000000000000000.0000000000"}``, which it sends to every partition.

    Rows that follow have a later time. Cut to microseconds it may be the same, so the bound is not strict.
    """
    return RowtimeBound(_HLC(record["resolved"])) if "resolved" in record and len(record) == 1 else None


def ticdc(record: Mapping[str, Any]) -> RowtimeBound | None:
    """TiCDC's watermark in the protocols canal-json (with enable-tidb-extension=true) and simple."""
    if record.get("type") == "TIDB_WATERMARK":
        extension = record.get("_tidb")
        return RowtimeBound(_TSO(extension.get("watermarkTs") if isinstance(extension, dict) else None))
    return RowtimeBound(_TSO(record.get("commitTs"))) if record.get("type") == "WATERMARK" else None


def bound_of(watermark: Watermark, record: Mapping[str, Any], message: Any) -> RowtimeBound | None:
    """The bound that a message with this record is, None if it is a row; the end of time if a drain's headers say that.

    A ``resolved`` cannot say it: its largest time stands for all later ones, too.
    """
    bound = watermark(record)
    is_end = bound is not None and bound.floor == _LARGEST and (_BOUND, _END) in headers_of(message)
    return RowtimeBound.END if is_end else bound


_LARGEST = ((1 << 63) - 1) // 1000
_BOUND, _END = "rowtime.bound", show_micros(LARGEST).encode()
_HLC, _TSO = time_reader("hlc"), time_reader("tso")
FORMATS: Mapping[str, Watermark] = {"resolved": resolved, "ticdc": ticdc}
