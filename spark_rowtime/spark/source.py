"""The streaming source: turns pairs of positions into partitions. The offsets carry the bounds."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from spark_rowtime.adapter.process import AdapterProcess
from spark_rowtime.kafka.cuts import CutFloors, offsets_of
from spark_rowtime.reader.release import Release, dump_position, least_left, least_sent, load_position
from spark_rowtime.spark.held_back_rows import HeldBackRows
from spark_rowtime.spark.hosted_adapter import start_adapter
from spark_rowtime.spark.join_needs import JoinNeeds
from spark_rowtime.spark.late_beside import keep_late
from spark_rowtime.spark.news import NewsOfStreams
from spark_rowtime.spark.offset import (
    ACCOUNT,
    ENDED,
    FLOOR_AT,
    LATE,
    LEAST_SENT,
    NEWS,
    PLAN,
    READER,
    SINCE,
    TOPIC_IDS,
    start_position,
)
from spark_rowtime.spark.options import Options
from spark_rowtime.spark.partition import SlicePartition, native_plan, plan, read_slices
from spark_rowtime.spark.query_report import QueryReport
from spark_rowtime.spark.shipped import Shipped
from spark_rowtime.store import open_store
from spark_rowtime.store.base import Position, Store, Summary
from spark_rowtime.store.registration import Registration
from spark_rowtime.store.retention import is_temporary
from spark_rowtime.stream import waits_for
from spark_rowtime.types.timestamps import END, show_micros


class RowtimeStreamReader(Shipped, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Runs in one Python process beside the query. Spark calls it from the query's thread, one call at a time.

    Each task gets a pickled copy, only for ``read``. An offset is a position, which is a pure function of
    the log. So a batch that is run again gets the same rows and the same bound. ``columns`` is the number of columns
    that the query reads; it stays while the query runs, also if columns are added to the stream.
    """

    def __init__(self, options: Options, columns: int) -> None:
        self._columns = columns
        self._path, self._release = options.path, options.release()
        self._from_latest = options.from_latest
        self._adapter_spec, self._adapter_arguments = options.get("adapter"), options.adapter_arguments
        self._adapter_producer = options.adapter_producer
        self._require = options.choice("bounds", "require", "ignore") == "require"
        self._target: int | None = None
        self._seen = 0
        self._news: NewsOfStreams | None = None
        self._reported: dict[str, Any] | None = None
        self._held_back = HeldBackRows(self._release)
        self._adapter: AdapterProcess | None = None
        self._report: QueryReport | None = None
        self._registration: Registration | None = None
        self._kept = Position(0, None, None)
        self._joins: JoinNeeds | None = None

    def __getstate__(self) -> dict[str, Any]:
        """The tasks get no arguments of the adapter, which may be secret."""
        ours = {"_report": None, "_news": None, "_registration": None, "_joins": None}
        return {**self.__dict__, "_adapter_arguments": {}, **ours}

    @cached_property
    def _store(self) -> Store:
        return open_store(self._path)

    @cached_property
    def _cut_floors(self) -> CutFloors:
        return CutFloors(self._store)

    def initialOffset(self) -> dict[str, Any]:
        """Called once, when a new query starts."""
        at = self._release.latest(self._store) if self._from_latest else self._release.earliest(self._store)
        return self._dump(at, self._release)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Returns the end of the next batch; ``start`` itself if there is nothing new. Called at each trigger.

        It also answers the extension's questions, because it is the only call of a Python source that takes an
        argument and can be made at any time. A question is a start offset with a key that no logged offset has.
        """
        if NEWS in start:
            return {"news": self._has_news(start[NEWS]["seconds"], start[NEWS]["streams"])}
        at = start_position(start, self._store, self._release.order, self._require)
        if PLAN in start:
            return self._plan_of_batch(at, start[PLAN]["end"], start[PLAN]["parallelism"])
        if LEAST_SENT in start:
            return self._least_sent(at, start[LEAST_SENT])
        if FLOOR_AT in start:
            return {"floor": self._floor_beside(at, start[FLOOR_AT])}
        if LATE in start or ENDED in start or TOPIC_IDS in start:
            return self._told(start)
        return self._end_of_next_batch(start, at, limit)

    def _told(self, start: dict[str, Any]) -> dict[str, Any]:
        """The messages LATE, TOPIC_IDS and ENDED."""
        if LATE in start:
            late = start[LATE]
            keep_late(self._store, late["reader"], late["batch"], late["bound"], late["rows"])
        elif TOPIC_IDS in start:
            self._cut_floors.requireTopics(self._store.head().seq, start[TOPIC_IDS])
        else:
            self._reporting().ended(start[ACCOUNT], start[ENDED]["error"])
        return {}

    def _plan_of_batch(self, after: Position, end: dict[str, Any], parallelism: int) -> dict[str, Any]:
        """The question PLAN: which trains the batch between the two positions reads, for tasks in Java."""
        return native_plan(self._store, self._release_of(end), after, self._load(end), self._columns, parallelism)

    def _least_sent(self, upto: Position, rowtime: int) -> dict[str, Any]:
        """The question LEAST_SENT: the least rowtime from ``rowtime`` on that was sent; a join may have kept it.

        From 0 on: of the rows that are left. Those that were removed, earlier batches have read, and no state has.
        """
        if rowtime == 0:
            return {"least": least_left(self._store, upto.seq)}
        if self._joins is not None:
            self._joins.asked(upto, rowtime)
        return {"least": least_sent(self._store, upto.seq, rowtime)}

    def _floor_beside(self, upto: Position, offsets: dict[str, dict[str, int]]) -> int | None:
        """The question FLOOR_AT: which bounds up to the position count where a batch of topics ends at ``offsets``."""
        return self._cut_floors.floorAt(upto, offsets_of(offsets))

    def _end_of_next_batch(self, start: dict[str, Any], at: Position, limit: ReadLimit) -> dict[str, Any]:
        """Spark's own question. It also does what is due at each trigger: registration, adapter, leases."""
        if ACCOUNT in start:
            self._reporting().running(start[ACCOUNT])
        self._register(start.get(READER), at)
        self._tend_adapter()
        self._store.expire()
        self._seen = self._store.head().seq
        release = self._release_of(start)
        if isinstance(limit, ReadAllAvailable):
            release = Release(release.order, release.hold, release.since)
        return self._dump(release.step(self._store, at, self._target), release)

    def _has_news(self, seconds: float, beside: Sequence[str]) -> bool:
        """The question NEWS: whether this stream has events that the last answer did not know, or others have some."""
        self._tend_adapter()
        self._store.expire()
        if not beside:
            return self._store.wait(self._seen, seconds)
        if self._news is None:
            self._news = NewsOfStreams([self._path, *beside])
        return self._news.wait(seconds)

    def getDefaultReadLimit(self) -> ReadLimit:
        """Returns the limit that the options set. If both limits are set, the step itself applies both."""
        if self._release.max_rows is not None:
            return ReadMaxRows(self._release.max_rows)
        return ReadAllAvailable() if self._release.max_bytes is None else ReadMaxBytes(self._release.max_bytes)

    def prepareForTriggerAvailableNow(self) -> None:
        """Called for Trigger.AvailableNow: the query reads exactly what is committed now."""
        self._target = self._store.head().seq

    def reportLatestOffset(self) -> dict[str, Any]:
        """Returns the stream's latest position and its metrics, for the query's progress.

        Called at each trigger, also at an idle one.
        """
        seq = self._store.head().seq
        if self._reported is None or self._reported["seq"] != seq:
            latest = self._release.latest(self._store)
            self._reported = {**self._dump(latest, self._release), "metrics": self._metrics(latest)}
        return self._reported

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Called for each batch that is not empty, also for one that is run again after a restart."""
        after = start_position(start, self._store, self._release.order, self._require)
        self._register(start.get(READER), after)
        return plan(self._store, self._release_of(end), after, self._load(end), self._columns)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Called in a Python worker, once per partition."""
        assert isinstance(partition, SlicePartition)
        return read_slices(partition)

    def commit(self, end: dict[str, Any]) -> None:
        """Called after the batch up to ``end`` is committed: its rows need not be kept for this query any more."""
        if self._registration is not None and self._joins is not None:
            self._kept = self._load(end)
            self._registration.keep(self._kept)
            self._joins.batch_done(self._kept)

    def _register(self, reader: str | None, at: Position) -> None:
        """Registers the query as a reader, so that the stream keeps the rows after ``at``.

        ``at`` is where the first batch of this run starts. A query with a temporary checkpoint is not registered:
        nothing could resume from there, and nothing would ever end the registration.
        """
        if reader is None or is_temporary(reader):
            return
        if self._registration is None or self._joins is None:
            self._registration, self._kept = Registration(self._store, reader), at
            self._joins = JoinNeeds(self._store, reader)
        self._registration.keep(self._kept)
        self._joins.refresh()

    def stop(self) -> None:
        """Called once, when the query ends."""
        if self._adapter is not None:
            self._adapter.stop()
        if self._report is not None:
            self._report.close()
        if self._news is not None:
            self._news.close()
        if "_store" in self.__dict__:
            self._store.close()

    def _reporting(self) -> QueryReport:
        if self._report is None:
            self._report = QueryReport(self._store)
        return self._report

    def _tend_adapter(self) -> None:
        if self._adapter_spec is None:
            return
        if self._adapter is None:
            self._adapter = start_adapter(
                self._adapter_spec, self._path, self._adapter_arguments, self._adapter_producer
            )
        self._adapter.check()

    def _release_of(self, offset: dict[str, Any]) -> Release:
        """Returns the release with the startingPosition that the query began with.

        So a startingPosition that was changed since then skips no row that still waits.
        """
        return replace(self._release, since=offset.get(SINCE, self._release.since))

    def _dump(self, position: Position, release: Release) -> dict[str, Any]:
        return {**dump_position(position, self._store.stream, release.order), SINCE: release.since}

    def _load(self, offset: dict[str, Any]) -> Position:
        return load_position(offset, self._store.stream, self._release.order, self._store.ancestors)

    def _metrics(self, latest: Position) -> dict[str, Any]:
        now = self._store.summary()
        return {
            "bound": show_micros(now.floor),
            "producers": now.attached,
            "clockHeldBy": self._clock_held_by(now),
            "rowsHeldBack": self._held_back.rows(self._store, latest),
            "rowsRejected": now.rejected,
        }

    def _clock_held_by(self, now: Summary) -> str:
        """See ``waits_for``. Reads all producers only if the stream waits for none, or for one that is expected."""
        if now.holder is not None and not now.expected:
            return now.holder
        complete = now.floor is not None and now.floor >= END
        return waits_for(self._path, now.holder, self._store.producers(), complete=complete)
