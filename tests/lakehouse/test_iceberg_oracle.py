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
        return self.newest(at + (offset["position"] >= len(self.log[at][0])))


@pytest.mark.long
@pytest.mark.usefixtures("iceberg")
def test_each_batch_has_the_floor_of_the_oracle(spark: Any, tmp_path: Path) -> None:
    lived(lambda folder, files: IcebergLife(IcebergOrders(spark, folder), folder, files), tmp_path)
