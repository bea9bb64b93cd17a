"""The streaming source: turns pairs of positions into partitions. The offsets carry the bounds.

An offset in Spark's log is a flat JSON object. It has the id of the stream and the order in which it is read, the three
numbers of the position (see ``Position``; ``floor`` is the bound that moves the watermark), and ``since``:

    {"stream": "f6c0...", "order": "rowtime", "seq": 7, "cut": null, "floor": 1157968800000000, "since": null}

``dump_position`` and ``load_position`` in ``reader/release.py`` write and read all but ``since``.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from spark_rowtime.adapter.process import AdapterProcess
from spark_rowtime.bounds.bound import is_end
from spark_rowtime.bounds.topic_cut import offsets_of
from spark_rowtime.errors import InvalidOptionError, ShimMissingError
from spark_rowtime.kafka.cuts import CutFloors
from spark_rowtime.reader.release import Release, dump_position, least_left, least_sent, load_position
from spark_rowtime.spark.event_wait import EventWait
from spark_rowtime.spark.held_back_rows import HeldBackRows
from spark_rowtime.spark.hosted_adapter import start_adapter
from spark_rowtime.spark.hosted_watch import ADAPTER as WATCHER
from spark_rowtime.spark.hosted_watch import host_name, hosted_watch, watched
from spark_rowtime.spark.join_needs import JoinNeeds
from spark_rowtime.spark.options import TOPIC_TIME, WATCH, Options
from spark_rowtime.spark.partition import SlicePartition, native_plan, plan, read_slices
from spark_rowtime.spark.questions import AskedReader, Offset
from spark_rowtime.spark.status_reporter import StatusReporter
from spark_rowtime.spark.topic_late_rows import LateBatch, keep_late
from spark_rowtime.store.position import Position
from spark_rowtime.store.registration import Registration
from spark_rowtime.store.retention import is_temporary, require_same, require_there
from spark_rowtime.store.snapshot import READS_STREAM, READS_TOPIC, Summary
from spark_rowtime.stream_info import waits_for
from spark_rowtime.types.timestamps import show_micros

_STOP_SECONDS = 0.5
"""How long a question may wait for the end of an adapter: a query that is stopped waits for the answer."""
_MOST_CUTS = 100_000
"""How many cuts a query has in memory before it lets go of those that the stream has folded since."""
SINCE = "since"
"""Key in each offset: the startingPosition of the query's first run in microseconds, if it was a time."""


