"""The page about missing output has each cause, and no other."""

import re
from pathlib import Path

import spark_rowtime as rt

PAGE = Path(__file__).resolve().parents[2] / "docs" / "howto" / "no-output.md"


def test_the_page_has_a_row_for_each_cause() -> None:
    rows = [
        line.split("|")[1] for line in PAGE.read_text().split("## Causes")[1].splitlines() if line.startswith("| `")
    ]
    assert sorted(code for row in rows for code in re.findall(r"`(\w+)`", row)) == sorted(rt.Cause)


def test_each_cause_is_made_by_a_test() -> None:
    folders = [PAGE.parents[2] / "tests" / name for name in ("diagnosis", "spark", "tables")]
    tests = [file for folder in folders for file in folder.glob("test_*.py")]
    text = "".join(file.read_text() for file in tests)
    assert [cause.name for cause in rt.Cause if f"Cause.{cause.name}" not in text and cause != "complete"] == []
