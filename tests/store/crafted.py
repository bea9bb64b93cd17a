"""What somebody writes who may write into the directory of a stream, and computes all checksums again."""

import sqlite3
import struct
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
from isal.isal_zlib import crc32

import spark_rowtime as rt
from spark_rowtime.store.local.seal import seal

MANY = 1237
"""So many rows are in a train whose number of rows is replaced: the number is nowhere else in it."""
GROWN = 1 << 26
FIRST = datetime(2026, 1, 5, 14, tzinfo=UTC)


def lie(path: str, change: Callable[[bytes], bytes], **columns: object) -> None:
    """Puts other bytes in place of those of the first train, with their checksum, and ``columns`` into its event."""
    with closing(sqlite3.connect(Path(path, "catalog.db"))) as db:
        cursor = db.execute("SELECT * FROM events WHERE width IS NOT NULL ORDER BY seq LIMIT 1")
        event = dict(zip([column[0] for column in cursor.description], cursor.fetchone(), strict=True))
        segment = Path(path, "segments", event["segment"])
        file, start = segment.read_bytes(), event["offset"]
        bytes_now = change(file[start : start + event["length"]])
        segment.write_bytes(file + bytes_now)
        event |= {"offset": len(file), "length": len(bytes_now), "checksum": crc32(bytes_now), **columns}
        event["seal"] = seal(tuple(event.values())[:-1])
        db.execute(f"REPLACE INTO events VALUES ({', '.join('?' * len(event))})", tuple(event.values()))
        db.commit()


def replaced(before: bytes, after: bytes) -> Callable[[bytes], bytes]:
    """Replaces bytes that are there."""

    def change(train: bytes) -> bytes:
        assert before in train
        return train.replace(before, after)

    return change


def offsets(*values: int) -> bytes:
    """Offsets of texts or lists as they are in a train."""
    return struct.pack(f"<{len(values)}i", *values)


def compressed(train: bytes) -> bytes:
    """The bytes of a train of zeros, which takes a thousand times as much when it is read."""
    del train
    times, zeros = pa.array(range(1 << 20), pa.timestamp("us", "UTC")), pa.array([0] * (1 << 20), pa.int64())
    rows = pa.record_batch([times, zeros], ["rowtime", "n"])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as stream:
        stream.write_batch(rows)
    messages = pa.ipc.MessageReader.open_stream(sink.getvalue())
    messages.read_next_message()
    return messages.read_next_message().serialize().to_pybytes()


TEXTS = ["aaa", "bbbbb", "cc"]
LISTS = [[TEXTS[0]], TEXTS[1:], ["dddd"]]
_IN_LISTS = offsets(0, 3, 8, 10, 14)
LIES: dict[str, tuple[str, list[tuple[object, ...]], Callable[[bytes], bytes], dict[str, int]]] = {
    "a text that ends far away": (
        "s STRING", [(text,) for text in TEXTS], replaced(offsets(0, 3, 8, 10), offsets(0, 3, 8, 1 << 30)), {}),
    "a text that begins before the train": (
        "s STRING", [(text,) for text in TEXTS], replaced(offsets(0, 3, 8, 10), offsets(-(1 << 30), 3, 8, 10)), {}),
    "a text in the middle": (
        "s STRING", [(text,) for text in TEXTS], replaced(offsets(0, 3, 8, 10), offsets(0, 1 << 30, 8, 10)), {}),
    "offsets that fall by more than a number holds": (
        "s STRING", [(text,) for text in TEXTS], replaced(offsets(0, 3, 8, 10), offsets(0, 1, -(1 << 31), 10)), {}),
    "bytes": (
        "b BINARY", [(text.encode(),) for text in TEXTS],
        replaced(offsets(0, 3, 8, 10), offsets(0, 1 << 30, 8, 10)), {}),
    "a list that ends far away": (
        "l ARRAY<STRING>", [(texts,) for texts in LISTS],
        replaced(offsets(0, 1, 3, 4), offsets(0, 1, 3, 1 << 28)), {}),
    "a text in a list": (
        "l ARRAY<STRING>", [(texts,) for texts in LISTS], replaced(_IN_LISTS, offsets(0, 3, 1 << 30, 10, 14)), {}),
    "a text in a struct": (
        "t STRUCT<s: STRING>", [({"s": text},) for text in TEXTS],
        replaced(offsets(0, 3, 8, 10), offsets(0, 1 << 30, 8, 10)), {}),
    "a text in a map": (
        "m MAP<STRING, INT>", [({text: 1},) for text in TEXTS],
        replaced(offsets(0, 3, 8, 10), offsets(0, 1 << 30, 8, 10)), {}),
    "more rows than bytes": (
        "n BIGINT", [(n % 3,) for n in range(MANY)],
        replaced(struct.pack("<q", MANY), struct.pack("<q", GROWN)), {"rows": GROWN}),
    "a length of two gigabytes": ("n BIGINT", [(1,)], bytes, {"length": (1 << 31) - 1}),
    "a place before the file": ("n BIGINT", [(1,)], bytes, {"offset": -(1 << 40)}),
    "compressed": ("n BIGINT", [(n,) for n in range(1 << 10)], compressed, {"rows": 1 << 20}),
}  # fmt: skip
"""By name: columns, values, what is done to the train's bytes, and what of its event."""


def lying_stream(path: str, name: str) -> str:
    """Makes a stream with one train that lies."""
    columns, values, change, event = LIES[name]
    rt.createStream(path, f"rowtime TIMESTAMP NOT NULL, {columns}")
    with rt.openSink(path, linger="1 hour") as sink:
        sink.sendRows([(FIRST + timedelta(minutes=n), *value) for n, value in enumerate(values)])
    lie(path, change, **event)
    return path
