"""Sends a CSV file into a stream: its rows in the order of their times, and bounds as time passes."""

import hashlib
import json
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from spark_rowtime.bounds.bound import RowtimeBound
from spark_rowtime.bounds.train import span
from spark_rowtime.cli.csv_checkpoint import ALL, MOST_FILES, key, landed, require_free, sent_files
from spark_rowtime.cli.csv_rows import CsvRows
from spark_rowtime.errors import InvalidOptionError, RowtimeError, SchemaMismatchError, StreamCompleteError
from spark_rowtime.producer.rowsink import openSink
from spark_rowtime.producer.sink import StreamSink
from spark_rowtime.sorted_runs import SortedRuns
from spark_rowtime.store import open_store
from spark_rowtime.store.admission import require_admitted
from spark_rowtime.types.arguments import to_name
from spark_rowtime.types.schema import rowtime_micros
from spark_rowtime.types.short_repr import shell_arguments, some
from spark_rowtime.types.timestamps import (
    LARGEST,
    LEAST,
    show_micros,
    wall_clock,  # noqa: TID251  (maxAhead counts from it)
)

LOG = logging.getLogger("spark_rowtime")
_MOST_PRODUCERS = 1000


@dataclass(frozen=True, slots=True)
class FeedOptions:
    """How a CSV file is sent.

    ``producer`` is the column that names each row's producer; without it there is one producer, ``name``.
    ``interval`` is the interval of rowtime, in microseconds, at which all producers send a bound; None means
    never. ``final`` is the bound at the end; None means the last rowtime, strict. ``on_late`` and ``in_order_per`` are
    as for openSink. ``complete``: the producers will never send again.
    """

    name: str
    producer: str | None = None
    interval: int | None = None
    final: RowtimeBound | None = None
    on_late: str = "raise"
    complete: bool = False
    in_order_per: str | None = None


