"""Targets of `rowtime drain` that are none: what is meant is offered."""

from pathlib import Path

import pytest
from click.testing import CliRunner

import spark_rowtime as rt
from spark_rowtime.cli import main
from spark_rowtime.drain.tables.pattern import split_pattern
from tests.tables.test_drain import SCHEMA

OFFERED = {
    "deltalake:/lake/orders": "Did you mean delta:/lake/orders?",
    "Delta:/lake/orders": "Did you mean delta:/lake/orders?",
    "file:/lake/orders": "Did you mean delta:/lake/orders, or parquet:/lake/orders/date=%Y-%m-%d/hour=%H?",
    "file:///lake/date=%Y-%m-%d": "Did you mean parquet:/lake/date=%Y-%m-%d?",
    "lake/orders": "Did you mean delta:lake/orders, or parquet:lake/orders/date=",
    "s3://bucket/orders": "Did you mean delta:s3://bucket/orders?",
    "kafka:localhost:9092/orders": "Did you mean kafka://localhost:9092/orders?",
    "postgresql://db/shop/orders": "A stream is copied with `rowtime copy`",
    "shop.consumers.Printer": "Did you mean shop.consumers:Printer?",
    "/lake/" + "x" * 300: f"Did you mean delta:/lake/{'x' * 300}",
    "other.rowtime": "A stream is copied with `rowtime copy`",
}


@pytest.fixture
def stream(tmp_path: Path) -> str:
    path = str(tmp_path / "orders.rowtime")
    rt.createStream(path, SCHEMA)
    return path


@pytest.mark.parametrize("target", OFFERED)
def test_what_is_meant_by_a_target_is_offered(stream: str, target: str) -> None:
    done = CliRunner().invoke(main, ["drain", stream, target])
    assert done.exit_code == 1
    assert f"{target!r} is no target of a drain. {OFFERED[target]}" in done.output


def test_a_folder_with_a_delta_table_is_offered_as_one(stream: str, tmp_path: Path) -> None:
    (tmp_path / "lake/_delta_log").mkdir(parents=True)
    done = CliRunner().invoke(main, ["drain", stream, f"{tmp_path}/lake"])
    assert f"Did you mean delta:{tmp_path}/lake?" in done.output


@pytest.mark.parametrize("url", ["s3://bucket/lake", "gs://bucket/lake", "file:///lake", "abfss://c@h/lake"])
def test_parquet_needs_a_folder(stream: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(main, ["drain", stream, f"parquet:{url}/date=%Y-%m-%d"])
    assert (done.exit_code, "to a folder of this machine, not to a URL" in done.output) == (1, True)
    assert [entry.name for entry in tmp_path.iterdir()] == ["orders.rowtime"]
    with pytest.raises(rt.InvalidOptionError, match="not to a URL"):
        rt.readTableBound(f"parquet:{url}")


def test_the_root_of_all_folders_is_one() -> None:
    assert split_pattern("/date=%Y-%m-%d") == ("/", "date=%Y-%m-%d")
    assert split_pattern("date=%Y-%m-%d") == ("", "date=%Y-%m-%d")
    assert split_pattern("/lake/%Y/x") == ("/lake", "%Y/x")


def test_a_password_is_not_repeated(stream: str) -> None:
    for target in ("postgresql://u:sEcReT@db/x", "delta:s3://AK:sEcReT@b/x"):
        for more in ((), ("--config", "client.properties")):
            assert "sEcReT" not in CliRunner().invoke(main, ["drain", stream, target, *more]).output


@pytest.mark.parametrize("target", ["my_module:Consumer", "file:Consumer", "a.b:Consumer", "consumer"])
def test_what_names_a_class_is_looked_for(stream: str, target: str) -> None:
    done = CliRunner().invoke(main, ["drain", stream, target])
    assert "is no target of a drain" not in done.output
    assert done.exit_code == 1
