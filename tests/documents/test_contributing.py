"""The map in CONTRIBUTING.md names files and classes that there are."""

import re

from tests.documents.blocks import ROOT

MAP = (ROOT / "CONTRIBUTING.md").read_text()


def test_every_file_on_the_map_is_there() -> None:
    named = set(re.findall(r"`([a-z_/-]+(?:\.py|/))`", MAP))
    assert len(named) > 30
    assert [name for name in named if not ((ROOT / name).exists() or (ROOT / "spark_rowtime" / name).exists())] == []


def test_every_package_is_on_the_map() -> None:
    packages = [folder for top in ("spark_rowtime", "tests") for folder in (ROOT / top).glob("*/__init__.py")]
    assert len(packages) > 25
    missing = {str(file.parent.relative_to(ROOT)) for file in packages} - set(re.findall(r"`([a-z_/0-9]+?)/?`", MAP))
    assert missing == set()


def test_every_java_class_on_the_map_is_there() -> None:
    named = set(re.findall(r"`([A-Z][a-z]\w+[A-Z]\w+)`", MAP)) - {"RowSink", "AssetTarget"}
    assert len(named) > 5
    assert named <= {path.stem for path in (ROOT / "java-shim").rglob("*.java")}
