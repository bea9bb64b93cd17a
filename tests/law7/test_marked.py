"""Law 7 with bounds=markers: the same results as a batch's, and so as those with the extension."""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.law7.seeds import numbers


@pytest.mark.long
def test_markers_never_change_a_result(tmp_path: Path, figures: Counter[str]) -> None:
    seeds = numbers("0:3")
    program = [sys.executable, "-m", "tests.law7.run_marked", str(tmp_path), str(seeds.start), str(seeds.stop)]
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": os.pathsep.join(sys.path)}
    ran = subprocess.run(program, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    found = Counter(json.loads((tmp_path / "figures.json").read_text()))
    assert found["Marked"] == found["cases"] == len(seeds)
    figures.update(found)
