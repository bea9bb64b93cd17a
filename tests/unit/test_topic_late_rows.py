"""The late rows of topics: each kept once, whatever times the messages have."""

import base64
from collections.abc import Callable
from datetime import date, datetime
from typing import Any

import pyarrow as pa
import pytest
from unit_support import new_stream, us, when

import spark_rowtime as rt
from spark_rowtime.spark.topic_late_rows import LateBatch, keep_late
from spark_rowtime.store import open_store
from spark_rowtime.types.held_values import held_in_schema
from spark_rowtime.types.schema import stream_schema
from spark_rowtime.types.values import FIRST_TIME, LAST_TIME

MICROS = pa.timestamp("us", "UTC")


def sent(**columns: list) -> str:
    """Rows as the extension sends them; lists of whole numbers are times in microseconds."""
    return of_arrays(**{name: pa.array(v, MICROS if name != "n" else pa.int32()) for name, v in columns.items()})


def ended(number: int, end: int = 5) -> LateBatch:
    return LateBatch(number, {"stream": "s", "seq": number}, {"orders": {"0": end, "1": 2}})


def of_arrays(**arrays: pa.Array) -> str:
    rows, out = pa.record_batch(arrays), pa.BufferOutputStream()
    with pa.ipc.new_stream(out, rows.schema) as stream:
        stream.write_batch(rows)
    return base64.b64encode(out.getvalue()).decode()


def test_a_batch_that_runs_again_keeps_its_rows_once():
    store = open_store(new_stream("rowtime TIMESTAMP NOT NULL, n INT"))
    for batch, times in ((0, ["9:00", "9:01"]), (1, ["9:02"]), (1, ["9:02"])):
        keep_late(store, "q-0", ended(batch), us("10:00"), sent(rowtime=[us(t) for t in times], n=[batch] * len(times)))
    kept = store.rejected().to_pylist()
    assert [(r["rowtime"], r["n"]) for r in kept] == [(when("9:00"), 0), (when("9:01"), 0), (when("9:02"), 1)]
    assert {(r["producer"], r["reason"], r["bound"], r["boundOf"]) for r in kept} == {
        ("spark-q-0", "late", when("10:00"), "stream")
    }
    keep_late(store, "q-1", ended(0), us("10:00"), sent(rowtime=[us("9:03")], n=[3]))
    assert store.rejected().num_rows == 4, "of another source"


def test_a_batch_of_an_older_checkpoint_is_refused():
    """Offsets are the same in any order, as Spark may write them."""
    store = open_store(new_stream("rowtime TIMESTAMP NOT NULL, n INT"))
    row, bound = sent(rowtime=[us("9:00")], n=[1]), us("10:00")
    keep_late(store, "q-0", ended(7), bound, row)
    again = LateBatch(7, {"seq": 7, "stream": "s"}, {"orders": {"1": 2, "0": 5}})
    keep_late(store, "q-0", again, bound, row)
    for other in (ended(7, end=6), again._replace(end={"seq": 8, "stream": "s"}), ended(6)):
        with pytest.raises(rt.ProducerFencedError, match="older copy"):
            keep_late(store, "q-0", other, bound, row)
    keep_late(store, "q-0", ended(8), bound, row)
    assert store.rejected().num_rows == 2


def test_a_time_that_no_stream_can_hold_ends_no_query():
    """A rowtime becomes the nearest one that it can hold, another time NULL."""
    store = open_store(new_stream("rowtime TIMESTAMP NOT NULL, other TIMESTAMP, n INT"))
    times = [-(2**62), FIRST_TIME - 1, FIRST_TIME, LAST_TIME, LAST_TIME + 1]
    keep_late(store, "q-0", ended(0), us("10:00"), sent(rowtime=times, other=times, n=list(range(5))))
    kept = store.rejected()
    assert kept.column("rowtime").cast(pa.int64()).to_pylist() == [FIRST_TIME] * 3 + [LAST_TIME] * 2
    assert kept.column("other").cast(pa.int64()).to_pylist() == [None, None, FIRST_TIME, LAST_TIME, None]
    assert kept.column("n").to_pylist() == list(range(5))


BAD = b"\xff\xfeab"
BEYOND = LAST_TIME + 1


def texts(*values: bytes) -> pa.Array:
    """Texts whose bytes nobody has checked, as Spark has them of ``CAST(value AS STRING)``."""
    return pa.array(values, pa.binary()).view(pa.string())


def times(*values: int) -> pa.Array:
    return pa.array(values, MICROS)


def lists(values: pa.Array) -> pa.Array:
    return pa.ListArray.from_arrays(range(len(values) + 1), values)


def structs(values: pa.Array) -> pa.Array:
    return pa.StructArray.from_arrays([values], ["a"])


