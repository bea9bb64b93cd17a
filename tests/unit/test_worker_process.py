"""A worker reads the list of files in an archive again if the archive is another one, and only then."""

import importlib
import zipimport
from pathlib import Path
from zipfile import ZipFile

import pytest

from spark_rowtime.spark.worker_process import settle


def write(archive: Path, *modules: str) -> None:
    with ZipFile(archive, "w") as file:
        for name in modules:
            file.writestr(f"{name}.py", f"NAME = {name!r}")


def test_a_change_before_the_first_task_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = tmp_path / "modules.zip"
    write(archive, "rowtime_before")
    monkeypatch.syspath_prepend(str(archive))
    assert importlib.import_module("rowtime_before").NAME == "rowtime_before"
    write(archive, "rowtime_before", "rowtime_after")
    settle()
    importlib.invalidate_caches()
    assert importlib.import_module("rowtime_after").NAME == "rowtime_after"


def test_a_list_of_files_is_read_again_if_the_archive_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = tmp_path / "modules.zip"
    write(archive, "rowtime_first")
    monkeypatch.syspath_prepend(str(archive))
    assert importlib.import_module("rowtime_first").NAME == "rowtime_first"
    settle()
    importlib.invalidate_caches()
    lists = zipimport._zip_directory_cache  # type: ignore[attr-defined]
    before = lists[str(archive)]
    importlib.invalidate_caches()
    assert lists[str(archive)] is before
    write(archive, "rowtime_first", "rowtime_second")
    importlib.invalidate_caches()
    assert importlib.import_module("rowtime_second").NAME == "rowtime_second"
    settle()
    archive.unlink()
    importlib.invalidate_caches()
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("rowtime_third")
