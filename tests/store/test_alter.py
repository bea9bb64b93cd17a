"""Columns are added while others have the stream open: each object reads and writes the schema that it opened."""

import pyarrow as pa
import pytest

from spark_rowtime.errors import SchemaMismatchError
from spark_rowtime.store import check_store
from spark_rowtime.store.base import Store
from spark_rowtime.store.commits import Commit, Rejected
from spark_rowtime.types.alteration import columns_to_add
from tests.store.streams import EMPTY, WHOLE, NewStream, Opener, Writer, batch, names

NESTED = "s STRUCT<a: INT, l: ARRAY<STRING>>, m MAP<STRING, INT>, coupon STRING"


def rows(store: Store) -> list[dict]:
    """All rows of the stream without rowtime, as this object reads them."""
    found = [store.read(piece) for piece in store.slices(EMPTY, WHOLE)]
    assert all(part.schema.equals(store.schema) for part in found)
    return [row for part in found for row in part.drop_columns(["rowtime"]).to_pylist()]


def send(store: Store, name: str, second: float, **values: object) -> None:
    """Commits one row of the schema of ``store``, and leaves."""
    row = {"rowtime": batch(second).column(0)[0].as_py(), "n": int(second), **values}
    writer = Writer(store, name)
    staged = store.stage(pa.RecordBatch.from_pylist([row], schema=store.schema))
    store.commit(Commit(name, writer.epoch, writer.number + 1, (staged,)))
    writer.leave()


def test_old_rows_are_null_and_whoever_is_open_keeps_its_schema(new_stream: NewStream) -> None:
    open_again = new_stream()
    old = open_again()
    send(old, "a", 1)
    old.alter(columns_to_add("coupon STRING"))
    new = open_again()
    assert new.schema.names == ["rowtime", "n", "coupon"]
    assert old.schema.names == ["rowtime", "n"]
    send(new, "b", 2, coupon="ten")
    send(old, "c", 3)
    assert rows(new) == [{"n": 1, "coupon": None}, {"n": 2, "coupon": "ten"}, {"n": 3, "coupon": None}]
    assert rows(old) == [{"n": 1}, {"n": 2}, {"n": 3}]


def test_several_alterations_with_nested_columns(new_stream: NewStream) -> None:
    open_again = new_stream()
    first = open_again()
    first.alter(columns_to_add("items ARRAY<STRUCT<x: INT, y: STRING>>"))
    second = open_again()
    second.alter(columns_to_add(NESTED))
    third = open_again()
    items, nested = [{"x": 1, "y": "z"}], {"s": {"a": 1, "l": ["x"]}, "m": [("k", 1)], "coupon": "c"}
    send(first, "a", 1)
    send(second, "b", 2, items=items)
    send(third, "c", 3, items=items, **nested)
    gone = dict.fromkeys(nested)
    assert rows(third) == [
        {"n": 1, "items": None, **gone},
        {"n": 2, "items": items, **gone},
        {"n": 3, "items": items, **nested},
    ]
    assert rows(second) == [{"n": 1, "items": None}, {"n": 2, "items": items}, {"n": 3, "items": items}]
    assert rows(first) == [{"n": 1}, {"n": 2}, {"n": 3}]


def test_rejected_rows_are_read_with_the_new_columns(new_stream: NewStream) -> None:
    open_again = new_stream()
    old = open_again()
    writer = Writer(old, "a")
    writer.send([10], floor=10, late=[4])
    old.alter(columns_to_add("coupon STRING"))
    new = open_again()
    row = pa.RecordBatch.from_pylist([{**batch(5).to_pylist()[0], "coupon": "x"}], schema=new.schema)
    new.commit(Commit("a", writer.epoch, writer.number + 1, rejected=(Rejected("late", 5, row),)))
    assert new.rejected().select(["n", "coupon"]).to_pylist() == [{"n": 4, "coupon": None}, {"n": 5, "coupon": "x"}]
    assert old.rejected().column("n").to_pylist() == [4, 5]


def test_rows_that_were_staged_before_are_committed_after(new_stream: NewStream) -> None:
    """A Spark task stages rows; its driver, which opens the stream for the commit, may see the new schema."""
    open_again = new_stream()
    old = open_again()
    staged = old.stage(batch(1))
    old.alter(columns_to_add("coupon STRING"))
    new = open_again()
    writer = Writer(new, "a")
    new.commit(Commit("a", writer.epoch, writer.number + 1, (staged,)))
    assert rows(new) == [{"n": 1, "coupon": None}]


@pytest.mark.parametrize(
    ("add", "said"),
    [
        ("N STRING", "column 'n' already, so 'N' cannot be added; Spark ignores case"),
        ("coupon STRING NOT NULL", "'coupon' is NOT NULL"),
        ("RowTime TIMESTAMP", "one column rowtime"),
        ("rowtime STRUCT<a: INT>", "one column rowtime"),
        ("a STRING, A INT", "occurs twice"),
        ("coupon INTERVAL", "INTERVAL is not one that a stream can hold"),
        ("s.a STRING", "cannot read '.a STRING'"),
        ("", "expected a name"),
        (pa.schema([]), "no column to add"),
        (pa.schema([pa.field("t", pa.time64("us"))]), "'t' has the type time64"),
        (7, "int is not a schema"),
    ],
)
def test_columns_that_cannot_be_added(new_stream: NewStream, add: object, said: str) -> None:
    store = new_stream()()
    with pytest.raises(SchemaMismatchError, match=said):
        store.alter(columns_to_add(add))
    assert store.snapshot().logged_clock.producers == {}


def test_the_same_column_of_two_processes_is_added_once(new_stream: NewStream) -> None:
    """The second one has the old schema, but the stream's decides."""
    open_again = new_stream()
    one, two = open_again(), open_again()
    one.alter(columns_to_add("coupon STRING"))
    with pytest.raises(SchemaMismatchError, match="'coupon' already"):
        two.alter(columns_to_add("Coupon STRING"))
    two.alter(columns_to_add("other STRING"))
    assert open_again().schema.names == ["rowtime", "n", "coupon", "other"]


def test_a_segment_has_rows_of_one_schema(local_path: str, open_here: Opener) -> None:
    """So any Arrow tool can read it. A segment that is free is left to writers of its own schema."""
    old = open_here()
    old.alter(columns_to_add("coupon STRING"))
    for number in range(4):
        store = open_here() if number else old
        send(store, f"p{number}", number + 1)
        store.close()
    segments = names(f"{local_path}/segments")
    assert len(segments) == 2
    assert names(f"{local_path}/free") == segments
    tables = [pa.ipc.open_stream(pa.memory_map(f"{local_path}/segments/{name}")).read_all() for name in segments]
    assert sorted((len(table.schema), table.num_rows) for table in tables) == [(2, 1), (3, 3)]
    report = check_store(local_path)
    assert (report.damage, report.readable_rows) == ([], 4)


def test_gc_removes_the_segments_of_both_schemas(local_path: str, open_here: Opener) -> None:
    """What a segment's schema takes is not the same in both."""
    store = open_here()
    send(store, "a", 1)
    store.alter(columns_to_add("coupon STRING"))
    new = open_here()
    send(new, "b", 2)
    store.close()
    new.close()
    last = open_here()
    done = last.gc(age=0)
    assert (done.rows, done.files) == (2, 2)
    assert names(f"{local_path}/segments") == []
