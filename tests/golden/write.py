"""Writes the golden stream of this version: python -m tests.golden.write. Committed once per release, never changed.

``tests/golden/stream-<version>/stream`` is a stream through the public API alone; ``expected.json`` beside it is all
that anybody could see of it then. Every later version must see the same, and go on writing.
"""

import datetime as dt
import json
import shutil
from collections.abc import Callable
from contextlib import closing, suppress
from decimal import Decimal
from importlib.metadata import version
from pathlib import Path
from typing import Any

import spark_rowtime as rt
from spark_rowtime.store import open_store
from tests.streams import at, opened

HERE = Path(__file__).parent
COLUMNS: dict[str, list[Any]] = {
    "flag BOOLEAN": [True, False],
    "tiny TINYINT": [-128, 127],
    "small SMALLINT": [-(1 << 15), (1 << 15) - 1],
    "whole INT": [-(1 << 31), (1 << 31) - 1],
    "big BIGINT": [-(1 << 63), (1 << 63) - 1],
    "real FLOAT": [float("nan"), -0.0],
    "wide DOUBLE": [float("inf"), 5e-324],
    "`it's a ``text``` STRING": ["größe-漢字-🚂", ""],
    "bytes BINARY": [b"\x00\xff", b""],
    "day DATE": [dt.date(1, 1, 1), dt.date(9999, 12, 31)],
    "moment TIMESTAMP": [dt.datetime(1, 1, 1, tzinfo=dt.UTC), dt.datetime(1969, 12, 31, 23, 59, 59, 1, tzinfo=dt.UTC)],
    "local TIMESTAMP_NTZ": [dt.datetime(9999, 12, 31, 23, 59, 59, 999999), dt.datetime(2025, 3, 30, 2, 30)],
    "price DECIMAL(38,2)": [Decimal("9" * 36 + ".99"), Decimal("-0.01")],
    "tags ARRAY<STRING>": [["a", None], []],
    "counts MAP<STRING, INT>": [[("a", 1), ("b", None)], []],
    "point STRUCT<x: INT, inner: STRUCT<y: ARRAY<DOUBLE> NOT NULL>>": [
        {"x": 1, "inner": {"y": [0.5, None]}}, {"x": None, "inner": None}],
}  # fmt: skip
SCHEMA = ", ".join(["rowtime TIMESTAMP NOT NULL", "who STRING NOT NULL", *COLUMNS])
DECLARED: dict[str, dict[str, Any]] = {
    "in order": {},
    "late": {"lateness": "10 minutes"},
    "any order": {"rowsImplyBounds": False},
    "k-sorted": {"kSort": 1},
}


ADDED_LATER = ["boundOf", "boundBy", "boundEvent", "rejectedAt"]
"""The columns of view=rejected that version 0.1.0 did not have."""


class GoneError(Exception):
    """The producer's process ends without closing."""


def row(clock: str, who: str, which: int | None = None) -> tuple[Any, ...]:
    """A row of one producer, with the values of that number; None: with nulls."""
    return (at(clock), who, *(None if which is None else values[which] for values in COLUMNS.values()))


def producer(path: str, who: str) -> Any:
    """A sink that only goes by being told, and that no lease ends."""
    return opened(path, who, onLate="reject", lease=None, **DECLARED[who])


def write(path: str) -> str:
    """The stream; gives the position of a reader half way."""
    rt.createStream(path, SCHEMA, maxLag="1 day", maxAhead="1 day")
    with producer(path, "in order") as sink:
        sink.sendRows([row("10:00", "in order", 0), row("10:05", "in order", 1), row("10:05", "in order")])
        sink.sendRowtimeBound(at("10:10"), strict=True)
        sink.flush()
        with suppress(GoneError), producer(path, "any order") as other:
            other.sendRows([row("11:30", "any order", 0), row("11:00", "any order", 1)])
            other.sendRowtimeBound(at("10:50"))
            raise GoneError
        sink.sendRow(row("11:00", "in order", 1))
        sink.sendRow(row("10:10", "in order"))
    with suppress(GoneError), producer(path, "late") as sink:
        sink.sendRows([row("11:20", "late", 0), row("11:05", "late", 1)])
        sink.sendRow(row("10:55", "late"))
        sink.sendRow(row("11:40", "late"))
        sink.flush(checkpoint="offset 7")
        sink.sendRow(row("11:50", "late"))
        raise GoneError
    with rt.openReader(path, name="auditor", order="arrival") as reader:
        reader.read()
        reader.read()
        position = reader.position
    with suppress(GoneError), producer(path, "k-sorted") as sink:
        sink.sendRows([row("11:10", "k-sorted", 0), row("11:15", "k-sorted", 1), row("11:12", "k-sorted")])
        raise GoneError
    return position


def look(path: str, position: str) -> dict[str, Any]:
    """All that anybody sees of the stream, as JSON."""
    info = rt.describeStream(path)
    with closing(open_store(path)) as store:
        views = {"bounds": store.bounds(), "rejected": store.rejected().drop_columns(ADDED_LATER)}
        readers = [[reader.name, *reader.position[:3]] for reader in store.snapshot().readers]
    return {
        "schema": str(info.schema),
        "bound": str(info.bound),
        "numbers": [info.rows, info.rejected, info.seq, info.holder],
        "producers": [
            [p.name, p.status.value, str(p.bound), p.accepted, p.rejected, p.epoch, p.checkpoint]
            for p in info.producers
        ],
        "arrival": trains(path, "arrival"),
        "rowtime": trains(path, "rowtime"),
        "rest": trains(path, "arrival", start=position),
        "readers": readers,
        **{name: [plain(row) for row in table.to_pylist()] for name, table in views.items()},
    }


def trains(path: str, order: str, **start: str) -> list[Any]:
    """Each train: its rows, and the bound after it."""
    with rt.openReader(path, order=order, **start) as reader:
        return [[[plain(row) for row in train.rows.to_pylist()], str(train.bound)] for train in reader]


def plain(value: Any) -> Any:
    """A value as JSON, each other value another one, whatever libraries print it."""
    match value:
        case dict():
            return {name: plain(part) for name, part in value.items()}
        case list() | tuple():
            return [plain(part) for part in value]
        case dt.date():
            return value.isoformat()
        case bytes():
            return value.hex()
        case float() | Decimal():
            return str(value)
    return value


def keep(folder: Path, write: Callable[[str], str]) -> dict[str, Any]:
    """Writes a stream into the folder, and all that can be seen of it into ``expected.json``; returns that."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    path = str(folder / "stream")
    position = write(path)
    expected = {"position": position, **look(path, position)}
    (folder / "expected.json").write_text(json.dumps(expected, indent=1, ensure_ascii=False) + "\n")
    return expected


def main() -> None:
    folder = HERE / f"stream-{version('spark-rowtime')}"
    expected = keep(folder, write)
    print(f"{folder}: {expected['numbers'][0]} rows")


if __name__ == "__main__":
    main()
