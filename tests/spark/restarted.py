"""Queries that go on with other options in a session without the extension."""

from contextlib import suppress
from pathlib import Path

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

import spark_rowtime as rt
from tests.streams import at, drained, opened, send

OPTIONS = {
    "nothing": {},
    "hold": {"hold": "90 minutes"},
    "start": {"startingPosition": at("10:05")},
    "start before": {"startingPosition": at("9:30")},
}
CHANGED = [f"{name} of {order}" for name in OPTIONS for order in ("arrival", "rowtime")]
"""The options that the second run has in addition, and the order of both."""


def restarted(spark: SparkSession, folder: Path) -> dict[str, tuple[str, list[int]]]:
    """Returns, for each change of options, the error of the second run, and all that was written in the end.

    If the second run was refused, it runs again as the error says: with the first options.
    """
    return {name: _restarted(_Query(spark, folder / name)) for name in CHANGED}


def begun_at_latest(spark: SparkSession, path: str, checkpoint: str, **options: str) -> list[int]:
    """What a query reads whose first batch has failed, and which ran again when more had come."""
    rt.createStream(path, "rowtime TIMESTAMP NOT NULL, x INT")
    sent, found = list[int](), list[int]()

    def take(batch: DataFrame, number: int) -> None:
        if sent == [1]:
            raise OSError("the sink is down")
        found.extend(row.x for row in batch.collect())

    read = spark.readStream.format("rowtime").options(startingPosition="latest", **options).load(path)
    writer = read.writeStream.foreachBatch(take).option("checkpointLocation", checkpoint)
    with opened(path, "feed") as sink:
        for x in (1, 2, 3):
            sent.append(x)
            send(sink, (f"{9 + x}:00", x), promise=f"{9 + x}:30")
            with suppress(StreamingQueryException):
                writer.trigger(availableNow=True).start().awaitTermination()
    return found


class _Query:
    """A query that has read up to 10:00, of a stream that has now reached 11:00."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark, self._folder = spark, folder
        self._more, _, self._order = folder.name.partition(" of ")
        rt.createStream(f"{folder}/s", "rowtime TIMESTAMP NOT NULL, x INT")
        with opened(f"{folder}/s", "feed", lateness="2 hours") as sink:
            send(sink, ("9:10", 1), ("9:40", 2), ("10:30", 3), promise="10:00")
            self.run()
            send(sink, ("10:02", 4), ("10:40", 5), promise="11:00")

    def run(self, more: bool = False) -> None:
        options = {"bounds": "ignore", "order": self._order, **(OPTIONS[self._more] if more else {})}
        read = self._spark.readStream.format("rowtime").options(**options)
        writer = read.load(f"{self._folder}/s").writeStream.format("rowtime").trigger(availableNow=True)
        writer.option("checkpointLocation", f"{self._folder}/c").start(f"{self._folder}/out").awaitTermination()

    def forget_batch(self) -> None:
        """Removes the offsets of the batch that has not run."""
        names = (file.name for file in self._folder.glob("c/offsets/[0-9]*"))
        if not (self._folder / "c/commits" / (newest := max(names, key=int))).exists():
            for name in (newest, f".{newest}.crc"):
                (self._folder / "c/offsets" / name).unlink()

    def written(self) -> list[int]:
        return sorted(row[1] for row in drained(rt.openReader(f"{self._folder}/out", order="arrival")))


def _restarted(query: _Query) -> tuple[str, list[int]]:
    error = ""
    try:
        query.run(more=True)
    except StreamingQueryException as failed:
        error = str(failed)
        query.forget_batch()
    query.run()
    return error, query.written()
