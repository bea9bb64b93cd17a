"""Observes a query batch by batch: its rows, the watermark in its offset log, and its promises."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Self

from pyspark.sql import DataFrame

from tests.checkpoints import lose_commit
from tests.streams import at, clock_of


def clock(value: Any) -> Any:
    """A time as ``clock_of`` writes it, a window as (start, end), and any other value unchanged."""
    if isinstance(value, datetime):
        return clock_of(value)
    return tuple(clock(part) for part in value) if isinstance(value, tuple) else value


def micros(text: str) -> int:
    """The microseconds since 1970 of a time as ``clock_of`` writes it."""
    return (datetime.fromisoformat(at(text)) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def clock_of_micros(value: int) -> str:
    """The reverse of ``micros``."""
    return clock_of(datetime(1970, 1, 1) + timedelta(microseconds=value))


def put_row(file: Path, clock: str, key: str) -> None:
    """A file of one row for a query that reads its folder: it is there as a whole, or not at all."""
    new = file.with_name(f".{file.name}.tmp")
    new.write_text(f'{{"rowtime": "{at(clock)}", "k": "{key}"}}\n')
    new.rename(file)


class Observed:
    """Runs a frame into foreachBatch. It can be started and stopped repeatedly; each start uses the checkpoint."""

    def __init__(self, frame: DataFrame, folder: Path, mode: str = "append") -> None:
        self.frame, self.mode, self.checkpoint = frame, mode, folder / "checkpoint"
        self.batches: dict[int, list[tuple[Any, ...]]] = {}
        self.promises: dict[int, dict[str, str]] = {}
        self._told = set[int]()

    def __call__(self, frame: DataFrame, batch: int) -> None:
        self.batches[batch] = sorted((clock(tuple(row)) for row in frame.collect()), key=str)
        said = frame.sparkSession.sparkContext.getLocalProperty("rowtime.outputBounds")
        self.promises[batch] = {name: clock_of_micros(floor) for name, floor in json.loads(said or "{}").items()}

    def __enter__(self) -> Self:
        writer = self.frame.writeStream.foreachBatch(self).outputMode(self.mode)
        self.query = writer.option("checkpointLocation", str(self.checkpoint)).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.query.stop()

    def step(self) -> list[tuple[Any, ...]]:
        """Waits until all available data is processed; returns the rows of the batches that no step has returned."""
        self.query.processAllAvailable()
        new = sorted(self.batches.keys() - self._told)
        self._told.update(new)
        return [row for batch in new for row in self.batches[batch]]

    @property
    def promised(self) -> dict[str, str]:
        """The promises of the last batch, by output column."""
        return self.promises[max(self.promises)]

    @property
    def last(self) -> int:
        """The number of the last batch in the offset log."""
        return max(int(file.name) for file in (self.checkpoint / "offsets").iterdir() if file.name.isdigit())

    @property
    def watermark(self) -> str:
        """The watermark of the last batch, as the offset log has it."""
        metadata = (self.checkpoint / "offsets" / str(self.last)).read_text().splitlines()[1]
        return clock_of_micros(json.loads(metadata)["batchWatermarkMs"] * 1000)

    def lose_commit(self) -> int:
        """Creates the state after a crash: the last batch is only in the offset log. Returns its number."""
        batch = self.last
        lose_commit(self.checkpoint, batch)
        self.batches.pop(batch, None)
        self._told.discard(batch)
        return batch


class Repeated(Observed):
    """A query whose batches may run again. Law: a batch has the same rows and the same promises each time."""

    def __init__(self, frame: DataFrame, folder: Path, mode: str = "append") -> None:
        super().__init__(frame, folder, mode)
        self.first: dict[int, Any] = {}

    def __call__(self, frame: DataFrame, batch: int) -> None:
        super().__call__(frame, batch)
        now = self.batches[batch], self.promises[batch]
        assert self.first.setdefault(batch, now) == now