class CsvFeed:
    """Sends one file into one stream.

    Laws: nothing is sent before the whole file has been read and validated. Each producer's rows are sent
    in the order of their times. When a bound is sent, all rows before it are committed already or in the
    same commit. A send that was interrupted and is repeated continues where it stopped: each producer's
    checkpoint contains the number of its rows that are in the stream, and only flushes commit. A file that was sent to
    its end is not sent again, whatever was sent since, up to MOST_FILES files. A repetition that would
    read the file in another way is refused, since its first rows are other ones.
    """

    def __init__(self, rows: CsvRows, options: FeedOptions, runs: SortedRuns) -> None:
        """``runs`` must be empty. The caller closes it."""
        self._rows, self._options, self._runs = rows, options, runs
        self.producers: set[str] = set()
        self.rows = 0
        self.last: int | None = None
        """The largest rowtime in microseconds, after the file has been read."""

    def read(self) -> None:
        """Reads and sorts the file. Raises an error if the file cannot be sent."""
        before, _ = self._state(), self._identity
        for batch in self._rows.batches():
            if batch.num_rows:
                self._note(batch)
                self._runs.add(batch)
        if self._state() != before:
            raise SchemaMismatchError(f"{self._rows.file} was changed while it was read. Nothing was sent. Try again.")
        if self._options.producer is None:
            self.producers = {self._options.name}
        final = self._options.final
        if final is not None and self.last is not None and final.floor < self.last:
            raise InvalidOptionError(
                f"--final {show_micros(final.floor)} lies before the last row, {show_micros(self.last)}, so this bound "
                "would not be true. Nothing was sent.",
            )

    def send(self, path: str, advance: Callable[[int], object] = lambda _: None) -> int:
        """Sends the rows that are not in the stream yet, and closes the producers. Returns the number of rows sent.

        It calls ``advance`` with the number of rows of each finished batch.
        """
        sinks = dict[str, StreamSink]()
        try:
            return self._send(path, advance, sinks)
        except RowtimeError:
            if sinks:
                self._let_go(path, sorted(sinks))
            raise

    def _let_go(self, path: str, names: Sequence[str]) -> None:
        """After an error: lets the producers go if none has rows of the file in the stream; else says who must come."""
        with open_store(path) as store:
            known = store.snapshot().producers
            if not any(landed(known[name].checkpoint, self._identity) for name in names):
                for name in names:
                    store.detach(name)
                return
        if self._options.producer is not None:  # they have no lease
            LOG.warning(
                "%s waits for %s until this send is repeated, or until they are let go, as by: rowtime detach %s",
                *(path, some([repr(name) for name in names], 3), shell_arguments(path, names[0])),
            )

    def _send(self, path: str, advance: Callable[[int], object], sinks: dict[str, StreamSink]) -> int:
        with ExitStack() as stack:
            for name, sink in self._sinks(path):
                sinks[name] = stack.enter_context(sink)
            if not sinks:
                return 0
            senders = _Senders(sinks, self._options.producer, self._identity)
            reach, last = self._reach(path), None
            for batch in self._runs.merged():
                for start, rows in self._intervals(batch):
                    if LEAST <= start <= reach:
                        senders.promise(RowtimeBound.fromFloor(start))
                    senders.send(rows)
                senders.flush()
                last = _last_within(batch, reach) or last
                advance(batch.num_rows)
            senders.finish(self._last_bound(last))
            if self._options.complete:
                for sink in sinks.values():
                    sink.close(complete=True)
        return senders.sent

    def _sinks(self, path: str) -> Iterator[tuple[str, StreamSink]]:
        """Opens each producer. Leaves those out that an earlier run, which was interrupted later, has completed."""
        with open_store(path) as store:
            stored = {name: info.checkpoint for name, info in store.snapshot().producers.items()}
            closed = store.settings.closed
        for name in sorted(self.producers):
            require_admitted(closed, to_name(name, "producer"), path)
            require_free(path, name, stored.get(name))
            landed(stored.get(name), self._identity)  # what is read otherwise is refused before anybody attaches
        for name in sorted(self.producers):
            try:
                sink = openSink(path, producer=name, **self._sink_options)
            except StreamCompleteError:
                if not self._options.complete or landed(stored.get(name), self._identity) is None:
                    raise
            else:
                yield name, sink

    @property
    def _sink_options(self) -> dict[str, Any]:
        # Of several producers that a killed send leaves, the one with the most rows would lose its lease last, and its
        # bound would make the others' rows late. So the stream waits for all of them until the send is repeated.
        lease = {} if self._options.producer is None else {"lease": None}
        return {"onLate": self._options.on_late, "inOrderPer": self._options.in_order_per, **lease}

    def _reach(self, path: str) -> int:
        """The largest rowtime that the stream surely takes. No bound follows from rejected rows beyond it."""
        with open_store(path) as store:
            ahead = store.settings.maxAhead if self._options.on_late == "reject" else None
        return LARGEST if ahead is None else wall_clock() + ahead

    def _last_bound(self, last: int | None) -> RowtimeBound | None:
        if self._options.final is not None or last is None:
            return self._options.final
        return RowtimeBound.fromFloor(min(last + 1, LARGEST))

    def _state(self) -> tuple[int, int]:
        """What tells whether somebody has written into the file."""
        found = self._rows.file.stat()
        return found.st_size, found.st_mtime_ns

    def _note(self, batch: pa.RecordBatch) -> None:
        ends = span(batch)
        assert ends is not None
        self.rows, self.last = self.rows + batch.num_rows, max(self.last or 0, ends[1])
        if self._options.producer is not None:
            names = _names(batch, self._options.producer)
            if names.null_count:
                line = self._rows.bad_line(self._options.producer, self._check_name)
                raise SchemaMismatchError(
                    f"{self._rows.file}: column {self._options.producer!r} names the producer, but is empty: {line}. "
                    "Nothing was sent."
                )
            self.producers.update(names.unique().to_pylist())
            if len(self.producers) > _MOST_PRODUCERS:
                raise InvalidOptionError(
                    f"--producer {self._options.producer}: more than {_MOST_PRODUCERS} different values. A producer is "
                    "a writer with a clock of its own, not a key: use another column, or leave out --producer; "
                    "--in-order-per is for a key."
                )

    def _check_name(self, text: str) -> None:
        if text in self._rows.nulls:
            raise ValueError("a null")

    def _intervals(self, batch: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Divides sorted rows by interval. Yields the start of each interval (0 without intervals) and its rows."""
        interval = self._options.interval
        if interval is None:
            return iter([(0, batch)])
        starts = pc.multiply(pc.divide(rowtime_micros(batch), interval), interval)
        return _stretches(batch, starts)

    @cached_property
    def _identity(self) -> dict[str, Any]:
        """What identifies a checkpoint: the same file, with the same rowtime and producer columns, read in one way."""
        with self._rows.file.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        identity = {"csv": digest[:32], "rowtime": self._rows.rowtime, "producer": self._options.producer}
        return {**identity, "read": self._rows.how}


class _Senders:
    """The producers' sinks. Counts for each how many rows landed in earlier runs, and how many this run has passed."""

    def __init__(self, sinks: dict[str, StreamSink], producer: str | None, identity: dict[str, Any]) -> None:
        self._sinks, self._producer, self._identity = sinks, producer, identity
        self._landed = {name: landed(sink.checkpoint, identity) or 0 for name, sink in sinks.items()}
        self._files = {name: sent_files(sink.checkpoint) for name, sink in sinks.items()}
        self._passed = dict.fromkeys(sinks, 0)
        self._pending = set(sinks)
        self.sent = 0
        self.flush()  # after the first checkpoint, only a flush commits

    def send(self, rows: pa.RecordBatch) -> None:
        """Sends rows of any producers, given in the order of their times. Skips those that have landed already."""
        for name, own in self._by_producer(rows):
            if name not in self._sinks:
                continue
            old = min(own.num_rows, max(0, self._landed[name] - self._passed[name]))
            self._passed[name] += own.num_rows
            if old < own.num_rows:
                self._sinks[name].sendRows(own.slice(old))
                self.sent += own.num_rows - old
                self._pending.add(name)

    def promise(self, bound: RowtimeBound) -> None:
        """Sends the bound for every producer that has not sent it yet, in one commit with the rows before it."""
        for name, sink in self._sinks.items():
            promised = sink.getRowtimeBound()
            if promised is None or promised < bound:
                sink.sendRowtimeBound(bound.time, strict=bound.strict)
                self._pending.add(name)
        self.flush()

    def finish(self, bound: RowtimeBound | None) -> None:
        """Sends the last bound, if any. From now on each producer's checkpoint says that the whole file was sent."""
        file = key(self._identity)
        for name, files in self._files.items():
            if file not in files:
                files[:] = [*files, file][-MOST_FILES:]
                self._pending.add(name)
        if bound is None:
            self.flush()
        else:
            self.promise(bound)

    def flush(self) -> None:
        """Commits what was sent since the last flush."""
        for name in sorted(self._pending):
            self._sinks[name].flush(checkpoint=self._checkpoint(name))
        self._pending.clear()

    def _checkpoint(self, name: str) -> str | None:
        """None if the file was sent before: the stored checkpoint may be of another one, of which rows are left."""
        if self._landed[name] == ALL:
            return None
        rows = max(self._passed[name], self._landed[name])
        return json.dumps({**self._identity, "rows": rows, "files": self._files[name]})

    def _by_producer(self, rows: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
        if self._producer is None:
            return iter([(next(iter(self._sinks)), rows)])
        by_name = pc.sort_indices(_names(rows, self._producer))
        ordered = rows.take(by_name)
        return _stretches(ordered, _names(ordered, self._producer))


def _last_within(batch: pa.RecordBatch, reach: int) -> int | None:
    """The largest rowtime of sorted rows that is not beyond ``reach``."""
    times = rowtime_micros(batch)
    within: int | None = pc.max(times.filter(pc.less_equal(times, reach))).as_py()
    return within


def _stretches(rows: pa.RecordBatch, by: pa.Array) -> Iterator[tuple[Any, pa.RecordBatch]]:
    """Yields each run of consecutive ``rows`` with the same value of ``by``, after that value."""
    stretches = pc.run_end_encode(by)
    start = 0
    for value, end in zip(stretches.values.to_pylist(), stretches.run_ends.to_pylist(), strict=True):
        yield value, rows.slice(start, end - start)
        start = end


def _names(rows: pa.RecordBatch, column: str) -> pa.Array:
    return rows.column(column).cast(pa.string())
