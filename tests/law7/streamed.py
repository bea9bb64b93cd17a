"""A query over a feed's streams, played through a schedule: its output, and the places of its sources by then."""

import json
import math
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

from pyspark.errors import AnalysisException, IllegalArgumentException, PySparkException, StreamingQueryException
from pyspark.sql import DataFrame

from spark_rowtime import InvalidOptionError
from spark_rowtime.store import open_store
from tests.law7.feed import Feed
from tests.spark.observed_query import Observed, micros

Rows = Counter[tuple[Any, ...]]
Place = tuple[tuple[int, float], ...]
"""For each stream of a query: the last event that was read, and the rowtime below which its rows were read.

For each partition of a topic: the offset of the next message, and no rowtime.
"""


class RefusedError(Exception):
    """The query does not start. The message is a short reason that many cases share."""


def refusal(error: Exception) -> str | None:
    """The beginning of the message with which Spark's analysis or the extension refuses a plan; None: another error."""
    cause = error._cause if isinstance(error, StreamingQueryException) else error
    if not isinstance(cause, AnalysisException | IllegalArgumentException | InvalidOptionError):
        return None
    said = re.sub(r"\[.*?\]|#\d+|'[^']*'|`[^`]*`", "", " ".join(str(cause).split()))
    return said.split(". ")[0].strip()[:140]


STATE_DIFFERS = re.compile(
    "STATE_STORE|STREAMING_STATEFUL_OPERATOR|sources in the checkpoint|Watermark has been changed"
)
"""How Spark refuses a checkpoint whose state has other operators or other columns."""


class Step(NamedTuple):
    """A batch, and two limits of the place where it ended: it has read ``surely``, and no more than ``at_most``.

    Or the end of a poll, without rows, at which all available data was read.
    """

    surely: Place
    at_most: Place
    rows: Rows
    ends_poll: bool = False


class Streamed(Observed):
    """A query that is started and stopped by its schedule.

    Laws: no row is below an earlier promise; a batch that is run again gives the same rows.
    """

    def __init__(self, frame: DataFrame, folder: Path, feed: Feed) -> None:
        super().__init__(frame, folder)
        self.feed, self.running, self.starts = feed, False, 0
        self.tried = self.changed = False
        self.settled: dict[int, list[int]] = {}
        """The polls that ended with a batch, by batch."""
        self._given: dict[int, list[tuple[Any, ...]]] = {}
        self._names = {_id(path): stream for stream, path in feed.paths.items()}

    def __call__(self, frame: DataFrame, batch: int) -> None:
        super().__call__(frame, batch)
        rows = self.batches[batch]
        given = self._given.setdefault(batch, rows)
        assert self.changed or given == rows, f"batch {batch} was {self._given[batch]}, is {rows}"
        promised = [said["rowtime"] for before, said in self.promises.items() if before < batch and "rowtime" in said]
        floor = max(map(micros, promised), default=0)
        below = [row for row in rows if micros(row[0]) < floor]
        assert not below, f"batch {batch}: {below} lie below what was promised: {promised}"

    def poll(self, number: int) -> None:
        """Processes all data that is available at the event of that number."""
        try:
            if not self.running:
                self.__enter__()
                self.running, self.starts = True, self.starts + 1
            self.query.processAllAvailable()
            if self.feed.settle():
                self.query.processAllAvailable()
        except PySparkException as error:
            if self._given or not (reason := refusal(error)):
                raise
            raise RefusedError(reason) from error
        self.settled.setdefault(max(self._given, default=-1), []).append(number)

    def stop(self, number: int, crashed: bool = False) -> None:
        """Stops the query, if it runs, after it has processed all available data."""
        if not self.running:
            return
        self.poll(number)
        self.end()
        if crashed and self._given:
            self.lose_commit()

    def change(self, frame: DataFrame) -> None:
        """Starts another query on the checkpoint, once. If that is refused, the query stays what it was."""
        before, batches = self.frame, len(self._given)
        self.frame, self.tried, self.changed = frame, True, True
        try:
            self.__enter__()
            self.running = True
            self.query.processAllAvailable()
        except PySparkException as error:
            if len(self._given) > batches or not (refusal(error) or STATE_DIFFERS.search(str(error))):
                raise
            self.end()
            self.frame, self.changed = before, False

    def end(self) -> None:
        """Ends the query in any case."""
        if self.running:
            self.query.stop()
        self.running = False

    def steps(self) -> list[Step]:
        """All batches and all ends of polls, in order."""
        found = []
        for batch in [-1, *sorted(self._given)]:
            if batch >= 0:
                found.append(self._step(batch))
            found += [self._end(number) for number in self.settled.get(batch, [])]
        return found

    def _end(self, number: int) -> Step:
        topics = {topic.name: stream for stream, topic in self.feed.topics.items()}
        place: list[tuple[int, float]] = []
        for source in self._sources(max(self._given)):
            [stream] = [topics[name] for name in _offsets(source)] or [None]
            ends = [number] if stream is None else self.feed.ends[stream][number].values()
            place += [(end, math.inf) for end in ends]
        return Step(tuple(place), tuple(place), Counter(), ends_poll=True)

    def _step(self, batch: int) -> Step:
        surely, at_most = [], []
        for source in self._sources(batch):
            if offsets := _offsets(source):
                ends = [(end, math.inf) for topic in offsets.values() for _, end in sorted(topic.items())]
                surely += ends
                at_most += ends
                continue
            read = json.loads(source) if source != "-" else {"seq": 0, "cut": 0}
            seqs = self.feed.seqs[self._names[read["stream"]]] if source != "-" else [0]
            cut = math.inf if read["cut"] is None else read["cut"]
            surely.append((bisect_right(seqs, read["seq"]) - 1, cut))
            at_most.append((bisect_left(seqs, read["seq"]), cut))
        return Step(tuple(surely), tuple(at_most), Counter(self._given[batch]))

    def _sources(self, batch: int) -> list[str]:
        """The offset log's offsets of the sources; of named ones in the order of their names."""
        version, _, *lines = (self.checkpoint / "offsets" / str(batch)).read_text().splitlines()
        return lines if version == "v1" else [line.partition(":")[2] for line in sorted(lines)]


def _offsets(source: str) -> dict[str, dict[str, int]]:
    """The offsets of topics; empty for a line of a rowtime stream."""
    read = json.loads(source) if source != "-" else {}
    return {} if "stream" in read else read


def _id(path: str) -> str:
    store = open_store(path)
    try:
        return store.stream
    finally:
        store.close()
