"""The functions of docs/howto/corrections.md: late rows change the table once, whatever dies, and nothing else."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import spark_rowtime as rt
from tests.checkpoints import lose_last_commit
from tests.documents.blocks import ROOT, blocks
from tests.streams import at, opened, send

pytestmark = [pytest.mark.long, pytest.mark.each]


COLUMNS = "product STRING, units INT"


class Shop:
    """A stream, the table of its hours, and the functions of the page."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.folder, self.page = spark, folder, dict[str, Any]()
        exec(blocks(ROOT / "docs" / "howto" / "corrections.md")[0].code, self.page)
        self.page["TABLE"] = self.table = str(folder / "hourly")
        self.stream = str(folder / "shop.rowtime")

    def run(self, rows: DataFrame, function: Callable[[DataFrame, int], None], name: str) -> None:
        writer = rows.writeStream.foreachBatch(function).option("checkpointLocation", str(self.folder / name))
        writer.trigger(availableNow=True).start().awaitTermination()

    def write(self) -> None:
        orders = self.spark.readStream.format("rowtime").load(self.stream)
        hours = self.page["hourly"](orders, F.lit(None).cast("timestamp"))
        self.run(hours, rt.tableWriter(f"delta:{self.table}", "hour"), "hours")

    def correct(self, function: Callable[[DataFrame, int], None] | None = None) -> None:
        late = self.spark.readStream.format("rowtime").option("view", "rejected").load(self.stream)
        self.run(late, function or self.page["correct"], "corrections")

    @property
    def rows(self) -> list[tuple[Any, ...]]:
        """Hour, product, units, and whether that was changed."""
        rows = DeltaTable(self.table).to_pyarrow_table().to_pylist()
        found = [(row["hour"].hour, row["product"], row["units"], row["corrected_at"] is not None) for row in rows]
        return sorted(found, key=str)


@pytest.fixture
def shop(spark: SparkSession, tmp_path: Path) -> Shop:
    made = Shop(spark, tmp_path)
    rt.createStream(made.stream, f"rowtime TIMESTAMP NOT NULL, {COLUMNS}")
    return made


def test_a_correction_comes_once_whatever_dies(shop: Shop) -> None:
    with opened(shop.stream, onLate="reject") as sink:
        send(sink, ("9:10", "A", 1), ("9:50", None, 2), ("10:20", "B", 3), promise="11:00")
        shop.write()
        assert shop.rows == (first := [(10, "B", 3, False), (9, "A", 1, False), (9, None, 2, False)])
        send(sink, ("9:30", "A", 10), ("9:40", None, 20), ("10:30", "A", 40))

        def killed_before(late: DataFrame, batch: int) -> None:
            raise RuntimeError(f"before batch {batch} of {late.count()} rows")

        with pytest.raises(StreamingQueryException):
            shop.correct(killed_before)
        assert shop.rows == first
        shop.correct()
        corrected = [(10, "A", 40, True), (10, "B", 3, False), (9, "A", 11, True), (9, None, 22, True)]
        assert shop.rows == corrected
        versions = DeltaTable(shop.table).version()
        lose_last_commit(shop.folder / "corrections")
        shop.correct()
        assert (shop.rows, DeltaTable(shop.table).version()) == (corrected, versions), "the batch was run again"
        send(sink, ("11:10", "A", 5), ("9:00", "A", 100), promise="12:00")
        shop.write()
        shop.correct()
        assert shop.rows == sorted([(11, "A", 5, False), *corrected[:2], (9, "A", 111, True), corrected[3]], key=str)
        assert rt.readTableBound(f"delta:{shop.table}") == rt.RowtimeBound(at("11:00"), strict=True)


def test_a_correction_of_an_open_hour_waits_for_the_table(shop: Shop) -> None:
    """The row is late for its producer; the other one has the hour open."""
    with opened(shop.stream, "Berlin", onLate="reject") as berlin, opened(shop.stream, "Oslo") as oslo:
        send(oslo, ("9:05", "A", 1))
        send(berlin, ("9:20", "A", 2), promise="10:00")
        send(berlin, ("9:10", "A", 4))
        shop.write()
        waited = []

        def meanwhile(seconds: float) -> None:
            waited.append(seconds)
            send(oslo, promise="10:00")
            shop.write()

        shop.page["time"] = SimpleNamespace(sleep=meanwhile)
        shop.correct()
        assert (shop.rows, waited) == ([(9, "A", 7, True)], [1])
