"""Law 7 with tables: two queries with a Delta table between them, random programs, by seed.

test_iceberg_law7.py has them over Iceberg tables.

Others rewrite files and append rows that know nothing of the bound; queries stop, and batches run again; limits cut
commits in parts. The results are those of the rows in batch, no bound is before its rows, and what a bound makes final
is out once the commit with the bound is read. A program that fails is printed, and made smaller. Others:
``ROWTIME_LAW7_SEEDS=0:50 scripts/on-spark.sh 4.2 .venv/bin/python -m pytest tests/lakehouse/test_law7.py``.
"""

import tempfile
from pathlib import Path
from typing import Any

import pytest

from tests.lakehouse.formats import DeltaTables
from tests.lakehouse.played import Life
from tests.lakehouse.programs import PROGRAMS, Program
from tests.law7.seeds import numbers, with_seed


@pytest.mark.long
@pytest.mark.parametrize("number", numbers("4:5"))
def test_bounds_never_change_a_result(spark: Any, tmp_path: Path, number: int) -> None:
    def play(program: Program) -> None:
        folder = Path(tempfile.mkdtemp(dir=tmp_path))
        Life(spark, program, DeltaTables(folder), folder).play()

    with_seed(PROGRAMS, number, play)
