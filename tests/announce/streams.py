"""Streams for these tests: one producer, rows and bounds at given times."""

import uuid
from pathlib import Path

import spark_rowtime as rt

SCHEMA = "rowtime TIMESTAMP NOT NULL, n INT"


def stream_with(*times: str, bound: str | None = None, complete: bool = False, at: Path | None = None) -> str:
    """A stream with rows at ``times``, and then a bound; in memory, or in the folder ``at``."""
    path = str(at / "orders.rowtime") if at else f"memory://{uuid.uuid4()}"
    rt.createStream(path, SCHEMA, maxAhead=None)
    more(path, *times, bound=bound, complete=complete)
    return path


def more(path: str, *times: str, bound: str | None = None, strict: bool = False, complete: bool = False) -> None:
    """More rows, and a bound behind them. The producer leaves, and comes again with the next call."""
    sink = rt.openSink(path, producer="shop", lateness="1000 days")
    sink.sendRows([(time, 1) for time in times])
    if bound is not None:
        sink.sendRowtimeBound(bound, strict=strict)
    sink.flush()
    if complete:
        sink.close(complete=True)
    else:
        sink.abandon()


def keys(path: str, every: str = "1 hour", **options: object) -> list[str]:
    """The keys of the periods that one run announces to a function."""
    found: list[rt.Period] = []
    rt.announceTo(path, found.append, every=every, **options)  # type: ignore[arg-type]
    return [period.key for period in found]
