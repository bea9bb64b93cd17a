"""The late rows of topics: each kept once, whatever times the messages have."""

import base64

import pyarrow as pa
from unit_support import new_stream, us, when

from spark_rowtime.spark.topic_late_rows import keep_late
from spark_rowtime.store import open_store
from spark_rowtime.types.values import FIRST_TIME, LAST_TIME

MICROS = pa.timestamp("us", "UTC")


def sent(**columns: list) -> str:
    """Rows as the extension sends them; lists of whole numbers are times in microseconds."""
    arrays = {name: pa.array(v, MICROS if name != "n" else pa.int32()) for name, v in columns.items()}
    rows, out = pa.record_batch(arrays), pa.BufferOutputStream()
    with pa.ipc.new_stream(out, rows.schema) as stream:
        stream.write_batch(rows)
    return base64.b64encode(out.getvalue()).decode()


def test_a_batch_that_runs_again_keeps_its_rows_once():
    store = open_store(new_stream("rowtime TIMESTAMP NOT NULL, n INT"))
    for batch, times in ((0, ["9:00", "9:01"]), (1, ["9:02"]), (1, ["9:02"])):
        keep_late(store, "q-0", batch, us("10:00"), sent(rowtime=[us(t) for t in times], n=[batch] * len(times)))
    kept = store.rejected().to_pylist()
    assert [(r["rowtime"], r["n"]) for r in kept] == [(when("9:00"), 0), (when("9:01"), 0), (when("9:02"), 1)]
    assert {(r["producer"], r["reason"], r["bound"], r["boundOf"]) for r in kept} == {
        ("spark-q-0", "late", when("10:00"), "stream")
    }
    keep_late(store, "q-1", 0, us("10:00"), sent(rowtime=[us("9:03")], n=[3]))
    assert store.rejected().num_rows == 4, "of another source"


def test_a_time_that_no_stream_can_hold_ends_no_query():
    """A rowtime becomes the nearest one that it can hold, another time NULL."""
    store = open_store(new_stream("rowtime TIMESTAMP NOT NULL, other TIMESTAMP, n INT"))
    times = [-(2**62), FIRST_TIME - 1, FIRST_TIME, LAST_TIME, LAST_TIME + 1]
    keep_late(store, "q-0", 0, us("10:00"), sent(rowtime=times, other=times, n=list(range(5))))
    kept = store.rejected()
    assert kept.column("rowtime").cast(pa.int64()).to_pylist() == [FIRST_TIME] * 3 + [LAST_TIME] * 2
    assert kept.column("other").cast(pa.int64()).to_pylist() == [None, None, FIRST_TIME, LAST_TIME, None]
    assert kept.column("n").to_pylist() == list(range(5))
