"""What a drain into a table refuses, and how two writers of one table keep out of each other's way."""

import errno
import json
import os
import random
import resource
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner

import spark_rowtime as rt
from spark_rowtime.cli import main
from spark_rowtime.drain.tables import outcome
from tests.failing import Failing
from tests.tables.lake import FORMATS, TRANSACTIONAL, Lake
from tests.tables.test_drain import SCHEMA, fill


@pytest.fixture
def orders(lake: Lake) -> Lake:
    rt.createStream(lake.stream, SCHEMA)
    fill(lake.stream, range(10, 14))
    return lake


def drained(orders: Lake, sink: Any) -> None:
    with rt.openReader(orders.stream) as reader:
        reader.drainTo(sink)


def opened(orders: Lake, kind: str, schema: str = SCHEMA) -> Any:
    from spark_rowtime.types.schema import stream_schema

    return rt.openTableSink(orders.target(kind), stream_schema(schema), every="1 hour")


@pytest.mark.parametrize("kind", TRANSACTIONAL)
def test_of_two_drains_into_one_table_the_second_to_commit_is_fenced(orders: Lake, kind: str) -> None:
    one, other = opened(orders, kind), opened(orders, kind)
    drained(orders, one)
    with pytest.raises(rt.ProducerFencedError, match="Another drain or query has committed"):
        drained(orders, other)
    with pytest.raises(rt.SinkClosedError, match=r"a commit failed\. Open another one"):
        drained(orders, other)
    fill(orders.stream, range(14, 16))
    drained(orders, one)
    assert orders.numbers(kind) == list(range(10, 16))


def test_a_commit_beside_that_fails_is_said_while_the_stream_is_quiet(orders: Lake) -> None:
    other = rt.openTableSink(orders.target("delta"), opened(orders, "delta")._schema, maxRows=1)
    orders.drain("delta")
    with rt.openReader(orders.stream) as reader:
        other.sendRows(reader.read().rows)
        other.flush(checkpoint=reader.position)
    other._write_future.exception(240)
    with pytest.raises(rt.ProducerFencedError):
        other.commitDue()


def test_a_second_drain_into_folders_of_parquet_is_refused_when_it_starts(orders: Lake) -> None:
    with opened(orders, "parquet"), pytest.raises(rt.StoreUnavailableError, match="Another drain writes to parquet:"):
        opened(orders, "parquet")
    orders.drain("parquet")


@pytest.mark.parametrize("kind", TRANSACTIONAL)
def test_another_writer_of_the_table_does_not_stop_a_drain(orders: Lake, kind: str) -> None:
    sink = opened(orders, kind)
    drained(orders, sink)
    row = pa.table({"rowtime": pa.array([1], pa.timestamp("us", "UTC")), "n": pa.array([1], pa.int32())})
    row = row.cast(sink._schema)
    for _ in range(2):
        append_beside(orders, kind, row)
    fill(orders.stream, range(14, 16))
    drained(orders, sink)
    assert orders.numbers(kind) == [1, 1, *range(10, 16)]
    orders.drain(kind)
    assert orders.numbers(kind) == [1, 1, *range(10, 16)], "the position is found behind the others' commits"


def append_beside(orders: Lake, kind: str, rows: pa.Table) -> None:
    if kind == "delta":
        from deltalake import write_deltalake

        write_deltalake(f"{orders.folder}/delta", rows, mode="append")
    else:
        from pyiceberg.catalog import load_catalog

        load_catalog("lake").load_table("shop.orders").append(rows)


def test_a_rollback_of_an_iceberg_table_takes_the_position_back_with_the_rows(orders: Lake) -> None:
    from pyiceberg.catalog import load_catalog

    orders.drain("iceberg")
    before = load_catalog("lake").load_table("shop.orders").current_snapshot().snapshot_id
    fill(orders.stream, range(14, 16))
    orders.drain("iceberg")
    table = load_catalog("lake").load_table("shop.orders")
    table.manage_snapshots().rollback_to_snapshot(before).commit()
    assert orders.numbers("iceberg") == list(range(10, 14))
    orders.drain("iceberg")
    assert orders.numbers("iceberg") == list(range(10, 16))


