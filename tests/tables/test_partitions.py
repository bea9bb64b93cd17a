"""Tables that are there already and partitioned: each value is kept exactly, or the column is refused by name."""

import re
import sys
from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pytest

import spark_rowtime as rt
from tests.tables.lake import Lake

deltalake: Any = pytest.importorskip("deltalake")

KEPT: dict[str, tuple[str, list[Any]]] = {
    "BOOLEAN": ("BOOLEAN", [True, False, None]),
    "BIGINT": ("BIGINT", [-(1 << 63), (1 << 63) - 1, 0, None]),
    "DATE": ("DATE", [date(1, 1, 1), date(9999, 12, 31), None]),
    "TIMESTAMP": ("TIMESTAMP", [datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC), None]),
    "STRING": ("STRING", ["a b", "ü/\\%=#?", "a\nb", "null", " ", "1", None]),
}
REFUSED = {"DECIMAL(20,2)": pa.decimal128(20, 2), "BINARY": pa.binary(), "DOUBLE": pa.float64(), "FLOAT": pa.float32()}


def rows(lake: Lake, kind: str, values: list[Any]) -> None:
    rt.createStream(lake.stream, f"rowtime TIMESTAMP NOT NULL, n INT, d {kind}")
    with rt.openSink(lake.stream, producer="feed") as sink:
        sink.sendRows([("2026-01-05T10:00:00Z", n, value) for n, value in enumerate(values)])


def made(lake: Lake, schema: pa.Schema) -> None:
    deltalake.DeltaTable.create(f"{lake.folder}/delta", schema, partition_by=["d"])


@pytest.mark.parametrize("kind", KEPT)
def test_a_partition_of_delta_keeps_each_value(lake: Lake, kind: str) -> None:
    name, values = KEPT[kind]
    rows(lake, name, values)
    made(lake, rt.describeStream(lake.stream).schema)
    lake.drain("delta")
    table = pa.table(deltalake.DeltaTable(f"{lake.folder}/delta").to_pyarrow_table()).sort_by("n")
    assert table.column("d").to_pylist() == values


@pytest.mark.parametrize("kind", REFUSED)
def test_a_column_whose_values_a_partition_of_delta_would_not_keep_is_refused_at_the_start(
    lake: Lake, kind: str
) -> None:
    """One DECIMAL of -1.10 made the whole table unreadable: its value was written as -1.-10."""
    rows(lake, kind, [None])
    made(lake, rt.describeStream(lake.stream).schema)
    with pytest.raises(rt.SchemaMismatchError, match=re.escape(f"partitioned by 'd': values of {REFUSED[kind]}")):
        lake.drain("delta")


@pytest.mark.parametrize("text", ["", "__HIVE_DEFAULT_PARTITION__"])
def test_a_text_that_a_partition_of_delta_reads_as_null_is_refused(lake: Lake, text: str) -> None:
    rows(lake, "STRING", ["x", text])
    made(lake, rt.describeStream(lake.stream).schema)
    with pytest.raises(rt.SchemaMismatchError, match=r"which is NULL there\. Nothing of this call is in the table"):
        lake.drain("delta")
    assert deltalake.DeltaTable(f"{lake.folder}/delta").to_pyarrow_table().num_rows == 0


def test_what_deltalake_cannot_write_is_said_and_not_that_others_wrote(lake: Lake) -> None:
    rows(lake, "STRING", ["x"])
    table = deltalake.DeltaTable.create(f"{lake.folder}/delta", rt.describeStream(lake.stream).schema)
    table.alter.add_feature(deltalake.TableFeatures.ChangeDataFeed, allow_protocol_versions_increase=True)
    lake.drain("delta")
    log = lake.folder / "delta/_delta_log/00000000000000000001.json"
    log.write_text(log.read_text().replace('"changeDataFeed"', '"changeDataFeed","inCommitTimestamp"'))
    with pytest.raises(rt.StoreUnavailableError, match=r"(?i)InCommitTimestamp") as refused:
        rows_again(lake)
    assert "Other writers" not in str(refused.value)


