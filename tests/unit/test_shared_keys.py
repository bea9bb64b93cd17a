"""The names that Python and Java share are those that java-shim/README.md lists.

Neither side can rename, add or remove one alone: a name must stand in the files that its row gives, and
each name of this kind in either source must have a row.
"""

import ast
import re
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
PYTHON, JAVA = ROOT / "spark_rowtime", ROOT / "java-shim" / "src" / "main" / "java"
HEADING = "## Keys that Python and Java share"
OURS = ("rowtime.", "spark.rowtime.")
"""How the local properties, the metadata and the settings of this library begin."""
DRAIN = "drain"
"""The folder of the Python files that write tables, whose properties also begin so. Java reads two of them."""
LETTERS = "dead_letters.py"
"""The file whose headers of Kafka's messages begin so."""
FILES = "rowtime-"
"""How its files in the checkpoint begin, which only Java writes. Python has other files that begin so."""
JSON_CLASSES = ("OffsetJson", "Planner", "Questions", "NativePlan")
"""The classes that read and write JSON of the Python side: each plain word in them is a key."""


class Row(NamedTuple):
    """One row of the tables: a key, and the Python files and Java classes that have it."""

    key: str
    files: list[str]
    classes: list[str]


def _rows() -> list[Row]:
    section = (ROOT / "java-shim" / "README.md").read_text().split(HEADING)[1].split("\n## ")[0]
    lines = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("| `")]
    return [_row(cells) for cells in lines]


def _row(cells: list[str]) -> Row:
    [key] = re.findall(r"`([^`]+)`", cells[0])
    named = re.findall(r"`([^`]+)`", cells[1] + cells[2])
    return Row(key, [n for n in named if n.endswith(".py")], [n for n in named if not n.endswith(".py")])


ROWS = _rows()
KEYS = {row.key for row in ROWS}
CLASSES = {path.stem: path for path in JAVA.rglob("*.java")}


def _python_strings(file: Path) -> set[str]:
    """The string literals of a file, and the names of fields and of arguments by name, which are keys of JSON."""
    nodes = list(ast.walk(ast.parse(file.read_text())))
    strings = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    fields = {node.target.id for node in nodes if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)}
    arguments = {argument.arg for node in nodes if isinstance(node, ast.arguments) for argument in node.kwonlyargs}
    return strings | fields | arguments


def _java_strings(file: Path) -> set[str]:
    """The string literals of a class. A comment with one quote in a line does not disturb the others."""
    code = re.sub(r"/\*.*?\*/", "", file.read_text(), flags=re.DOTALL)
    return {text for line in code.splitlines() for text in re.findall(r'"((?:[^"\\]|\\.)*)"', line)}


def _is_call(key: str) -> bool:
    return key.startswith("spark_rowtime.")


def test_the_tables_are_found() -> None:
    assert len(ROWS) > 30
    assert len(KEYS) == len(ROWS), "a key has two rows"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.key)
def test_a_listed_key_is_in_the_files_of_its_row(row: Row) -> None:
    assert row.files or row.classes
    wanted = set(row.key.rsplit(".", 1)) if _is_call(row.key) else {row.key}
    assert [name for name in row.classes if not wanted <= _java_strings(CLASSES[name])] == []
    if not _is_call(row.key):
        assert [name for name in row.files if row.key not in _python_strings(PYTHON / name)] == []


@pytest.mark.parametrize("key", [row.key for row in ROWS if _is_call(row.key)])
def test_a_pickled_call_finds_its_function(key: str) -> None:
    module, function = key.rsplit(".", 1)
    assert callable(getattr(import_module(module), function))


def test_the_class_of_the_extension_is_there() -> None:
    [name] = [key for key in KEYS if key.startswith("sparkrowtime.")]
    assert JAVA.joinpath(*name.split(".")).with_suffix(".java").is_file()


def test_every_name_of_ours_in_python_is_listed() -> None:
    files = [file for file in PYTHON.rglob("*.py") if DRAIN not in file.parts and file.name != LETTERS]
    found = {s for file in files for s in _python_strings(file) if s.startswith(OURS)}
    assert found <= KEYS
    assert "rowtime.follows" in found


def test_every_name_of_ours_in_java_is_listed() -> None:
    found = {s for file in CLASSES.values() for s in _java_strings(file) if s.startswith((*OURS, FILES))}
    assert found <= KEYS
    assert "rowtime.follows" in found


def test_every_key_of_json_in_java_is_listed() -> None:
    found = {s for name in JSON_CLASSES for s in _java_strings(CLASSES[name]) if re.fullmatch(r"[a-z]\w+", s)}
    assert found <= KEYS
    assert "floor" in found


def test_every_pickled_call_in_java_is_listed() -> None:
    modules = {s for file in CLASSES.values() for s in _java_strings(file) if _is_call(s)}
    assert modules == {key.rsplit(".", 1)[0] for key in KEYS if _is_call(key)}