def test_where_snapshots_have_expired_the_position_is_that_of_the_tables_properties(orders: Lake) -> None:
    from pyiceberg.catalog import load_catalog

    orders.drain("iceberg")
    append_beside(orders, "iceberg", pa.table({"rowtime": [], "n": []}).cast(opened(orders, "iceberg")._schema))
    table = load_catalog("lake").load_table("shop.orders")
    for snapshot in table.metadata.snapshots[:-1]:
        table.maintenance.expire_snapshots().by_id(snapshot.snapshot_id).commit()
    assert orders.commits("iceberg") == []
    orders.drain("iceberg")
    assert orders.numbers("iceberg") == list(range(10, 14))


def test_a_delta_log_without_the_commit_of_the_position_is_refused(orders: Lake) -> None:
    from deltalake import DeltaTable

    orders.drain("delta")
    append_beside(orders, "delta", pa.table({"rowtime": [], "n": []}).cast(opened(orders, "delta")._schema))
    DeltaTable(f"{orders.folder}/delta").create_checkpoint()
    for commit in range(3):
        Path(f"{orders.folder}/delta/_delta_log/{commit:020}.json").unlink()
    with pytest.raises(rt.DataLostError, match="its log no longer has the commit with the position"):
        opened(orders, "delta")


def test_a_delta_log_that_may_have_dropped_the_note_of_a_drain_is_refused(orders: Lake) -> None:
    """Spark drops it from a checkpoint after ``delta.setTransactionRetentionDuration``."""
    from deltalake import DeltaTable, write_deltalake

    from spark_rowtime.types.schema import stream_schema

    path = f"{orders.folder}/delta"
    rows = pa.table({"rowtime": [], "n": []}).cast(stream_schema(SCHEMA))
    DeltaTable.create(path, rows.schema, configuration={"delta.setTransactionRetentionDuration": "interval 1 day"})
    for _ in range(2):
        write_deltalake(path, rows, mode="append")
    DeltaTable(path).create_checkpoint()
    for commit in range(2):
        Path(f"{path}/_delta_log/{commit:020}.json").unlink()
    with pytest.raises(rt.DataLostError, match=r"has delta\.setTransactionRetentionDuration"):
        orders.drain("delta")
    assert orders.numbers("delta") == []


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize(
    ("schema", "column"),
    [("rowtime TIMESTAMP NOT NULL", "n"), (SCHEMA.replace("INT", "BIGINT"), "n"), (SCHEMA + ", more STRING", "more")],
)
def test_a_table_with_other_columns_is_refused_by_column(orders: Lake, kind: str, schema: str, column: str) -> None:
    orders.drain(kind)
    with pytest.raises(rt.SchemaMismatchError, match=f"exists, and its column.*'{column}'") as caught:
        opened(orders, kind, schema)
    assert caught.value.values["column"] == column


@pytest.mark.parametrize("kind", TRANSACTIONAL)
def test_a_column_that_the_table_has_not_null_must_be_so_in_the_stream(orders: Lake, kind: str) -> None:
    opened(orders, kind, SCHEMA + " NOT NULL")
    with pytest.raises(rt.SchemaMismatchError, match="is int32 NOT NULL, but the stream's needs int32"):
        opened(orders, kind)


@pytest.mark.parametrize(("kind", "name"), [("delta", "a b"), ("iceberg", "a.b")])
@pytest.mark.parametrize("schema", ["`{}` INT", "c STRUCT<`{}`: INT>", "c ARRAY<STRUCT<`{}`: INT>> NOT NULL"])
def test_a_name_that_the_format_does_not_allow_is_refused_by_column(
    lake: Lake, kind: str, name: str, schema: str
) -> None:
    columns = f"rowtime TIMESTAMP NOT NULL, {schema.format(name)}"
    with pytest.raises(rt.SchemaMismatchError, match=r"does not allow 'a.b' as a name") as caught:
        opened(lake, kind, columns)
    assert caught.value.values["column"] in (name, "c")


