"""A package adds a target of announcements and a format of drains by entry points; no list of this project has them."""

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

import spark_rowtime as rt
from spark_rowtime.cli import main

MODULE = """
from pathlib import Path

import spark_rowtime as rt


class Bell:
    merges = False

    def __init__(self, url, asset, *, headers, timeout):
        self._file, self._asset = Path(url), asset

    @staticmethod
    def default_key(unit):
        return "%Y-%m-%d %H"

    def announce(self, period, call):
        with self._file.open("a") as lines:
            lines.write(f"{self._asset} {period.key}\\n")


class Lines:
    @staticmethod
    def open_sink(target, schema, every, max_rows, bounds_every):
        return rt.openTableSink(target.replace("lines:", "parquet:"), schema)

    @staticmethod
    def read_bound(target):
        return rt.RowtimeBound("2026-01-05T15:00:00Z")
"""
AT = "2026-01-05T14:30:00Z"
Installed = Callable[..., None]


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Installed:
    """``installed(name, group, entry)``: a package of that name with an entry point."""
    (tmp_path / "plugged.py").write_text(MODULE)

    def install(name: str, group: str, entry: str) -> None:
        folder = tmp_path / f"{name}-1.0.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (folder / "entry_points.txt").write_text(f"[{group}]\n{entry}\n")
        monkeypatch.syspath_prepend(tmp_path)

    return install


@pytest.fixture
def stream(tmp_path: Path) -> str:
    """A row at 14:30, and the end."""
    path = str(tmp_path / "orders.rowtime")
    rt.createStream(path, "rowtime TIMESTAMP NOT NULL, n INT")
    with rt.openSink(path) as sink:
        sink.sendRow((AT, 1))
        sink.close(complete=True)
    return path


def test_a_target_of_announcements_is_found_by_its_entry_point(
    installed: Installed, stream: str, tmp_path: Path
) -> None:
    with pytest.raises(rt.InvalidOptionError, match=r"to='bell':\.\.\. is no target"):
        rt.announceTo(stream, f"bell:{tmp_path}/rung", every="1 hour", asset="big")
    installed("bells", "spark_rowtime.announce", "bell = plugged:Bell")
    assert rt.announceTo(stream, f"bell:{tmp_path}/rung", every="1 hour", asset="big") == 1
    assert (tmp_path / "rung").read_text() == "big 2026-01-05 14\n"
    with pytest.raises(rt.InvalidOptionError, match="success-file:PATTERN, http:URL, airflow:URL, bell:URL, dagster"):
        rt.announceTo(stream, "belt:x", every="1 hour")
    with pytest.raises(rt.InvalidOptionError, match="body is an option for http, not for bell"):
        rt.announceTo(stream, "bell:x", every="1 hour", body="{}")


def test_a_format_of_drains_is_found_by_its_entry_point(installed: Installed, stream: str, tmp_path: Path) -> None:
    target = f"lines:{tmp_path}/out/%Y-%m-%d"
    assert "is no target of a drain" in CliRunner().invoke(main, ["drain", stream, target]).output
    installed("lines", "spark_rowtime.drain", "lines = plugged:Lines")
    done = CliRunner().invoke(main, ["drain", stream, target])
    assert done.exit_code == 0, done.output
    assert rt.readTableBound(f"parquet:{tmp_path}/out") is not None
    assert rt.readTableBound(target) == rt.RowtimeBound("2026-01-05T15:00:00Z")
    assert f"Did you mean {target}?" in " ".join(
        CliRunner().invoke(main, ["drain", stream, target.replace("lines", "LINES")]).output.split()
    )


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        (
            "delta = plugged:Lines",
            "'delta' is several things, .*: plugged:Lines, spark_rowtime",
        ),
        ("other = plugged:Absent", "plugged:Absent .* cannot be imported: .*Install the package again"),
        ("other = absent:Lines", "absent:Lines .* cannot be imported: No module named 'absent'"),
    ],
)
def test_an_entry_point_that_cannot_be_used_says_so(installed: Installed, entry: str, why: str) -> None:
    installed("others", "spark_rowtime.drain", entry)
    with pytest.raises(rt.InvalidOptionError, match=why):
        rt.readTableBound(f"{entry.partition(' ')[0]}:x")
