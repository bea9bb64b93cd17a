"""Chunks of rows, which the state of an operator keeps from one version of a query to the next."""

from datetime import UTC, datetime

import pyarrow as pa
import pytest

from spark_rowtime.errors import SchemaMismatchError
from spark_rowtime.operators.chunks import CHUNK, from_bytes, to_bytes, together, unpacker

AT = datetime(2026, 1, 5, 10, tzinfo=UTC)


def rows(nullable: bool, zone: str) -> pa.Table:
    time = pa.field("at", pa.timestamp("us", zone))
    kinds = [time.with_nullable(nullable), pa.field("s", pa.struct([time]), nullable)]
    return pa.Table.from_pylist([{"at": AT, "s": {"at": AT}}], pa.schema(kinds))


def test_rows_of_a_changed_query_and_of_another_session_are_of_the_same_types() -> None:
    """A column may have been NOT NULL before, and the session in another time zone."""
    before, after = (from_bytes(to_bytes(table)) for table in (rows(False, "Europe/Berlin"), rows(True, "UTC")))
    both = pa.concat_tables([before, after])
    assert both.to_pylist() == 2 * rows(True, "UTC").to_pylist()


def test_rows_of_a_changed_query_have_the_columns_of_the_new_one_by_their_names() -> None:
    before, after = pa.table({"a": [1], "b": [2], "dropped": [3]}), pa.table({"b": [4], "a": [5]})
    assert together([before, after]).to_pylist() == [{"b": 2, "a": 1}, {"b": 4, "a": 5}]
    with pytest.raises(SchemaMismatchError, match="the column 'added', but rows in its state have only"):
        together([before, after.append_column("added", pa.array([6]))])


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (pa.int64(), pa.timestamp("us", "UTC")),
        (pa.timestamp("us", "UTC"), pa.int64()),
        (pa.timestamp("us", "UTC"), pa.timestamp("us")),
        (pa.date32(), pa.int32()),
        (pa.int32(), pa.int64()),
        (pa.decimal128(20, 2), pa.decimal128(20, 4)),
        (pa.struct([("a", pa.int32())]), pa.string()),
    ],
    ids=str,
)
def test_values_of_another_type_are_taken_for_none_of_the_new_one(before: pa.DataType, after: pa.DataType) -> None:
    """Spark has the same accessor for some of them, so it would show numbers as times."""
    kept = pa.table({"v": pa.array([None, None], before)})
    batch = pa.record_batch([pa.array([to_bytes(kept)], pa.binary())], names=[CHUNK])
    for call in (
        lambda: together([kept, pa.table({"v": pa.array([None], after)})]),
        lambda: list(unpacker(pa.schema([("v", after)]), "v", 0)(iter([batch]))),
    ):
        with pytest.raises(SchemaMismatchError, match=r"'v', but rows in its state have it as .*, and not as"):
            call()
    assert list(unpacker(kept.schema, "v", 0)(iter([batch]))) == kept.to_batches()