@pytest.mark.parametrize(
    "kind",
    ["ARRAY<STRUCT<x: INT>>", "MAP<STRING, STRUCT<x: INT>>", "STRUCT<a: ARRAY<STRUCT<x: INT>>>"],
)
def test_a_null_that_pyiceberg_does_not_keep_is_refused_by_column(lake: Lake, kind: str) -> None:
    with pytest.raises(rt.SchemaMismatchError, match=r"as an empty one\. Declare it NOT NULL") as caught:
        opened(lake, "iceberg", f"rowtime TIMESTAMP NOT NULL, c {kind}")
    assert caught.value.values["column"] == "c"


def test_pyiceberg_still_writes_such_a_null_as_an_empty_list(orders: Lake) -> None:
    """Once this fails, the refusal can go."""
    from pyiceberg.catalog import load_catalog

    kind = pa.list_(pa.field("element", pa.struct([("x", pa.int32())])))
    rows = pa.table({"c": pa.array([None], kind)})
    load_catalog("lake").create_namespace("shop")
    table = load_catalog("lake").create_table("shop.lists", rows.schema)
    table.append(rows)
    assert table.scan().to_arrow()["c"].to_pylist() == [[]]


@pytest.mark.parametrize("kind", FORMATS)
def test_a_table_that_another_stream_was_drained_into_is_refused(orders: Lake, kind: str, tmp_path: Path) -> None:
    orders.drain(kind)
    rt.createStream(str(tmp_path / "other"), SCHEMA)
    with (
        rt.openReader(str(tmp_path / "other")) as reader,
        opened(orders, kind) as sink,
        pytest.raises(rt.InvalidOptionError, match="This position belongs to the stream"),
    ):
        reader.drainTo(sink)


def test_folders_of_parquet_need_rows_in_order(orders: Lake) -> None:
    with (
        rt.openReader(orders.stream, order="arrival") as reader,
        opened(orders, "parquet") as sink,
        pytest.raises(rt.InvalidOptionError, match="order='rowtime'"),
    ):
        reader.drainTo(sink)
    assert orders.drain("parquet") is None, "nothing of that order was kept"


