"""ParquetSink: folders of Parquet files by event time, each file written when its period is complete."""

import json
import logging
from contextlib import suppress
from datetime import UTC, tzinfo
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from spark_rowtime.bounds.bound import RowtimeBound
from spark_rowtime.bounds.train import Timed
from spark_rowtime.drain.gathering import GatheringSink
from spark_rowtime.drain.properties import POSITION, bound_in, bound_properties, extent_properties
from spark_rowtime.drain.tables.folders import (
    FOLDER,
    STATE,
    locked,
    new_file,
    publish,
    read_root_state,
    read_state,
    remove_unfinished,
    write_state,
    writing,
)
from spark_rowtime.drain.tables.loading import loading
from spark_rowtime.drain.tables.pattern import Pattern, Period, split_pattern
from spark_rowtime.drain.tables.table import require_same
from spark_rowtime.errors import InvalidOptionError
from spark_rowtime.reader.release import first_time, position_before, position_since, require_by_rowtime
from spark_rowtime.store.forks import keep_for_ever
from spark_rowtime.types.schema import rowtime_micros
from spark_rowtime.types.timestamps import END, show_micros

LOG = logging.getLogger("spark_rowtime.drain.tables")
_SCHEMA, _PATTERN, _ZONE, _ID = "schema", "pattern", "zone", "id"


