"""The tests on the page about testing pass as they stand."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.documents.blocks import ROOT, blocks

PAGE = ROOT / "docs" / "howto" / "testing.md"


@pytest.mark.long
def test_the_tests_of_the_page(rowtime_test: Any, tmp_path: Path) -> None:
    """The pipeline's with the session of all tests; the suites in a module that their processes can import."""
    pipeline, *suites_of = [block.code for block in blocks(PAGE)]
    (tmp_path / "test_own.py").write_text("\n".join(suites_of))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_own.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=560, check=False)
    assert "6 passed" in done.stdout, done.stdout
    names: dict[str, Any] = {}
    exec(pipeline, names)
    names["test_an_hour_is_complete_with_its_bound"](rowtime_test)
