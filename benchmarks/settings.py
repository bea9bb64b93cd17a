"""What settings gain: a bound to its result with all that ``rt.configure`` makes, without each, and with others.

And what a query costs that has no news.
The query of bound_to_result.py, one at a time, taking turns.
"""

import statistics
import sys
import time
from pathlib import Path

from bound_to_result import WARM, Lane, in_turns
from pyspark.sql import SparkSession
from source_throughput import CpuMeter

from harness import figure, folder, report, session
from spark_rowtime.spark.settings import FILES, PARTITIONS

STATE = "org.apache.spark.sql.execution.streaming.state"
WITHOUT = {"checkpoint files": (FILES, None)}
LEFT_ALONE = {
    "no file checksums": ("spark.sql.streaming.checkpoint.fileChecksum.enabled", "false"),
    "RocksDB": ("spark.sql.streaming.stateStore.providerClass", f"{STATE}.RocksDBStateStoreProvider"),
    "one partition": (PARTITIONS, "1"),
    "polling each millisecond": ("spark.sql.streaming.pollingDelay", "1ms"),
    "rows written by Python": ("spark.rowtime.nativeWrite", "false"),
}
SECONDS = 6


def lane(spark: SparkSession, root: Path, name: str, key: str, value: str | None) -> Lane:
    """With one setting more, or one less."""
    other = spark.newSession()
    if value is None:
        other.conf.unset(key)
    else:
        other.conf.set(key, value)
    return Lane(other, root, name.replace(" ", "-"), by_bound=True)


def idle(lane: Lane, meter: CpuMeter) -> list[float]:
    """The share of a core that everything takes while the query has no news, less what it takes without a query."""
    with lane.running() as query:
        for _ in range(WARM):
            lane.round(query)
        busy = [cores(meter) for _ in range(SECONDS)]
    quiet = statistics.median(cores(meter) for _ in range(SECONDS))
    return [share - quiet for share in busy]


def cores(meter: CpuMeter) -> float:
    """Over one second."""
    cpu, start = meter.sample(), time.perf_counter()
    time.sleep(1)
    return (meter.sample() - cpu) / (time.perf_counter() - start)


def main(rounds: int = 18) -> None:
    spark = session()
    with folder() as root:
        ours = Lane(spark, root, "all", by_bound=True)
        lanes = {name: lane(spark, root, name, *one) for name, one in {**WITHOUT, **LEFT_ALONE}.items()}
        in_turns([ours, *lanes.values()], rounds, rounds)
        lanes["partitions"] = lane(spark, root, "partitions", PARTITIONS, None)
        lanes["partitions"].turn(1)
        figure("core of an idle query", idle(ours, CpuMeter()), "cores")
        for name, other in lanes.items():
            base = f"with {name}" if name in LEFT_ALONE else f"without {name}"
            report("settings of rt.configure", ours.took, other.took, "ms", base)
        for each in (ours, *lanes.values()):
            each.close()
    spark.stop()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
