"""Law 7 with corrections: which rows are late depends on the bounds, and the sums in the end do not.

``ROWTIME_LAW7_SEEDS=0:20 python -m pytest tests/law7/test_corrected.py`` tries others.
"""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.law7.corrected import corrected, corrected_cases, tried
from tests.law7.seeds import numbers, try_seed


@pytest.mark.long
@pytest.mark.parametrize("number", numbers("0:2"))
def test_corrections_lead_to_the_sums_of_all_rows(
    spark: Any, tmp_path: Path, figures: Counter[str], number: int
) -> None:
    try_seed(spark, corrected_cases(), 2 * number, tmp_path, figures, tried)  # odd seeds are of certain kinds


SUMS = Counter([("10:00", 1, 5), ("10:00", None, 6), ("10:10", 1, 7)])


def test_corrections_change_a_sum_or_add_one() -> None:
    changes = [Counter([("10:00", 1, 10), ("10:20", 2, 1)]), Counter([("10:00", 1, 100), ("10:00", None, -6)])]
    found = corrected(SUMS, changes)
    assert found == Counter([("10:00", 1, 115), ("10:00", None, 0), ("10:10", 1, 7), ("10:20", 2, 1)])


def test_a_sum_that_is_given_out_again_is_no_correction() -> None:
    with pytest.raises(AssertionError, match="given out again"):
        corrected(SUMS + Counter([("10:00", 1, 3)]), [])
