"""The state of a stream's log: its row in ``rowtime.heads``, which every transaction locks, and which orders them."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Any

from spark_rowtime.store.cells import COUNT, SHIFT, TIME, TIME_OR_NONE, Cells
from spark_rowtime.store.position import Head
from spark_rowtime.store.postgres.strange_rows import require
from spark_rowtime.store.steady_clock import Reading


@dataclass(slots=True)
class LogState:
    """The columns of ``rowtime.heads``, besides the stream's id and name."""

    seq: int
    floor: int | None
    largest: int | None
    rows: int
    boot: str | None
    """The run of the clock that ``ahead`` applies to; None: nothing was committed yet."""
    ahead: int
    """What is added to a reading of the clock: see Uptime."""
    stamp: int
    """The largest uptime of a transaction."""
    due: int | None
    """Until this uptime no lease ends and no producer becomes idle. It may be earlier than necessary."""
    attached: int
    rejected: int
    forgotten: int
    forgotten_accepted: int
    forgotten_rejected: int
    forgotten_epoch: int
    rejections: int
    """The number of the newest rejection."""
    rejected_bytes: int
    rejected_removed: int
    train_bytes: int
    """The bytes of all trains that are kept."""
    cleaned: int | None
    """The uptime at which a committing process has last removed old trains."""
    horizon: int
    horizon_floor: int | None
    horizon_largest: int | None
    horizon_rows: int
    era: int
    """The seq at which the era began; see :mod:`spark_rowtime.store.postgres.eras`."""

    @property
    def head(self) -> Head:
        """The end of the log."""
        return Head(self.seq, self.floor, self.largest, self.rows)

    @property
    def beginning(self) -> Head:
        """The last removed event."""
        return Head(self.horizon, self.horizon_floor, self.horizon_largest, self.horizon_rows)

    def due_at(self, uptime: int) -> None:
        """Notes that something may be due after ``uptime``."""
        self.due = uptime if self.due is None else min(self.due, uptime)


COLUMNS = [field.name for field in fields(LogState)]
_VALUES = attrgetter(*COLUMNS)
CLOCK = (
    "extract(epoch FROM pg_postmaster_start_time())::text, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
)
"""The clock of the database: since when the server has run, and the time, in microseconds."""
NEWEST = "ORDER BY era DESC LIMIT 1"
"""Without it the server would look at each old version of the row that a transaction may still see; see ``eras``."""
SELECT = f"SELECT {', '.join(COLUMNS)}, {CLOCK} FROM rowtime.heads WHERE stream = %s AND name = %s {NEWEST}"  # noqa: S608
LOCK = f"{SELECT} FOR UPDATE"
UPDATE = (
    f"UPDATE rowtime.heads SET ({', '.join(COLUMNS)}) = ({', '.join(['%s'] * len(COLUMNS))}) "  # noqa: S608
    "WHERE stream = %s AND era = %s"
)
POSITION = f"SELECT seq, floor, largest, rows FROM rowtime.heads WHERE stream = %s AND name = %s {NEWEST}"  # noqa: S608

_CELLS = Cells(
    COLUMNS,
    **dict.fromkeys(("seq", "rows", "rejections", "horizon", "horizon_rows"), COUNT),
    **dict.fromkeys(("floor", "largest", "horizon_floor", "horizon_largest"), TIME_OR_NONE),
    ahead=SHIFT,
    stamp=TIME,
)
_POSITION_CELLS = Cells(Head._fields, seq=COUNT, floor=TIME_OR_NONE, largest=TIME_OR_NONE, rows=COUNT)


def loaded(row: Sequence[Any]) -> tuple[LogState, Reading]:
    """Returns the head, and the reading of the database's clock, that SELECT or LOCK gave.

    Raises StoreCorruptError if the row is none that a store writes.
    """
    require(_CELLS, row, "heads")
    *columns, boot, micros = row
    return LogState(*columns), Reading(boot, micros)


def position(row: Sequence[Any]) -> Head:
    """Returns the end of the log in a row of POSITION, or in one of an event."""
    require(_POSITION_CELLS, row, "heads or events")
    return Head(*row)


def values(head: LogState) -> tuple[Any, ...]:
    """Returns the values for UPDATE, apart from the stream."""
    found: tuple[Any, ...] = _VALUES(head)
    return found
