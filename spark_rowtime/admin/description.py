"""A stream as a value for JSON: what ``rowtime describe --json`` prints, and ``rowtime serve`` returns."""

import shlex
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from spark_rowtime.bounds.bound import RowtimeBound
from spark_rowtime.stream_info import ProducerDescription, StreamInfo
from spark_rowtime.types.timestamps import show_interval, show_micros

ABSENT_DAYS = 1
"""A reader that was not seen for at least this long, and has unread rows, causes a warning."""


def bound_json(bound: RowtimeBound | None) -> Any:
    """A bound for JSON: its time, at or after which every later row is; ``end``: no row follows."""
    return None if bound is None else {"time": bound.time, "strict": bound.strict, "end": bound.isEnd}


def show_bound(bound: RowtimeBound | None) -> str:
    """Returns the bound's floor as a time; "none" and "the end of time" for what is no time."""
    if bound is not None and bound.isEnd:
        return "the end of time"
    return show_micros(bound.floor if bound is not None else None)


def show_settings(info: StreamInfo) -> dict[str, str]:
    """The settings of a stream as texts."""
    return {name: _show_setting(value) for name, value in info.settings.items()}


def _show_setting(value: Any) -> str:
    if value is None:
        return "unlimited"
    if isinstance(value, tuple):
        return f"to all but {', '.join(value)}"
    return show_interval(value) if isinstance(value, timedelta) else str(value)


def described(info: StreamInfo) -> dict[str, Any]:
    """The JSON of ``rowtime describe``; docs/cli.md has its keys."""
    return {
        "stream": info.path,
        "columns": columns_json(info.schema),
        "bound": bound_json(info.bound),
        "holders": info.holders,
        "waitsFor": info.waitsFor,
        "rows": info.rows,
        "rejected": info.rejected,
        "rowsHeldBack": info.rowsHeldBack,
        "seq": info.seq,
        "removed": info.removed,
        "rejectedRemoved": info.rejectedRemoved,
        "forgotten": info.forgotten,
        "settings": dict(info.settings),
        "producers": [_producer_json(producer) for producer in info.producers],
        "readers": [
            {name: getattr(r, name) for name in ("name", "reads", "seq", "unread", "seen", "checkpointGone")}
            for r in info.readers
        ],
        "warnings": warnings(info),
    }


def columns_json(schema: pa.Schema) -> list[dict[str, Any]]:
    """The columns of a stream for JSON."""
    return [{"name": f.name, "type": str(f.type), "nullable": f.nullable} for f in schema]


def _producer_json(producer: ProducerDescription) -> dict[str, Any]:
    names = ("name", "status", "accepted", "rejected", "epoch", "checkpoint", "seen", "sent", "lease", "leaseLeft")
    weakest = [{"value": value, "bound": bound_json(bound)} for value, bound in producer.weakestKeys]
    return {
        **{name: getattr(producer, name) for name in names},
        "bound": bound_json(producer.bound),
        "keys": producer.keys,
        "cut": producer.cut,
        "weakestKeys": weakest,
        "query": producer.query,
        "lag": producer.lag,
    }


def warnings(info: StreamInfo) -> list[str]:
    """Returns what whoever looks after the stream should know."""
    return [*blocking(info), *info.openTransactions]


def blocking(info: StreamInfo) -> list[str]:
    """Returns a warning for each reader that prevents the removal of rows and may not come back."""
    found = []
    for reader in info.readers:
        days = (datetime.now(UTC) - reader.seen).days
        gone = ", and its checkpoint is gone" if reader.checkpointGone else ""
        if reader.unread and (gone or days >= ABSENT_DAYS):
            found.append(
                f"{reader.unread} rows are kept for reader {reader.name!r}: it was last seen {days} days ago"
                f"{gone}. If it will not come back, run rowtime gc {info.path} --forget {shlex.quote(reader.name)}"
            )
    return found