def rows_again(lake: Lake) -> None:
    with rt.openSink(lake.stream, producer="feed") as sink:
        sink.sendRow(("2026-01-05T11:00:00Z", 9, "y"))
    lake.drain("delta")


def test_a_column_that_is_added_while_a_drain_runs_is_named(lake: Lake) -> None:
    rows(lake, "STRING", ["x"])
    lake.drain("delta")
    with rt.openReader(lake.stream) as reader, rt.openTableSink(lake.target("delta"), reader.schema) as to:
        deltalake.DeltaTable(f"{lake.folder}/delta").alter.add_columns(
            [deltalake.Field("more", deltalake.schema.PrimitiveType("string"), nullable=False)]
        )
        with rt.openSink(lake.stream, producer="feed") as sink:
            sink.sendRow(("2026-01-05T11:00:00Z", 9, "y"))
        with pytest.raises(rt.SchemaMismatchError, match="more"):
            reader.drainTo(to)


def iceberg(lake: Lake, kind: str = "DOUBLE", transform: Any = None, **properties: str) -> Any:
    from pyiceberg.catalog import load_catalog
    from pyiceberg.transforms import IdentityTransform

    rows(lake, kind, [0.0, -0.0, 0.0, 1.0] if kind == "DOUBLE" else [1, 2, 3])
    catalog = load_catalog("lake")
    catalog.create_namespace("shop")
    schema = rt.describeStream(lake.stream).schema
    table = catalog.create_table("shop.orders", schema, properties=properties)
    if transform is None:
        return table
    with table.update_spec() as spec:
        spec.add_field("d", transform if transform != "identity" else IdentityTransform())
    return catalog.load_table("shop.orders")


def test_an_iceberg_table_partitioned_by_a_double_is_refused(lake: Lake) -> None:
    """PyIceberg wrote the rows with 0.0 and -0.0 twice."""
    iceberg(lake, transform="identity")
    with pytest.raises(rt.SchemaMismatchError, match="partitioned by 'd': PyIceberg would write rows with"):
        lake.drain("iceberg")


def test_an_iceberg_table_partitioned_by_an_integer_is_written(lake: Lake) -> None:
    iceberg(lake, "INT", "identity")
    lake.drain("iceberg")
    assert sorted(lake.numbers("iceberg")) == [0, 1, 2]


def test_a_transform_that_needs_another_package_is_named_at_the_start(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyiceberg.transforms import BucketTransform

    iceberg(lake, "INT", BucketTransform(4))
    monkeypatch.setitem(sys.modules, "pyiceberg_core", None)
    with pytest.raises(rt.ExtraNotInstalledError, match=r"partitioned by bucket\[4\].*pip install pyiceberg-core"):
        lake.drain("iceberg")


def test_files_that_pyiceberg_does_not_write_are_refused(lake: Lake) -> None:
    iceberg(lake, "INT", **{"write.format.default": "orc"})
    with pytest.raises(rt.SchemaMismatchError, match="files of orc, but PyIceberg writes Parquet"):
        lake.drain("iceberg")


@pytest.mark.parametrize("same", [True, False])
def test_a_column_that_is_dropped_and_added_again_loses_no_value(lake: Lake, same: bool) -> None:
    """The commit had NULL in it: its rows were written by the id of the column that was dropped."""
    from pyiceberg.types import IntegerType, LongType

    table = iceberg(lake, "INT")
    with rt.openReader(lake.stream) as reader, rt.openTableSink(lake.target("iceberg"), reader.schema) as to:
        reader.drainTo(to)
        with table.refresh().update_schema(allow_incompatible_changes=True) as change:
            change.delete_column("d")
        with table.refresh().update_schema() as change:
            change.add_column("d", IntegerType() if same else LongType())
        with rt.openSink(lake.stream, producer="feed") as sink:
            sink.sendRow(("2026-01-05T11:00:00Z", 3, 4711))
        if not same:
            with pytest.raises(rt.SchemaMismatchError, match="'d'"):
                reader.drainTo(to)
            return
        reader.drainTo(to)
    assert lake.read("iceberg", "n").column("d").to_pylist() == [None, None, None, 4711]
