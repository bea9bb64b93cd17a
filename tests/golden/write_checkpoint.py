"""Writes the golden checkpoint of this version: python -m tests.golden.write_checkpoint. Committed once per release.

``tests/golden/checkpoint-<version>`` has a query's source, sink and checkpoint. The query was stopped with an open
window, after a batch that is in the sink but not in Spark's commit log. Every later version must go on from there.
"""

import shutil
import tempfile
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import spark_rowtime as rt
from tests.checkpoints import lose_last_commit
from tests.sparksession import make_session, running, start
from tests.streams import opened, send

HERE = Path(__file__).parent
FEED: dict[str, Any] = {"producer": "feed", "rowsImplyBounds": False, "lease": None}
ROWS = [("9:10", "a"), ("9:40", "b"), ("9:50", "a"), ("10:05", "a")]


def hourly(spark: SparkSession, folder: Path) -> DataFrame:
    """The query."""
    rows = spark.readStream.format("rowtime").load(str(folder / "source.rowtime"))
    counts = rows.groupBy(F.window("rowtime", "1 hour"), "k").agg(F.count("*").alias("n"))
    return counts.select(F.col("window.end").alias("rowtime"), "k", "n")


def write(folder: Path) -> None:
    """Leaves the three directories in ``folder``."""
    spark = make_session()
    source = str(folder / "source.rowtime")
    rt.createStream(source, "rowtime TIMESTAMP NOT NULL, k STRING")
    with suppress(ConnectionError), opened(source, **FEED) as feed:
        with running(start(hourly(spark, folder), folder / "hours.rowtime", folder / "checkpoint")) as query:
            for rows, promise in ((ROWS[:2], "9:45"), (ROWS[2:], "10:00")):
                send(feed, *rows, promise=promise)
                query.processAllAvailable()
        raise ConnectionError("the feed ends without leaving its stream")
    spark.stop()
    lose_last_commit(folder / "checkpoint")


def main() -> None:
    """Written elsewhere, so that a path of that place in it would be noticed."""
    target = HERE / f"checkpoint-{version('spark-rowtime')}"
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder))
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(folder, target)


if __name__ == "__main__":
    main()
