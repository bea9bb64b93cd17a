"""A writer whose trains have valid checksums, and contents that would crash a reader, or fill its memory."""

import struct
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner

import spark_rowtime as rt
from spark_rowtime.cli import main
from spark_rowtime.store.messages import read_batch
from spark_rowtime.types.added_columns import as_added
from tests.store.crafted import FIRST, LIES, MANY, lie, lying_stream, replaced
from tests.store.processes import ROOT

READ = """
import resource, sys
import spark_rowtime as rt
resource.setrlimit(resource.RLIMIT_DATA, (1 << 30, 1 << 30))
for path in sys.argv[1:]:
    print(path, flush=True)
    with rt.openReader(path, order="arrival") as reader:
        try:
            print([train.rows.to_pylist() for train in reader])
        except rt.StoreCorruptError as error:
            assert "cannot be read" in str(error)
        else:
            sys.exit("no error")
"""


def test_trains_that_lie(tmp_path: Path) -> None:
    """The process that reads them is not ended by the system, and does not run out of memory."""
    paths = [lying_stream(str(tmp_path / name), name) for name in LIES]
    command = [sys.executable, "-c", READ, *paths]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (done.stdout[-500:], done.stderr)


@pytest.mark.parametrize("name", LIES)
def test_check_finds_a_train_that_lies(tmp_path: Path, name: str) -> None:
    found = CliRunner().invoke(main, ["check", lying_stream(str(tmp_path / "s"), name)])
    assert found.exit_code == 1
    assert "cannot be read" in found.output


def test_added_columns_take_no_memory_for_rows_that_a_train_lacks() -> None:
    times = pa.record_batch([pa.array(range(MANY), pa.timestamp("us", "UTC"))], ["rowtime"])
    train = times.serialize().to_pybytes()
    lie = replaced(struct.pack("<q", MANY), struct.pack("<q", 8 * len(train)))(train)
    added = [as_added(pa.field(f"n{i}", pa.int64())) for i in range(100)]
    usual, counted = pa.default_memory_pool(), pa.proxy_memory_pool(pa.default_memory_pool())
    pa.set_memory_pool(counted)
    try:
        with pytest.raises(pa.ArrowInvalid):
            read_batch(pa.py_buffer(lie), pa.schema([*times.schema, *added]))
    finally:
        pa.set_memory_pool(usual)
    assert counted.max_memory() <= len(lie)


def test_whatever_bit_is_flipped_a_message_is_read_or_refused() -> None:
    schema = pa.schema([pa.field("rowtime", pa.timestamp("us", "UTC")), pa.field("p", pa.string())])
    message = pa.record_batch([pa.array([1, 2], schema.field(0).type), ["a", "late"]], schema=schema).serialize()
    refused = 0
    for bit in range(8 * message.size):
        flipped = bytearray(message)
        flipped[bit // 8] ^= 1 << bit % 8
        try:
            read_batch(pa.py_buffer(flipped), schema)
        except pa.ArrowException:
            refused += 1
    assert refused > message.size


OTHER = [("offset", "x"), ("length", None), ("rows", "x"), ("floor", "x"), ("segment", b"a"), ("kind", "no such")]


@pytest.mark.parametrize(("column", "value"), OTHER, ids=repr)
def test_an_event_that_none_is_like(tmp_path: Path, column: str, value: object) -> None:
    path = str(tmp_path / "s")
    rt.createStream(path, "rowtime TIMESTAMP NOT NULL")
    with rt.openSink(path, linger="1 hour") as sink:
        sink.sendRow((FIRST,))
    lie(path, bytes, **{column: value})
    found = CliRunner().invoke(main, ["check", path])
    assert (found.exit_code, "of no kind" in found.output or "of other types" in found.output) == (1, True)
    if column != "kind":  # of which a reader needs nothing
        with (
            rt.openReader(path, order="arrival") as reader,
            pytest.raises(rt.StoreCorruptError, match="of other types"),
        ):
            list(reader)