@pytest.mark.parametrize(("module", "kind"), [("deltalake", "delta"), ("pyiceberg.exceptions", "iceberg")])
def test_an_extra_that_is_not_installed_is_named(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, module: str, kind: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(rt.ExtraNotInstalledError, match=rf"pip install 'spark-rowtime\[{kind}\]'") as caught:
        opened(lake, kind)
    assert caught.value.values == {"extra": kind}


@pytest.mark.parametrize(
    ("target", "why"),
    [
        ("lance:/lake", "does not name a table"),
        ("delta:", "does not name a table"),
        (7, "does not name a table"),
        ("parquet:~/lake/%Y", "no shell expands it behind a colon"),
        ("delta:~/lake", "no shell expands it behind a colon"),
        ("iceberg:orders", "does not name an Iceberg table"),
        ("iceberg:nowhere.shop.orders", "The catalog 'nowhere' of"),
        ("parquet:/lake/orders", "it has no time in it"),
        ("parquet:/lake/hour=%H", "it has the hour, but not the day"),
        ("parquet:/lake/day=%d", "it has the day, but not the month"),
        ("parquet:/lake/%Y/%m/%d %H:%S", "%S is not one of"),
        ("parquet:/lake/n=%Y", "would make a column 'n' for readers"),
    ],
)
def test_a_target_that_names_no_table_is_refused(orders: Lake, target: Any, why: str) -> None:
    from spark_rowtime.types.schema import stream_schema

    with pytest.raises(rt.InvalidOptionError, match=why):
        rt.openTableSink(target, stream_schema(SCHEMA))


def test_a_folder_that_cannot_be_written_is_said(orders: Lake) -> None:
    (orders.folder / "parquet").write_text("")
    with pytest.raises(rt.StoreUnavailableError, match="cannot be written"):
        opened(orders, "parquet")
    (orders.folder / "delta").write_text("")
    with pytest.raises(rt.StoreUnavailableError, match="cannot be read or written"):
        opened(orders, "delta")


PLACES = {
    "delta": "delta/_delta_log/*.json",
    "iceberg": "warehouse/shop/orders/metadata/*.metadata.json",
    "parquet": "parquet/_rowtime/state.json",
}
"""The files that tell of a table what is in it; the last one counts."""


@pytest.mark.parametrize("content", ["{", "[]\n", "\x00\xff"])
@pytest.mark.parametrize("kind", FORMATS)
def test_a_file_of_the_table_that_is_damaged_is_named(orders: Lake, kind: str, content: str) -> None:
    orders.drain(kind)
    file = max(orders.folder.glob(PLACES[kind]))
    file.write_text(content, "latin1")
    for call in (lambda: rt.readTableBound(orders.target(kind)), lambda: opened(orders, kind)):
        with pytest.raises(rt.StoreCorruptError, match="cannot be read as what it should be") as caught:
            call()
        assert kind == "delta" or str(caught.value.values["file"]).endswith(str(file))  # its library does not tell


def test_metadata_of_iceberg_that_is_gone_is_an_error_that_says_so(orders: Lake) -> None:
    orders.drain("iceberg")
    for file in orders.folder.glob(PLACES["iceberg"]):
        file.unlink()
    for call in (lambda: rt.readTableBound(orders.target("iceberg")), lambda: opened(orders, "iceberg")):
        with pytest.raises(rt.StoreUnavailableError, match=r"cannot be read or written: .*metadata\.json"):
            call()


def test_a_time_in_the_state_of_folders_that_is_none_is_damage(orders: Lake) -> None:
    orders.drain("parquet")
    state = max(orders.folder.glob(PLACES["parquet"]))
    state.write_text(json.dumps({**json.loads(state.read_text()), "rowtime.bound": "yesterday"}))
    for call in (lambda: rt.readTableBound(orders.target("parquet")), lambda: opened(orders, "parquet")):
        with pytest.raises(rt.StoreCorruptError, match=r"rowtime\.bound is 'yesterday', which is no time"):
            call()


def test_an_unfinished_file_that_cannot_be_removed_is_said_and_the_folders_are_free_again(orders: Lake) -> None:
    orders.drain("parquet")
    left = orders.folder / "parquet/_rowtime/left.parquet"
    left.mkdir()
    with pytest.raises(rt.StoreUnavailableError, match=r"cannot be written: .*left\.parquet"):
        opened(orders, "parquet")
    left.rmdir()
    orders.drain("parquet")


def test_a_lock_of_folders_that_cannot_be_written_is_said_and_free_again(
    orders: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = Failing(os.ftruncate, 1, OSError(errno.ENOSPC, "No space left on device"))
    with monkeypatch.context() as patch, pytest.raises(rt.StoreUnavailableError, match="No space left"):
        patch.setattr("os.ftruncate", full)
        opened(orders, "parquet")
    orders.drain("parquet")


def test_a_state_of_folders_that_may_not_be_read_is_said(orders: Lake) -> None:
    orders.drain("parquet")
    state = max(orders.folder.glob(PLACES["parquet"]))
    state.unlink()
    state.mkdir()
    with pytest.raises(rt.StoreUnavailableError, match="cannot be read or written"):
        rt.readTableBound(orders.target("parquet"))


def configure_catalog(monkeypatch: pytest.MonkeyPatch, settings: dict[str, str]) -> None:
    """A catalog with the name ``other``."""
    from pyiceberg.utils.config import Config

    for name, value in settings.items():
        monkeypatch.setenv(f"PYICEBERG_CATALOG__OTHER__{name}", value)
    monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG", Config())


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"URI": "http://127.0.0.1:9/"}, rt.StoreUnavailableError),
        ({"URI": "sqlite:////no such folder/catalog.db"}, rt.StoreUnavailableError),
        ({"URI": "nonsense://lake"}, rt.InvalidOptionError),
        ({"URI": "no address", "TYPE": "sql"}, rt.InvalidOptionError),
        ({"TYPE": "sql"}, rt.InvalidOptionError),
        ({"TYPE": "none"}, rt.InvalidOptionError),
    ],
)
def test_a_catalog_that_is_away_is_told_from_one_that_is_configured_wrongly(
    orders: Lake, monkeypatch: pytest.MonkeyPatch, settings: dict[str, str], error: type[Exception]
) -> None:
    configure_catalog(monkeypatch, settings)
    with pytest.raises(error, match=r"iceberg:other\.shop\.orders cannot be (opened|read)"):
        rt.readTableBound("iceberg:other.shop.orders")


