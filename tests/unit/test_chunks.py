"""Chunks of rows, which the state of an operator keeps from one version of a query to the next."""

from datetime import UTC, datetime

import pyarrow as pa
import pytest

from spark_rowtime.errors import SchemaMismatchError
from spark_rowtime.operators.chunks import from_bytes, to_bytes, together

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
