"""Spark's daemon forks the Python workers: each may open a sink and a reader of its own."""

from pathlib import Path
from typing import Any

import spark_rowtime as rt

DDL = "rowtime TIMESTAMP NOT NULL, name STRING"


def written(path: str, part: int) -> list[str]:
    """Writes ten rows of one task, and returns what the task then reads of its own."""
    with rt.openSink(path, producer=f"task{part}") as sink:
        for n in range(10):
            sink.sendRow((f"2026-01-05T14:30:{n:02d}Z", f"{part}-{n}"))
            sink.flush()
    with rt.openReader(path, order="arrival") as reader:
        names = [name for train in reader for name in train.rows.column("name").to_pylist()]
    return [name for name in names if name.startswith(f"{part}-")]


def test_tasks_of_workers_that_are_forked_write_and_read(spark: Any, tmp_path: Path) -> None:
    """While the driver has the stream open. The daemon forks two workers, and uses them again."""
    path = str(tmp_path / "s")
    rt.createStream(path, DDL, producers=["nobody"])
    with rt.openSink(path, producer="driver") as sink:
        sink.sendRow(("2026-01-05T14:30:00Z", "driver"))
        sink.flush()
        parts = spark.range(4, numPartitions=4)

        def work(frames: Any) -> Any:
            for frame in frames:
                for part in frame["id"]:
                    frame["names"] = ",".join(written(path, part))
                yield frame

        for _ in range(2):
            found = parts.mapInPandas(work, "id LONG, names STRING").collect()
    rows = {row.id: row.names.split(",") for row in found}
    assert rows == {part: [f"{part}-{n}" for n in range(10)] * 2 for part in range(4)}
    assert rt.describeStream(path).rows == 81