class RowtimeStreamReader(AskedReader):
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
        self._adapter_producer, self._watch = options.adapter_producer, options.get(WATCH)
        self._of_topic = options.get(TOPIC_TIME) is not None
        self._passed, self._most_cuts = 0, _MOST_CUTS
        self._had_passed: int | None = None
        self._require = options.bounds == "require"
        self._target: int | None = None
        self._begun: Offset | None = None
        """Where the first batch begins. With startingPosition=latest that may be behind its logged end by then."""
        self._seen = 0
        self._reported: Offset | None = None
        self._reported_at = 0, 0
        self._held_back = HeldBackRows(self._release)
        self._adapter: AdapterProcess | None = None
        self._reporter: StatusReporter | None = None
        self._registration: Registration | None = None
        self._kept = Position(0, None, None)
        self._joins: JoinNeeds | None = None

    def __getstate__(self) -> dict[str, Any]:
        """The tasks get no arguments of the adapter, which may be secret."""
        ours = {"_reporter": None, "_event_wait": None, "_registration": None, "_joins": None, "_watch": None}
        return {**self.__dict__, "_adapter_arguments": {}, **ours}

    @cached_property
    def _cut_floors(self) -> CutFloors:
        return CutFloors(self._store)

    def initialOffset(self) -> Offset:
        """Called by Spark for the first batch: when it is planned, too, and when it runs again after a restart."""
        at = self._release.latest(self._store) if self._from_latest else self._release.earliest(self._store)
        self._at = self._begun = self._dump(at, self._release)
        return self._at

    @property
    def answers(self) -> Mapping[str, Callable[..., Any]]:
        return {
            "next": self._next,
            "news": self._has_events,
            "latest": lambda _: self.latest(),
            "target": self._reach_target,
            "plan": self._plan,
            "leastSent": self._least_sent,
            "floorAt": self._floor_at,
            "passed": self._passed_by,
            "topicIds": self._require_topics,
            "late": self._keep_late,
            "ended": self._ended,
        }

    def _next(
        self, start: Offset, *, unlimited: bool, reader: str, account: str | None, topic: Mapping[str, Any] | None
    ) -> Offset:
        """The end of the next batch. ``account`` is what the query tells about its last batch, where that is new.

        ``topic`` is what the extension knows of topics from which the bounds of this stream are derived.
        """
        self._load(start)
        self._host_watch(reader, topic, until_end=False)
        if account is not None:
            self._reporting().running(account)
        self.register(reader, start)
        return self.next(start, unlimited=unlimited)

    def next(self, start: Offset, *, unlimited: bool) -> Offset:
        """The end of the next batch. It also does what is due at each trigger: adapter and leases."""
        at = self._load(start)
        self._tend_adapter()
        self._store.expire()
        self._seen = self._store.head().seq
        release = self._release_of(start)
        if unlimited:
            release = Release(release.order, release.hold, release.since)
        return self._dump(release.step(self._store, at, self._target), release)

    def _has_events(self, _: Offset, *, seconds: float, streams: Sequence[str]) -> bool:
        """Whether this stream has events that the last answer did not know, or ``streams`` have some."""
        self._tend_adapter()
        self._store.expire()
        if not streams:
            return self._store.wait(self._seen, seconds)
        if self._event_wait is None:
            self._event_wait = EventWait([self._path, *streams])
        return self._event_wait.wait(seconds)

    def latest(self) -> Offset:
        """The stream's latest position and its metrics. They are read only where it has new events or rejected rows."""
        ends = self._store.head().seq, self._store.rejections_end()
        if self._reported is None or self._reported_at != ends:
            latest = self._release.latest(self._store)
            self._reported = {**self._dump(latest, self._release), "metrics": self._metrics(latest)}
            self._reported_at = ends
        return self._reported

    def prepareForTriggerAvailableNow(self) -> None:
        """The query reads exactly what is committed now."""
        self._target = self._store.head().seq

    def _reach_target(self, _: Offset, *, reader: str, topic: Mapping[str, Any] | None) -> bool:
        """The query reads exactly what is committed now. False: a watch has not reached the end of its topics yet."""
        self._host_watch(reader, topic, until_end=True)
        self._tend_adapter()
        if topic is not None and self._adapter is not None and not self._adapter.ended(_STOP_SECONDS):
            return False
        self.prepareForTriggerAvailableNow()
        return True

    def _plan(self, start: Offset, *, end: Offset, parallelism: int) -> dict[str, Any]:
        """Which trains the batch between two offsets reads, for tasks in Java."""
        after, upto = self._load(start), self._load(end)
        require_same(upto, self._store.made(upto.seq), self._path)
        return native_plan(self._store, self._release_of(end), after, upto, self._columns, parallelism)

    def between(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """The same, for Python workers."""
        after, upto = self._load(start), self._load(end)
        require_there(after, self._store.head(), self._path)
        require_same(upto, self._store.made(upto.seq), self._path)
        release, begun = self._release_of(end), self._release_of(start)
        if start != self._begun and (release.since != begun.since or upto.is_behind(after)):
            raise self._changed()
        return plan(self._store, release, after, upto, self._columns)

    def _changed(self) -> InvalidOptionError:
        return InvalidOptionError(
            "The query has begun with another startingPosition, or with a smaller hold, and this version of Spark does "
            "not tell a source in Python where a query goes on: the batch would skip rows, or read rows again. Nothing "
            "was read. Remove the newest file of the folder offsets in the checkpoint and its checksum, such as 7 and "
            ".7.crc, since that batch cannot run, and start the query with the options with which it began; or build "
            "the session with spark_rowtime.configure(SparkSession.builder), or use Spark 4.2 or later, and set hold "
            "as you like.",
            path=self._path,
        )

    def _least_sent(self, start: Offset, *, time: int) -> int | None:
        """The least rowtime from ``time`` on that was sent up to ``start``; a join may have kept it.

        From 0 on: of the rows that are left. Those that were removed, earlier batches have read, and no state has.
        """
        upto = self._load(start)
        if time == 0:
            return least_left(self._store, upto.seq)
        if self._joins is not None:
            self._joins.asked(upto, time)
        return least_sent(self._store, upto.seq, time)

    def _floor_at(
        self, start: Offset, *, reader: str, offsets: dict[str, dict[str, int]], reads: str | None
    ) -> int | None:
        """The floor of bounds beside topics, up to ``start``, where a batch of the topics ends at ``offsets``."""
        at, ends = self._load(start), offsets_of(offsets, reads)
        if self._had_passed is None:
            self._had_passed = self._registered_at(reader).seq
        self._cut_floors.requireUnfolded(at, ends, self._had_passed)
        return self._cut_floors.floorAt(at, ends)

    def _passed_by(self, end: Offset, *, offsets: dict[str, dict[str, int]], reads: str | None) -> None:
        """A batch up to ``end`` is committed that has read the topics up to ``offsets``: which cuts it still needs."""
        ends = offsets_of(offsets, reads)
        self._passed = self._cut_floors.passedAt(self._load(end), ends)
        if self._registration is not None and len(self._cut_floors) > self._most_cuts:
            self.__dict__.pop("_cut_floors")
            kept = self._cut_floors
            self._passed = kept.passedAt(self._load(end), ends)
            self._most_cuts = max(_MOST_CUTS, 2 * len(kept))

    def _require_topics(self, _: Offset, *, ids: dict[str, str]) -> None:
        """Raises an error if bounds are about topics with other ids."""
        self._cut_floors.requireTopics(self._store.head().seq, ids)

    def _keep_late(
        self, end: Offset, *, reader: str, batch: int, offsets: dict[str, dict[str, int]], bound: int, rows: str
    ) -> None:
        """Keeps the late rows of a batch of topics, exactly once; ``rows`` is an Arrow stream in base64.

        The batch ends at ``end`` of the bounds, and at ``offsets`` of the topics.
        """
        keep_late(self._store, reader, LateBatch(batch, end, offsets), bound, rows)

    def _ended(self, _: Offset, *, account: str, error: str | None) -> None:
        """The query has ended, with this error or none."""
        self._reporting().ended(account, error)

    @property
    def limits(self) -> str | None:
        if self._release.max_rows is not None:
            return "maxRowsPerTrigger"
        return None if self._release.max_bytes is None else "maxBytesPerTrigger"

    def require_no_extension(self) -> None:
        if self._require:
            raise ShimMissingError(
                "This Spark session does not have the extension that moves the watermark by the stream's bounds. "
                "Build the session with spark_rowtime.configure(SparkSession.builder), or set spark.jars to what "
                "`rowtime jar` prints and spark.sql.extensions to sparkrowtime.RowtimeExtensions. To read the rows "
                "without their bounds, set option('bounds', 'ignore'). "
                "Where no jar may be installed, read with option('bounds', 'markers') and spark_rowtime.withBounds."
            )

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Called in a Python worker, once per partition."""
        assert isinstance(partition, SlicePartition)
        return read_slices(partition)

    def commit(self, end: Offset) -> None:
        """Called after the batch up to ``end`` is committed: its rows need not be kept for this query any more."""
        if self._registration is not None and self._joins is not None:
            self._kept = self._needed_after(self._load(end))
            self._registration.keep(self._kept)
            self._joins.batch_done(self._kept)

    def register(self, reader: str, start: Offset) -> None:
        """Registers the query as a reader, so that the stream keeps the rows after ``start``.

        That is where the first batch of this run starts. A query with a temporary checkpoint is not registered:
        nothing could resume from there, and nothing would ever end the registration.
        """
        if is_temporary(reader):
            return
        if self._registration is None or self._joins is None:
            self._registration = Registration(self._store, reader, READS_TOPIC if self._of_topic else READS_STREAM)
            self._kept = self._registered(reader, start)
            self._joins = JoinNeeds(self._store, reader)
        self._registration.keep(self._kept)
        self._joins.refresh()

    def _registered(self, reader: str, start: Offset) -> Position:
        """What the query needs when its run starts. Of bounds beside topics that is what its last run has needed."""
        if not self._of_topic:
            return self._load(start)
        return self._registered_at(reader)

    def _registered_at(self, reader: str) -> Position:
        """The position at which the query is registered; that before all events if it is not."""
        return self._store.snapshot().position_of(reader) or Position(0, None, None)

    def _needed_after(self, end: Position) -> Position:
        """What the query needs after a batch. Of bounds beside topics these are the cuts that it has not reached."""
        return Position(min(end.seq, self._passed), None, None) if self._of_topic else end

    def stop(self) -> None:
        """Called once, when the query ends."""
        if self._adapter is not None:
            self._adapter.stop()
        if self._reporter is not None:
            self._reporter.close()
        super().stop()

    def _reporting(self) -> StatusReporter:
        if self._reporter is None:
            self._reporter = StatusReporter(self._store)
        return self._reporter

    def _host_watch(self, reader: str, topic: Mapping[str, Any] | None, *, until_end: bool) -> None:
        """The bounds come from these topics: the adapter is a watch of them, one for each query."""
        if topic is not None and self._watch is not None and self._adapter_spec is None:
            self._adapter_arguments = hosted_watch(self._watch, topic, until_end=until_end)
            self._adapter_spec, self._adapter_producer = WATCHER, host_name(reader)

    def _tend_adapter(self) -> None:
        if self._adapter_spec is None:
            return
        if self._adapter is None:
            self._adapter = start_adapter(
                self._adapter_spec, self._path, self._adapter_arguments, self._adapter_producer
            )
        self._adapter.check()

    def _release_of(self, offset: Offset) -> Release:
        """Returns the release with the startingPosition that the query began with.

        So a startingPosition that was changed since then skips no row that still waits.
        """
        return replace(self._release, since=offset.get(SINCE, self._release.since))

    def _dump(self, position: Position, release: Release) -> Offset:
        return {**dump_position(position, self._store.stream, release.order), SINCE: release.since}

    def _load(self, offset: Offset) -> Position:
        if "stream" not in offset:
            raise InvalidOptionError(
                "The checkpoint of this query began with another source: it has no position in a rowtime stream. Start "
                "the query with a new checkpointLocation and a new output."
            )
        return load_position(offset, self._store.stream, self._release.order, self._store.ancestors)

    def _metrics(self, latest: Position) -> dict[str, Any]:
        now = self._store.summary()
        return {
            "bound": show_micros(now.floor),
            "producers": now.attached,
            "clockHeldBy": self._clock_held_by(now),
            "rowsHeldBack": self._held_back.rows(self._store, latest),
            "rowsRejected": now.rejected,
            **({} if self._watch is None else watched(self._store.snapshot().producers.values())),
        }

    def _clock_held_by(self, now: Summary) -> str:
        """See ``waits_for``. Reads all producers only if the stream waits for none, or for one that is expected."""
        if now.holder is not None and not now.expected:
            return now.holder
        complete = is_end(now.floor)
        return waits_for(self._path, now.holder, self._store.snapshot().producers.values(), complete=complete)