def keys(values: pa.Array) -> pa.Array:
    return pa.MapArray.from_arrays(range(len(values) + 1), values, pa.array([1] * len(values), pa.int32()))


def items(values: pa.Array) -> pa.Array:
    return pa.MapArray.from_arrays(range(len(values) + 1), pa.array([1] * len(values), pa.int32()), values)


@pytest.mark.parametrize(
    ("kind", "given", "kept"),
    [
        ("STRING", texts(b"one", BAD, b"", b"\xed\xa0\x80"), ["one", "\ufffd\ufffdab", "", "\ufffd\ufffd\ufffd"]),
        ("DATE", pa.array([0, 2**31 - 1, -(2**31), 1], pa.date32()), [date(1970, 1, 1), None, None, date(1970, 1, 2)]),
        ("TIMESTAMP", times(us("9:00"), BEYOND, FIRST_TIME - 1), [when("9:00"), None, None]),
        ("TIMESTAMP_NTZ", pa.array([0, BEYOND, -(2**63)], pa.timestamp("us")), [datetime(1970, 1, 1), None, None]),
    ],
)
@pytest.mark.parametrize(
    ("nested", "ddl"),
    [
        (None, "{}"),
        (lists, "ARRAY<{}>"),
        (structs, "STRUCT<a: {}>"),
        (keys, "MAP<{}, INT>"),
        (items, "MAP<INT, {}>"),
        (lambda values: lists(structs(values)), "ARRAY<STRUCT<a: {}>>"),
    ],
)
def test_no_value_ends_it(
    kind: str, given: pa.Array, kept: list[Any], nested: Callable[[pa.Array], pa.Array] | None, ddl: str
) -> None:
    """Each row is kept, and all values that the stream can hold. Of nested ones there is none instead of a part."""
    store = open_store(new_stream(f"rowtime TIMESTAMP NOT NULL, v {ddl.format(kind)}, n INT"))
    count = len(given)
    number = pa.array(range(count), pa.int32())
    rows = of_arrays(rowtime=times(*[us("9:00")] * count), v=nested(given) if nested else given, n=number)
    keep_late(store, "q-0", ended(0), us("10:00"), rows)
    found = store.rejected()
    assert found.column("n").to_pylist() == list(range(count))
    if nested is None:
        assert found.column("v").to_pylist() == kept
    else:
        good = [v is not None and "\ufffd" not in str(v) for v in kept]
        assert [v is not None for v in found.column("v").to_pylist()] == good


def test_a_part_that_is_null_where_the_stream_has_not_null_ends_no_query() -> None:
    store = open_store(new_stream("rowtime TIMESTAMP NOT NULL, v STRUCT<a: INT NOT NULL>, l ARRAY<INT>"))
    v, nine = structs(pa.array([1, None], pa.int32())), times(us("9:00"), us("9:00"))
    keep_late(
        store, "q-0", ended(0), us("10:00"), of_arrays(rowtime=nine, v=v, l=lists(pa.array([1, None], pa.int32())))
    )
    assert store.rejected().column("v").to_pylist() == [{"a": 1}, None]
    assert store.rejected().column("l").to_pylist() == [[1], [None]]


def test_a_column_that_is_not_null_gets_the_nearest_value() -> None:
    schema = stream_schema("rowtime TIMESTAMP NOT NULL, d DATE NOT NULL, t STRING NOT NULL")
    days = pa.array([-(2**31), 0, 2**31 - 1], pa.date32())
    rows = pa.record_batch({"rowtime": times(-(2**63), 5, BEYOND), "d": days, "t": texts(b"a", BAD, b"b")})
    held = held_in_schema(rows, schema)
    assert held.schema == schema
    assert held.column("rowtime").cast("int64").to_pylist() == [FIRST_TIME, 5, LAST_TIME]
    assert held.column("d").to_pylist() == [date.min, date(1970, 1, 1), date.max]
    assert held.column("t").to_pylist() == ["a", "\ufffd\ufffdab", "b"]


@pytest.mark.parametrize(
    ("ddl", "given", "said"),
    [
        ("v ARRAY<STRING> NOT NULL", lists(texts(b"a", BAD)), "'v' does not hold"),
        ("v INT NOT NULL", pa.array([1, None], pa.int32()), "'v' is NOT NULL"),
        ("v INT", pa.array(["a", "1"]), "cannot be cast"),
        ("w INT", pa.array([1, 2], pa.int32()), "missing"),
    ],
)
def test_what_is_no_row_of_the_stream_is_an_error(ddl: str, given: pa.Array, said: str) -> None:
    rows = pa.record_batch({"rowtime": times(0, 1), "v": given})
    with pytest.raises(rt.SchemaMismatchError, match=said):
        held_in_schema(rows, stream_schema(f"rowtime TIMESTAMP NOT NULL, {ddl}"))