@pytest.mark.parametrize(
    "settings",
    [
        {"URI": "postgresql+psycopg2://me:gehe@i:m@db:5432/catalog"},
        {"URI": "lake://me:geheim@db/catalog"},
        {"TYPE": "none", "URI": "lake://db", "TOKEN": "geheim"},
    ],
    ids=["a port", "a scheme", "a type"],
)
def test_no_error_of_a_catalog_has_a_part_of_a_secret(
    orders: Lake, monkeypatch: pytest.MonkeyPatch, settings: dict[str, str]
) -> None:
    configure_catalog(monkeypatch, settings)
    with pytest.raises(rt.InvalidOptionError, match="cannot be opened") as refused:
        rt.readTableBound("iceberg:other.shop.orders")
    shown = "".join(traceback.format_exception(refused.value))
    assert not any(part in shown for part in ("gehe", "i:m", "m@db"))


@pytest.mark.parametrize("call", ["load_table", "commit_table"])
def test_no_error_of_a_table_has_credentials_of_the_answer_of_its_catalog(
    orders: Lake, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """An answer that pydantic cannot read is in its error, and it has credentials for the files of the table."""
    from pyiceberg.catalog.rest import TableResponse
    from pyiceberg.catalog.sql import SqlCatalog

    def answer(*_: object) -> None:
        TableResponse.model_validate({"config": {"s3.secret-access-key": "geheim"}})

    monkeypatch.setattr(outcome, "PAUSES", ())
    with opened(orders, "iceberg") as sink, monkeypatch.context() as patch:
        patch.setattr(SqlCatalog, call, answer)
        with pytest.raises(
            rt.RowtimeError, match=r"metadata Field required \[type=missing, input_value=\.\.\., "
        ) as refused:
            rt.readTableBound(orders.target("iceberg")) if call == "load_table" else drained(orders, sink)
        assert "geheim" not in "".join(traceback.format_exception(refused.value))
    orders.drain("iceberg")
    assert orders.numbers("iceberg") == list(range(10, 14))


def test_a_write_beside_that_fails_ends_the_sink_into_folders_and_nothing_of_it_appears(
    orders: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*what: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    sink = rt.openTableSink(orders.target("parquet"), opened(orders, "delta")._schema, maxRows=1)
    with monkeypatch.context() as patch, pytest.raises(rt.StoreUnavailableError, match="No space left"):
        patch.setattr("pyarrow.parquet.ParquetWriter.write_table", full)
        drained(orders, sink)
    with pytest.raises(rt.SinkClosedError, match=r"a commit failed\. Open another one"):
        sink.commit()
    sink.close()
    assert not orders.made("parquet")
    orders.drain("parquet")
    assert orders.numbers("parquet") == [10, 11, 12]


@pytest.mark.parametrize("max_rows", [[], ["--max-rows", "5000"]], ids=["in one piece", "in pieces"])
def test_folders_of_parquet_on_a_full_disk_are_an_error_and_no_row_is_lost(lake: Lake, max_rows: list[str]) -> None:
    """A limit on the size of files stands for a full disk."""
    rt.createStream(lake.stream, "rowtime TIMESTAMP NOT NULL, n BIGINT")
    dice = random.Random(1)
    numbers = [dice.randrange(1 << 60) for _ in range(60_000)]
    with rt.openSink(lake.stream, producer="shop") as sink:
        sink.sendRows([("2026-01-05T10:00:00Z", n) for n in numbers])
        sink.sendRowtimeBound("2026-01-05T11:00:00Z")
    command = [sys.executable, "-m", "spark_rowtime.cli", "drain", lake.stream, lake.target("parquet"), *max_rows]
    limited = subprocess.run(command, check=False, capture_output=True, text=True, preexec_fn=few_bytes)
    assert (limited.returncode, "Traceback" in limited.stderr) == (1, False), limited.stderr
    assert "cannot be written: " in limited.stderr
    assert "File too large" in limited.stderr
    assert not lake.made("parquet")
    assert subprocess.run(command, check=True).returncode == 0
    assert sorted(lake.numbers("parquet")) == sorted(numbers)


def few_bytes() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))


