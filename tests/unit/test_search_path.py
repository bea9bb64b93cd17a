"""Where adapters are looked for: in the current folder last, and beside a query's child not there at all."""

import os
import sys
from pathlib import Path

import pytest

import spark_rowtime as rt
from spark_rowtime.adapter.loading import load
from spark_rowtime.adapter.process import AdapterProcess
from spark_rowtime.adapter.search_path import add_current_folder, for_child, move_current_folder_back
from spark_rowtime.spark.hosted_adapter import ensure_stream
from tests.landed import landed


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, in which somebody has put a module that shadows one on the path, and another module."""
    right, here = tmp_path / "installed", tmp_path / "here"
    for folder, says in ((right, "right"), (here, "planted")):
        folder.mkdir()
        (folder / "shadowed_feed.py").write_text(FEED.format(says))
    (here / "only_here.py").write_text(FEED.format("here"))
    monkeypatch.chdir(here)
    monkeypatch.setattr(sys, "path", [str(here), *sys.path, str(right)])  # as with python -m
    monkeypatch.delenv("PYTHONPATH", raising=False)
    for name in ("shadowed_feed", "only_here"):
        sys.modules.pop(name, None)
    return here


FEED = """
class Feed:
    schema = "rowtime TIMESTAMP NOT NULL, says STRING"

    def run(self, sink):
        sink.sendRow(("2006-09-11T10:00:00Z", {0!r}))
"""


def hosted(spec: str, path: str) -> list[str]:
    """What the adapter sends in a process of its own, as beside a query."""
    rt.createStream(path, "rowtime TIMESTAMP NOT NULL, says STRING")
    process = AdapterProcess(spec, path)
    process._process.wait(240)
    try:
        process.check()
    finally:
        process.stop()
    return landed(path, "says")


@pytest.mark.long
def test_a_module_in_the_current_folder_shadows_none_beside_a_query(
    planted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROWTIME_ADAPTERS", "shadowed_feed:Feed, only_here:Feed")
    ensure_stream("shadowed_feed:Feed", str(tmp_path / "s"), {})
    assert Path(sys.modules["shadowed_feed"].__file__).parent == tmp_path / "installed"
    assert sys.path[-1] == str(planted)
    assert hosted("shadowed_feed:Feed", str(tmp_path / "t")) == ["right"]
    with pytest.raises(rt.RowtimeError, match="there is no module 'only_here'"):
        hosted("only_here:Feed", str(tmp_path / "u"))
    monkeypatch.setenv("PYTHONPATH", str(planted))
    assert hosted("only_here:Feed", str(tmp_path / "v")) == ["here"]
    monkeypatch.setenv("PYTHONPATH", ".")
    assert for_child() == os.pathsep.join(sys.path)


def test_a_current_folder_that_was_removed_is_none(planted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = planted / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    before = list(sys.path)
    add_current_folder()
    move_current_folder_back()
    assert sys.path == before
    assert for_child() == os.pathsep.join(filter(None, before))


def test_the_command_looks_into_the_current_folder_last(planted: Path, tmp_path: Path) -> None:
    sys.path.remove(str(planted))
    assert load("shadowed_feed:Feed").__module__ == "shadowed_feed"
    assert Path(sys.modules["shadowed_feed"].__file__).parent == tmp_path / "installed"
    assert load("only_here:Feed").__module__ == "only_here"
