"""docs/guarantees.md and docs/semantics.md name tests that there are."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TESTS = {path: path.read_text() for path in (ROOT / "tests").rglob("*.py")}


@pytest.mark.parametrize("page", ["guarantees.md", "semantics.md"])
def test_every_test_that_is_named_is_there(page: str) -> None:
    text = (ROOT / "docs" / page).read_text()
    files = {str(path.relative_to(ROOT)) for path in TESTS} | {path.name for path in TESTS}
    named = set(re.findall(r"[\w/]*\btest_\w+\.py", text))
    assert named
    assert named <= files
    defined = set(re.findall(r"^def (test_\w+)\(", "\n".join(TESTS.values()), re.MULTILINE))
    tests = set(re.findall(r"`(test_\w+)`", text))
    assert tests <= defined