def test_folders_of_another_pattern_are_refused(orders: Lake) -> None:
    orders.drain("parquet")
    days = f"parquet:{orders.folder}/parquet/date=%Y-%m-%d"
    with pytest.raises(
        rt.InvalidOptionError, match=r"the pattern 'date=%Y-%m-%d/hour=%H' in the time zone UTC, not 'date=%Y-%m-%d'"
    ):
        rt.openTableSink(days, opened(orders, "delta")._schema)
    orders.drain("parquet")
    assert rt.readTableBound(days) == rt.readTableBound(orders.target("parquet"))


def test_folders_from_before_the_pattern_was_kept_get_it_with_the_next_commit(orders: Lake) -> None:
    orders.drain("parquet")
    file = orders.folder / "parquet/_rowtime/state.json"
    file.write_text(json.dumps({key: value for key, value in json.loads(file.read_text()).items() if key != "pattern"}))
    fill(orders.stream, range(14, 16))
    orders.drain("parquet")
    assert json.loads(file.read_text())["pattern"] == "date=%Y-%m-%d/hour=%H"
    assert orders.numbers("parquet") == [10, 11, 12, 13, 14]


def test_a_bound_in_the_first_period_of_all_times_is_kept_so_that_it_can_be_read(tmp_path: Path) -> None:
    stream, target = str(tmp_path / "first.rowtime"), f"parquet:{tmp_path}/lake/year=%Y"
    rt.createStream(stream, "rowtime TIMESTAMP NOT NULL, n BIGINT")
    with rt.openSink(stream, producer="shop") as sink:
        sink.sendRow(("1970-01-01T00:00:01Z", 1))
        sink.sendRowtimeBound("1970-01-01T00:00:05Z")
        for _ in range(2):
            drained = CliRunner().invoke(main, ["drain", stream, target])
            assert drained.exit_code == 0, drained.output
        sink.sendRowtimeBound("1971-01-01T00:00:00Z")
    assert CliRunner().invoke(main, ["drain", stream, target]).exit_code == 0
    assert len(list(tmp_path.glob("lake/year=1970/*.parquet"))) == 1


def test_a_state_of_folders_without_columns_is_damaged(orders: Lake) -> None:
    orders.drain("parquet")
    file = orders.folder / "parquet/_rowtime/state.json"
    file.write_text(json.dumps({key: value for key, value in json.loads(file.read_text()).items() if key != "schema"}))
    with pytest.raises(rt.StoreCorruptError, match=r"state.json of parquet:.* cannot be read"):
        orders.drain("parquet")


def test_rows_that_break_a_constraint_of_a_delta_table_are_said_so(orders: Lake) -> None:
    """It was told as a commit whose answer was lost, after four attempts."""
    from deltalake import DeltaTable

    opened(orders, "delta").close()
    DeltaTable(f"{orders.folder}/delta").alter.add_constraint({"small": "n < 13"})
    with pytest.raises(rt.SchemaMismatchError, match=r"failed validation check\. They break a constraint") as error:
        orders.drain("delta")
    assert error.value.__suppress_context__, "the library shows the rows"


def test_an_error_of_a_storage_is_shown_without_its_colors() -> None:
    from spark_rowtime.drain.tables.loading import shown

    assert shown(OSError("Generic S3 error \x1b[31m↳\x1b[0m denied")) == "Generic S3 error ↳ denied"


def test_a_feature_of_a_delta_table_that_its_library_does_not_write_is_told_with_the_way_out(orders: Lake) -> None:
    opened(orders, "delta").close()
    first = orders.folder / f"delta/_delta_log/{0:020}.json"
    wanted = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["inCommitTimestamp"]}
    actions = [json.loads(line) for line in first.read_text().splitlines()]
    lines = [{"protocol": wanted} if "protocol" in action else action for action in actions]
    first.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(rt.StoreUnavailableError, match=r"InCommitTimestamp.* drop it \(ALTER TABLE .* DROP FEATURE\)"):
        orders.drain("delta")
