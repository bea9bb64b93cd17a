"""The tables of CONTRIBUTING.md and java-shim/README.md name files and classes that there are, each once a cell."""

import re

import pytest

from tests.documents.blocks import ROOT

MAP = (ROOT / "CONTRIBUTING.md").read_text()
SHIM = (ROOT / "java-shim" / "README.md").read_text()
FILE = re.compile(r"`([\w./-]+\.(?:py|java|sql|md|als|sh))`")


def test_every_file_on_the_map_is_there() -> None:
    named = set(re.findall(r"`([a-z_/-]+(?:\.py|/))`", MAP))
    assert len(named) > 30
    assert [name for name in named if not ((ROOT / name).exists() or (ROOT / "spark_rowtime" / name).exists())] == []


@pytest.mark.parametrize("page", [MAP, SHIM], ids=["CONTRIBUTING.md", "java-shim/README.md"])
def test_a_table_names_each_file_once_a_cell_and_it_is_there(page: str) -> None:
    cells = [FILE.findall(cell) for line in page.splitlines() if line.startswith("|") for cell in line.split("|")]
    assert sum(map(len, cells)) > 30
    assert [cell for cell in cells if len(cell) > len(set(cell))] == []
    roots = [ROOT / folder for folder in (".", "spark_rowtime", "java-shim")]
    assert [name for cell in cells for name in cell if not any((root / name).exists() for root in roots)] == []


def test_every_package_is_on_the_map() -> None:
    packages = [folder for top in ("spark_rowtime", "tests") for folder in (ROOT / top).glob("*/__init__.py")]
    assert len(packages) > 25
    missing = {str(file.parent.relative_to(ROOT)) for file in packages} - set(re.findall(r"`([a-z_/0-9]+?)/?`", MAP))
    assert missing == set()


def test_every_java_class_on_the_map_is_there() -> None:
    named = set(re.findall(r"`([A-Z][a-z]\w+[A-Z]\w+)`", MAP)) - {"RowSink", "AssetTarget"}
    assert len(named) > 5
    assert named <= {path.stem for path in (ROOT / "java-shim").rglob("*.java")}
