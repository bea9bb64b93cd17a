"""ParquetSink: folders of Parquet files by event time, each file written when its period is complete."""

import fcntl
import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from spark_rowtime.bounds.bound import RowtimeBound
from spark_rowtime.bounds.train import Timed
from spark_rowtime.errors import InvalidOptionError, StoreUnavailableError
from spark_rowtime.reader.release import position_before
from spark_rowtime.store.forks import Descriptor, keep_for_ever, no_fork
from spark_rowtime.tables.periods import Pattern, Period, split_pattern
from spark_rowtime.tables.properties import POSITION, bound_in, bound_properties
from spark_rowtime.tables.sink import GatheringSink
from spark_rowtime.tables.table import require_same
from spark_rowtime.types.timestamps import END

FOLDER = "_rowtime"
"""The folder beside the periods with the state, the lock and unfinished files. Spark and others skip such names."""
_STATE, _LOCK, _SCHEMA = "state.json", "lock", "schema"


class ParquetSink(GatheringSink):
    """A sink into folders of Parquet files, for ``drainTo`` with ``order="rowtime"``; ``openTableSink`` returns it.

    A period's file appears when the bound has passed the period's end. The bound and the position that are kept are
    those of the last complete period, so rows of the current one are read again after a restart.

    Law (*once*): a period's rows are a function of the stream, and its file has one name; so where a process dies
    between the file and the position, the next one replaces the file with the same rows.
    """

    def __init__(self, target: str, schema: pa.Schema, every: int, max_rows: int, **options: Any) -> None:
        self._file: pq.ParquetWriter | None = None
        super().__init__(target, schema, every, max_rows, **options)
        root, folders = split_pattern(target.removeprefix("parquet:"))
        self._root, self._pattern = Path(root), Pattern(folders)
        self._require_other_names(schema)
        self._work = self._root / FOLDER
        self._lock = self._locked()
        self._state = read_state(self._root)
        if self._state:
            require_same(target, schema, pa.ipc.read_schema(pa.py_buffer(bytes.fromhex(self._state[_SCHEMA]))))
        self._open: Period | None = None
        self._done: list[Period] = []
        self._kept = self.checkpoint
        self._complete = self.rowtimeBound
        for left in self._work.glob("*.parquet"):
            left.unlink()

    @property
    def checkpoint(self) -> str | None:
        """The position before the first period that is not complete. None for folders without one."""
        return self._state.get(POSITION)

    @property
    def rowtimeBound(self) -> RowtimeBound | None:
        """The bound of the folders: each period before it is complete. None while nothing is promised."""
        return bound_in(self._state)

    def sendRows(self, rows: pa.RecordBatch) -> None:
        """Gathers rows, which must come sorted by rowtime.

        Args:
            rows: An Arrow batch with the columns of the schema.
        """
        self._require_open()
        while rows.num_rows:
            times = Timed(rows)
            if not times.rises or (self._open is not None and times.least < self._open.start):
                raise _disordered(self.target)
            if self._open is None or times.least >= self._open.end:
                self._end_period()
                self._open = self._pattern.period(times.least)
            inside = int(times.micros.searchsorted(self._open.end))
            super().sendRows(rows.slice(0, inside))
            rows = rows.slice(inside)
            if self._rows >= self._max_rows:
                self._spill()

    def flush(self, checkpoint: str | None = None) -> None:
        """Makes the files of the periods that the bound has passed appear, and then keeps the position.

        Args:
            checkpoint: The reader's position after what was sent.
        """
        self._require_open()
        self._checkpoint = checkpoint
        if checkpoint is None:
            return
        floor = self._bound.floor if self._bound is not None else None
        if floor is None:
            if self._open is None and not self._done:
                self._keep(checkpoint, None)
        else:
            start = END if floor >= END else self._pattern.period(max(floor, 0)).start
            if self._complete is None or start > self._complete.floor:
                self._keep(position_before(checkpoint, start), RowtimeBound.fromFloor(start))

    def abandon(self) -> None:
        """Closes the sink. Rows of periods that are not complete are read again by the next drain."""
        super().abandon()
        if self._file is not None:
            self._file.close()
            self._file = None
        self._lock.close()

    def close_inherited(self) -> None:
        """Ends the sink in a forked child: a writer that is closed or freed there would write into the file."""
        super().close_inherited()
        keep_for_ever(self._file)
        self._file = None

    def _keep(self, position: str, complete: RowtimeBound | None) -> None:
        self._kept, self._complete = position, complete
        self._since = self._now()
        self.commit()

    def _write(self) -> None:
        """Files first, then bound and position: the next process would write files without a position again."""
        floor = self._complete.floor if self._complete is not None else None
        if self._open is not None and floor is not None and self._open.end <= floor:
            self._end_period()
        for period in self._done:
            self._publish(period)
        self._done = []
        schema = self._schema.serialize().to_pybytes().hex()
        self._state = {**bound_properties(self._complete), POSITION: str(self._kept), _SCHEMA: schema}
        write_whole(self._work / _STATE, json.dumps(self._state))

    def _spill(self) -> None:
        """Appends the gathered rows to the file of the open period, while the reader reads the next ones."""
        assert self._open is not None
        self._wait()
        if self._file is None:
            self._file = pq.ParquetWriter(self._work / _name(self._open), self._schema, compression="zstd")
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
        self._done.append(self._open)
        self._open = self._file = None

    def _publish(self, period: Period) -> None:
        made, folder = self._work / _name(period), self._root / period.folder
        folder.mkdir(parents=True, exist_ok=True)
        _sync(made)
        made.replace(folder / made.name)
        while folder != self._root:
            _sync(folder)
            folder = folder.parent
        _sync(folder)

    def _locked(self) -> Descriptor:
        try:
            self._work.mkdir(parents=True, exist_ok=True)
            with no_fork():
                lock = Descriptor(os.open(self._work / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666))
        except OSError as error:
            raise StoreUnavailableError(f"{self.target} cannot be written: {error}", path=self.target) from error
        try:
            fcntl.flock(lock.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pid = os.pread(lock.fd, 100, 0).decode()
            lock.close()
            raise StoreUnavailableError(
                f"Another drain writes to {self.target}: process {pid or '(starting)'}. End it first.",
                path=self.target,
                pid=pid,
            ) from None
        os.ftruncate(lock.fd, 0)
        os.pwrite(lock.fd, str(os.getpid()).encode(), 0)
        return lock

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


def read_root_state(target: str) -> dict[str, str]:
    """Bound and position of the folders of a target, with or without a pattern."""
    return read_state(Path(split_pattern(target.removeprefix("parquet:"))[0]))


def read_state(root: Path) -> dict[str, str]:
    """Bound and position of the folders below ``root``; empty if no drain has written there."""
    try:
        state: dict[str, str] = json.loads((root / FOLDER / _STATE).read_text())
    except FileNotFoundError:
        return {}
    return state


def write_whole(file: Path, text: str) -> None:
    """Replaces a file: after a crash it has the old text or the new one."""
    new = file.with_suffix(".new")
    new.write_text(text)
    _sync(new)
    new.replace(file)
    _sync(file.parent)


def _name(period: Period) -> str:
    start = RowtimeBound.fromFloor(max(period.start, 1)).time
    return f"rows-{start:%Y%m%dT%H%M}.parquet"


def _sync(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _disordered(target: str) -> InvalidOptionError:
    return InvalidOptionError(
        f"Rows for {target} must come sorted by rowtime, so that a period is complete. Read the stream with "
        "order='rowtime', and drain into nothing else beside it.",
        option="order",
    )
