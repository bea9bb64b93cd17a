"""Random lives of an Iceberg table and a query over it, by the oracle of those of a Delta table."""

from pathlib import Path
from typing import Any

import pytest

from tests.lakehouse.iceberg import IcebergOrders
from tests.lakehouse.test_oracle import Life, lived


class IcebergLife(Life):
    """A stream reads the snapshots that append. A snapshot of a compaction has no place in its offsets."""

    def optimize(self) -> None:
        self.orders.call("rewrite_data_files", "options => map('min-input-files', '2')")

    def floors(self, offset: dict[str, Any]) -> int | None:
        """The newest bound of the snapshots of which an offset has passed all files."""
        at = self.numbers.index(offset["snapshot_id"])
        passed = at + (offset["position"] >= len(self.log[at][0]))
        bounds = [bound for _, bound in self.log[:passed] if bound is not None]
        return bounds[-1] if bounds else None


@pytest.mark.long
def test_each_batch_has_the_floor_of_the_oracle(spark: Any, iceberg: IcebergOrders, tmp_path: Path) -> None:
    lived(lambda folder, files: IcebergLife(type(iceberg)(spark, folder), folder, files), tmp_path)