class ParquetSink(GatheringSink):
    """A sink into folders of Parquet files, for ``drainTo`` with ``order="rowtime"``; ``openTableSink`` returns it.

    A period's file appears when the bound has passed the period's end. The bound and the position that are kept are
    those of the last complete period, so rows of the current one are read again after a restart.

    Law (*whole*): a drain by ``drainTo`` that begins within a period, because of ``start`` or since rows were removed,
    leaves out what is left of that period, and begins with the next one.

    Law (*once*): a period's rows are a function of the stream, and its file has one name; so where a process dies
    between the file and the position, the next one replaces the file with the same rows.
    """

    def __init__(
        self, target: str, schema: pa.Schema, every: int, max_rows: int, zone: tzinfo = UTC, **options: Any
    ) -> None:
        self._file: pq.ParquetWriter | None = None
        super().__init__(target, schema, every, max_rows, **options)
        root, folders = split_pattern(target.removeprefix("parquet:"))
        self._root, self._pattern = Path(root), Pattern(folders, zone)
        self._require_other_names(schema)
        self._lock = locked(self._root, target)
        try:
            self._state = self._continued(schema)
            with writing(target):
                remove_unfinished(self._root)
        except BaseException:
            self._lock.close()
            raise
        self._extent = extent_properties(schema.empty_table(), self._state)
        self._open: Period | None = None
        self._done: list[Period] = []
        self._kept = self._checkpoint = self.checkpoint
        self._first = 0
        """Rows before this time, in microseconds, are of a period that this drain has begun within."""
        self._complete = self._bound = self.rowtimeBound

    @classmethod
    def open_sink(
        cls,
        target: str,
        schema: pa.Schema,
        every: int,
        max_rows: int,
        bounds_every: int,  # noqa: ARG003
        zone: tzinfo = UTC,
    ) -> "ParquetSink":
        """A sink into the folders, by the clocks of a zone. A bound without rows costs nothing there."""
        return cls(target, schema, every, max_rows, zone)

    @staticmethod
    def read_bound(target: str) -> RowtimeBound | None:
        """The bound of the last complete period; ``target`` may be the folder alone."""
        return bound_in(read_root_state(target))

    @staticmethod
    def read_properties(target: str) -> dict[str, str]:
        """The bound of the last complete period, and the first and the last rowtime of the rows."""
        return read_root_state(target)

    @staticmethod
    def read_id(target: str) -> str | None:
        """What tells these folders from others that were there before. None: no drain has written it yet."""
        return read_root_state(target).get(_ID)

    def _continued(self, schema: pa.Schema) -> dict[str, str]:
        """The state of the folders; raises if it is one of other columns, or of another pattern."""
        state = read_state(self._root)
        if state:
            self._require_same_pattern(state)
            with loading(self.target, self._root / FOLDER / STATE):
                written = pa.ipc.read_schema(pa.py_buffer(bytes.fromhex(state[_SCHEMA])))
            require_same(self.target, schema, written)
        return state

    @property
    def checkpoint(self) -> str | None:
        """The position before the first period that is not complete. None for folders without one."""
        return self._state.get(POSITION)

    @property
    def checkpointPlace(self) -> str:
        """What has the position, for an error."""
        return f"{self._root / FOLDER / STATE} of {self.target}"

    @property
    def rowtimeBound(self) -> RowtimeBound | None:
        """The bound of the folders: each period before it is complete. None while nothing is promised."""
        return bound_in(self._state)

    def _gather(self, rows: pa.RecordBatch) -> None:
        """Puts rows, which must come sorted by rowtime, into the files of their periods."""
        if self._first:
            rows = rows.filter(pc.greater_equal(rowtime_micros(rows), self._first))
        self._extent = extent_properties(rows, self._extent)
        with writing(self.target):
            self._divide(rows)

    def _divide(self, rows: pa.RecordBatch) -> None:
        while rows.num_rows:
            times = Timed(rows)
            if not times.rises or (self._open is not None and times.least < self._open.start):
                raise _disordered(self.target)
            if self._open is None or times.least >= self._open.end:
                self._end_period()
                self._open = self._pattern.period(times.least)
            inside = int(times.micros.searchsorted(self._open.end))
            super()._gather(rows.slice(0, inside))
            rows = rows.slice(inside)
            if self._rows >= self._max_rows:
                self._spill()

    def flush(self, checkpoint: str | None = None) -> None:
        """Makes the files of the periods that the bound has passed appear, and then keeps the position.

        Args:
            checkpoint: The reader's position after what was sent; None: no file appears.

        Raises:
            StoreUnavailableError: The folders cannot be written, as on a full disk.
            InvalidOptionError: The position is that of a reader in the order of arrival.
        """
        self._require_open()
        if checkpoint is not None:
            require_by_rowtime(checkpoint)
            if self._kept is None and not self._sent and self._sent_bound is None:
                self._begin(first_time(checkpoint))
        with self._or_ended():
            self._take_sent(checkpoint)
        if checkpoint is None:
            return
        floor = self._bound.floor if self._bound is not None else None
        if floor is None:
            if self._open is None and not self._done:
                self._keep(checkpoint, None)
        else:
            start = END if floor >= END else self._pattern.period(max(floor, 0)).start
            if self._complete is None or start > self._complete.floor:
                self._keep(position_before(checkpoint, start), RowtimeBound.fromFloor(max(start, 1)))

    def _begin(self, first: int) -> None:
        """Begins with the first period of which the drain gets all rows: it gets those from ``first`` on."""
        before = self._pattern.period(first - 1) if first else None
        if before is not None and before.end > first:
            self._first = before.end
            LOG.warning(
                "%s: the drain gets the rows from %s on, which is within %s. This folder would not be complete, so the "
                "rows before %s are left out.",
                *(self.target, show_micros(first), before.folder, show_micros(before.end)),
            )

    def abandon(self) -> None:
        """Closes the sink. Rows of periods that are not complete are read again by the next drain."""
        super().abandon()
        if self._file is not None:
            with suppress(OSError):  # it is not finished, and the next drain removes it
                self._file.close()
            with suppress(OSError):
                self._made.close()
            self._file = None
        self._lock.close()

    def close_inherited(self) -> None:
        """Ends the sink in a forked child: a writer that is closed or freed there would write into the file."""
        super().close_inherited()
        keep_for_ever(self._file)
        self._file = None

    def _keep(self, position: str, complete: RowtimeBound | None) -> None:
        self._kept, self._complete = position_since(position, self._first) if self._first else position, complete
        self._since = self._now()
        self.commit()

    def _write(self) -> None:
        """Files first, then bound and position: the next process would write files without a position again."""
        with writing(self.target):
            self._write_files()

    def _write_files(self) -> None:
        floor = self._complete.floor if self._complete is not None else None
        if self._open is not None and floor is not None and self._open.end <= floor:
            self._end_period()
        for period in self._done:
            publish(self._root, _name(period), period.folder)
        self._done = []
        schema = self._schema.serialize().to_pybytes().hex()
        kept = {POSITION: str(self._kept), _SCHEMA: schema, _PATTERN: self._pattern.text, _ZONE: self._pattern.zone}
        kept[_ID] = self._state.get(_ID) or uuid4().hex
        self._state = {**bound_properties(self._complete), **self._extent, **kept}
        write_state(self._root, json.dumps(self._state))

    def _spill(self) -> None:
        """Appends the gathered rows to the file of the open period, while the reader reads the next ones."""
        assert self._open is not None
        self._wait()
        if self._file is None:
            self._made = new_file(self._root, _name(self._open))
            self._file = pq.ParquetWriter(self._made, self._schema, compression="zstd")
        self._start(self._file.write_table, self._taken(), self._max_rows)

    def _end_period(self) -> None:
        if self._open is None:
            return
        if self._rows:
            self._spill()
        self._wait()
        assert self._file is not None
        self._file.add_key_value_metadata(bound_properties(RowtimeBound.fromFloor(self._open.end)))
        self._file.close()
        self._made.close()
        self._done.append(self._open)
        self._open = self._file = None

    def _require_same_pattern(self, state: dict[str, str]) -> None:
        """Raises InvalidOptionError if the folders have periods of another kind, whose files the rest would miss."""
        before, zone = state.get(_PATTERN, self._pattern.text), state.get(_ZONE, str(UTC))
        if (before, zone) != (self._pattern.text, self._pattern.zone):
            raise InvalidOptionError(
                f"{self._root} has folders of the pattern {before!r} in the time zone {zone}, not "
                f"{self._pattern.text!r} in {self._pattern.zone}. The position is within them, so periods of both "
                "kinds would be mixed. Drain with that pattern and zone, or into another folder.",
                option="target",
                value=self._pattern.text,
            )

    def _require_other_names(self, schema: pa.Schema) -> None:
        names = {name.lower() for name in schema.names}
        for column in self._pattern.columns:
            if column.lower() in names:
                raise InvalidOptionError(
                    f"The folders {self._pattern.text!r} would make a column {column!r} for readers, but the stream "
                    "has a column of that name. Give the folder another name.",
                    option="target",
                    column=column,
                )


def _name(period: Period) -> str:
    start = RowtimeBound.fromFloor(max(period.start, 1)).time
    return f"rows-{start:%Y%m%dT%H%M}.parquet"


def _disordered(target: str) -> InvalidOptionError:
    return InvalidOptionError(
        f"Rows for {target} must come sorted by rowtime, so that a period is complete. Read the stream with "
        "order='rowtime', and drain into nothing else beside it.",
        option="order",
    )
