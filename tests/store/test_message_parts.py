"""Large messages, which are written from the memory of the columns."""

import os
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from isal.isal_zlib import crc32

from spark_rowtime.store.local import message_parts, segment
from spark_rowtime.store.local.message_parts import Messages, Part
from spark_rowtime.types.schema import stream_schema

COLUMNS = (
    "rowtime TIMESTAMP NOT NULL, b BOOLEAN, l BIGINT, d DECIMAL(38,10), s STRING NOT NULL, x BINARY, "
    "a ARRAY<STRUCT<p: INT, q: MAP<STRING, DOUBLE>>>"
)


def rows_of_many_types() -> pa.RecordBatch:
    one = {"b": True, "l": 1, "d": 2, "s": "t", "x": b"x", "a": [{"p": 1, "q": [("k", 0.5)]}, None]}
    none = dict.fromkeys(one) | {"s": ""}
    return pa.RecordBatch.from_pylist(
        [{"rowtime": n, **(none if n % 3 else one)} for n in range(100)], stream_schema(COLUMNS)
    )


@pytest.mark.parametrize("first", [0, 13])
def test_the_parts_are_the_message(monkeypatch: pytest.MonkeyPatch, first: int) -> None:
    rows = rows_of_many_types().slice(first)
    nullable = pa.RecordBatch.from_arrays(rows.columns, rows.schema.names)
    messages, whole = Messages(rows.schema), rows.serialize().to_pybytes()
    assert [bytes(part) for part in messages.of(rows)] == [whole]
    monkeypatch.setattr(message_parts, "LARGE_ROWS", 1)
    for given in (rows, nullable, rows):
        assert len(parts := messages.of(given)) > 1
        assert b"".join(parts) == whole


def test_the_columns_are_not_copied() -> None:
    rows = pa.record_batch({"rowtime": pa.array(range(message_parts.LARGE_ROWS), pa.timestamp("us", "UTC"))})
    (column,) = (part for part in Messages(rows.schema).of(rows) if isinstance(part, pa.Buffer))
    assert column.address == rows.column(0).buffers()[1].address


@pytest.mark.parametrize("most", [1, 2, 1000])
@pytest.mark.parametrize("torn", [False, True])
def test_parts_are_written_as_they_come(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int, torn: bool) -> None:
    """Also where the system writes less than it was asked for."""
    write = os.pwritev

    def half(fd: int, parts: Sequence[Part], at: int) -> int:
        return write(fd, [b"".join(parts)[: sum(map(len, parts)) // 2]], at)

    if torn:
        monkeypatch.setattr(os, "pwritev", half)
    monkeypatch.setattr(segment, "MOST_PARTS", most)
    monkeypatch.setattr(segment, "CACHED_BYTES", 5000)
    parts: list[Part] = [b"%d" % n * (n % 7 * 300) for n in range(50)]
    whole = b"".join(parts)
    with (tmp_path / "file").open("wb") as file:
        assert segment.write_parts(file.fileno(), parts, 7) == (7 + len(whole), crc32(whole))
    assert (tmp_path / "file").read_bytes() == bytes(7) + whole
