"""Law 7 with an Iceberg table between two queries: the programs of test_law7.py."""

import tempfile
from pathlib import Path
from typing import Any

import pytest

from tests.lakehouse.iceberg_tables import new_tables
from tests.lakehouse.played import Life
from tests.lakehouse.programs import PROGRAMS, Program
from tests.law7.seeds import numbers, with_seed


@pytest.mark.long
@pytest.mark.usefixtures("iceberg")
@pytest.mark.parametrize("number", numbers("4:5"))
def test_bounds_never_change_a_result(spark: Any, tmp_path: Path, number: int) -> None:
    def play(program: Program) -> None:
        folder = Path(tempfile.mkdtemp(dir=tmp_path))
        Life(spark, program, new_tables(), folder).play()

    with_seed(PROGRAMS, number, play)
