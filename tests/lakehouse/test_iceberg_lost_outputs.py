"""A query into an Iceberg table, whose table or whose checkpoint is not the one that it had."""

import os
import shutil
from contextlib import suppress
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import functions as f

from tests.lakehouse.iceberg import IcebergOrders
from tests.lakehouse.test_writers import refused
from tests.sparksession import running

pytestmark = pytest.mark.night


def silver(iceberg: IcebergOrders, frame: Any = None) -> Any:
    writer = (iceberg.rows() if frame is None else frame).writeStream.option("rowtimeBound", "ts")
    return iceberg.tables.write(writer.option("checkpointLocation", str(iceberg.folder / "checkpoint")), "silver")


def run(iceberg: IcebergOrders, *clocks: str) -> None:
    """A batch for each clock, with a row at it and the bound there."""
    with running(silver(iceberg)) as query:
        for clock in clocks:
            iceberg.put((clock, "a"), bound=clock)
            query.processAllAvailable()


def made(iceberg: IcebergOrders) -> int:
    """Makes the output; returns its first snapshot."""
    iceberg.tables.make(iceberg.spark, "silver", "ts TIMESTAMP, k STRING")
    iceberg.tables.append("silver", iceberg.tables.rows("silver"), {})
    return int(iceberg.tables.loaded("silver").current_snapshot().snapshot_id)


def test_a_table_that_is_rolled_back_while_a_batch_is_written(iceberg: IcebergOrders) -> None:
    """The batch is there then, and the next one finds it, of this run or of a later one."""
    first, name = made(iceberg), f"{iceberg.space}.silver"
    settings = {key: value for key, value in os.environ.items() if key.startswith("PYICEBERG")}

    def back(k: str) -> str:
        if k == "back":
            os.environ.update(settings)
            from pyiceberg.catalog import load_catalog

            load_catalog("lake").load_table(name).manage_snapshots().rollback_to_snapshot(first).commit()
        return k

    frame = iceberg.rows().select("ts", f.udf(lambda k: back(k), "string")("k").alias("k"))  # noqa: PLW0108
    with running(silver(iceberg, frame)) as query:
        for clock, k in (("10:05", "a"), ("10:10", "a"), ("10:20", "back")):
            iceberg.put((clock, k), bound=clock)
            with suppress(StreamingQueryException):  # Spark may run another batch at once
                query.processAllAvailable()
        iceberg.put(("10:30", "a"), bound="10:30")
        refused(query, "DataLostError", "was set back")
    refused(silver(iceberg), "DataLostError", "was set back")


def test_a_checkpoint_that_is_behind_its_table(iceberg: IcebergOrders) -> None:
    made(iceberg)
    checkpoint, copy = iceberg.folder / "checkpoint", iceberg.folder / "copy"
    run(iceberg, "10:10")
    shutil.copytree(checkpoint, copy)
    run(iceberg, "10:20")
    shutil.rmtree(checkpoint)
    shutil.copytree(copy, checkpoint)
    iceberg.put(("10:40", "a"), bound="10:40")
    refused(silver(iceberg), "ProducerFencedError", "is behind")
