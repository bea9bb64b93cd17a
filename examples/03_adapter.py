"""A feed as an adapter class with a checkpoint, hosted in three ways.

examples/meter_feed.py has the class. It is hosted in this process, by the command `rowtime run`, and
beside a Spark query. In the first hosting the feed breaks off in the middle; it is started again and
resumes from its checkpoint. All three streams end with the same rows.

It prints:

    in this process: broke off with 2 rows visible
    in this process: 6 rows, 6.0 kWh, bound 11:00
    by rowtime run: 6 rows, 6.0 kWh, bound 11:00
    beside a Spark query: 6 rows, 6.0 kWh, bound 11:00
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from meter_feed import MeterFeed, Reading
from pyspark.sql import SparkSession

import spark_rowtime as rt

HERE = str(Path(__file__).parent)


class BrokenLine(MeterFeed):
    """The same feed over a line that breaks after three readings."""

    def readings(self, start: int) -> Iterator[tuple[int, Reading]]:
        for number, reading in super().readings(start):
            if number > 3:
                raise ConnectionError("the line broke")
            yield number, reading


def report(hosting: str, path: str) -> None:
    rows = [row for train in rt.openReader(path) for row in train.rows.to_pylist()]
    bound = rt.describeStream(path).bound
    print(f"{hosting}: {len(rows)} rows, {sum(row['kwh'] for row in rows)} kWh, bound {bound.time:%H:%M}")


def in_this_process(path: str) -> None:
    """The caller opens the sink. A name makes the producer the same one after a restart."""
    rt.createStream(path, MeterFeed.schema)
    try:
        with rt.openSink(path, producer="meters") as sink:
            BrokenLine().run(sink)
    except ConnectionError:
        print(f"in this process: broke off with {rt.describeStream(path).rows} rows visible")
    with rt.openSink(path, producer="meters") as sink:
        MeterFeed().run(sink)


def by_rowtime_run(path: str) -> None:
    """On a shell, in the folder of meter_feed.py: `rowtime run --create meter_feed:MeterFeed readings.rowtime`."""
    command = [sys.executable, "-m", "spark_rowtime.cli", "run", "--create", "meter_feed:MeterFeed", path]
    subprocess.run(command, cwd=HERE, check=True)


def beside_a_query(path: str, folder: Path) -> None:
    """The query starts the adapter in a process of its own and stops it when the query stops.

    An option can come from SQL, so the session says first which adapters its queries may host.
    """
    os.environ["PYTHONPATH"] = os.pathsep.join([HERE, *filter(None, sys.path)])  # Spark's Python processes import it
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", False)
    spark = rt.configure(builder.config("spark.rowtime.adapters", "meter_feed:MeterFeed")).getOrCreate()
    readings = spark.readStream.format("rowtime").option("adapter", "meter_feed:MeterFeed").load(path)
    query = (
        readings.writeStream.format("rowtime")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .start(str(folder / "copy.rowtime"))
    )
    with rt.openReader(path, follow=True) as reader:  # until the feed has promised the whole hour
        while reader.getRowtimeBound() is None or reader.getRowtimeBound() < rt.RowtimeBound("2006-09-11T11:00:00Z"):
            assert reader.read(timeout=240) is not None, "the feed sends nothing"
    query.processAllAvailable()
    query.stop()
    spark.stop()


def main() -> None:
    folder = Path(tempfile.mkdtemp(prefix="rowtime-"))
    own, run, hosted = (str(folder / f"{name}.rowtime") for name in ("own", "run", "hosted"))
    in_this_process(own)
    report("in this process", own)
    by_rowtime_run(run)
    report("by rowtime run", run)
    beside_a_query(hosted, folder)
    report("beside a Spark query", hosted)


if __name__ == "__main__":
    main()
