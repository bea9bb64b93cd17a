"""A stream in PostgreSQL read: commit to seen, an idle reader, and a bound to its result.

What reader_latency.py and bound_to_result.py measure of streams in folders, with the server on this machine. The
bound to its result is measured in the same run with streams in folders, taking turns.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import reader_latency
from bound_to_result import COLD, Lane, in_turns
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from harness import figure, folder, report, session
from tests.postgresserver import NO_SERVER, PostgresServer, programs


class Place(str):
    """A URL that makes paths as a folder does."""

    __slots__ = ()

    def __truediv__(self, name: str) -> "Place":
        return Place(f"{self}/{name}")


class DatabaseLane(Lane):
    """A lane whose streams are in a database, and its checkpoint in a folder."""

    def __init__(self, spark: SparkSession, root: Place, checkpoints: Path) -> None:
        super().__init__(spark, root, "bound", by_bound=True)  # type: ignore[arg-type]
        self._checkpoint = str(checkpoints / "database.checkpoint")

    @contextmanager
    def running(self) -> Iterator[StreamingQuery]:
        writer = self.frame.writeStream.format("rowtime").option("checkpointLocation", self._checkpoint)
        query = writer.start(self.out)
        try:
            yield query
        finally:
            query.stop()


def latency(server: PostgresServer) -> None:
    measured = [reader_latency.measure(server.url(f"latency/{turn}")) for turn in range(3)]  # type: ignore[arg-type]
    figure("PostgreSQL, commit to seen by a reader", [ms for _, run in measured for ms in run], "ms")
    figure("PostgreSQL, core of an idle reader", [100 * idle for idle, _ in measured], "%")


def bound_to_result(server: PostgresServer, rounds: int) -> None:
    spark = session()
    with folder() as root:
        ours, local = DatabaseLane(spark, Place(server.url("lanes")), root), Lane(spark, root, "bound", by_bound=True)
        in_turns([ours, local], rounds, COLD)
        report("PostgreSQL, bound to result", ours.took, local.took, "ms", "streams in folders")
        for lane in (ours, local):
            lane.close()
    spark.stop()


def main(rounds: int = 18) -> None:
    place = programs()
    if place is None:
        sys.exit(NO_SERVER)
    server = PostgresServer(place)
    try:
        latency(server)
        bound_to_result(server, rounds)
    finally:
        server.remove()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
