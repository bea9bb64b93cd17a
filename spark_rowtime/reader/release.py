"""Release by position: which rows a reader gets next, and which bound holds for the rest.

RowReader and Spark's source both step through a stream with this. Nothing is buffered between steps,
so that a replay gives the same rows and the same bound.
"""

import json
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from spark_rowtime.bounds.bound import RowtimeBound, is_end, weaker
from spark_rowtime.errors import DataLostError, InvalidOptionError
from spark_rowtime.store.base import Store, TrainReader
from spark_rowtime.store.cells import TIME_OR_NONE
from spark_rowtime.store.commits import Slice
from spark_rowtime.store.difference import rows_between
from spark_rowtime.store.position import Head, Position
from spark_rowtime.store.retention import lost, lost_error, require_kept, require_same, require_there
from spark_rowtime.types.arguments import to_choice
from spark_rowtime.types.json_values import load
from spark_rowtime.types.schema import rowtime_micros
from spark_rowtime.types.short_repr import short_repr
from spark_rowtime.types.timestamps import SECOND_MICROS, show_micros, to_interval

ORDERS = ("arrival", "rowtime")


@dataclass(frozen=True, slots=True)
class Release:
    """The order in which a stream's rows are handed out, and when.

    Laws (tests/unit/test_release.py, over random streams):

    - *exactly once*: the steps from the start to a position hand out each row in its region once.
    - *floor*: a position's floor is min(the stream's floor at seq, the least rowtime not handed out).
    - *grow*: no coordinate ever falls.
    - *moves for a reason*: a step goes on only where it hands out rows or the floor has moved.

    ``hold`` and ``since`` are in microseconds; rows below ``since`` are left out. The limits ``max_rows`` and
    ``max_bytes`` are soft: a step ends between index entries, and contains at least one.
    """

    order: str = "rowtime"
    hold: int | None = None
    since: int | None = None
    max_rows: int | None = None
    max_bytes: int | None = None

    def earliest(self, store: Store) -> Position:
        """The position before the first row that is left; DataLostError if rows from ``since`` on were removed."""
        if (lost := self.lost(store)) is not None:
            raise lost
        return self.first_left(store)

    def lost(self, store: Store) -> DataLostError | None:
        """The error that says that rows from ``since`` on were removed; None if they are there."""
        horizon = store.horizon()
        if self.since is not None and horizon.largest is not None and horizon.largest >= self.since:
            return lost_error(f"the rows from {show_micros(self.since)} on", horizon, store.path)
        return None

    def first_left(self, store: Store) -> Position:
        """The position before the first row that is left."""
        return self._start(store.horizon())

    def _start(self, horizon: Head) -> Position:
        return Position(horizon.seq, None if self._whole() else (horizon.largest or -1) + 1, None)

    def latest(self, store: Store) -> Position:
        """The position after all rows that this order would hand out now."""
        head, start = store.head(), self._start(store.horizon())
        return self._marked(store, start, self._position(store, start, head, self._cut(head)))

    def step(self, store: Store, at: Position, upto: int | None = None) -> Position:
        """The next position after ``at``, not beyond seq ``upto``; ``at`` itself if there is nothing new."""
        require_kept(at, store.horizon(), store.path)
        head = store.head()
        require_there(at, head, store.path)
        self._require_held(at, head)
        if upto is not None:
            head = store.at(max(upto, at.seq))
        cut = self._cut(head)
        read = at.cut is None or (cut is not None and cut <= at.cut)  # false after a change of hold or limits
        if head.seq <= at.seq and read and not self._limited():
            return at
        start = at
        for stage in self._stages(store, at, head):
            if self._behind(stage, at):
                continue
            target = self._position(store, start, stage, self._cut(stage))
            to = self._within_limits(store, start, target)
            while not (changed := self._changed(store, at, to)) and to != target:
                to = self._within_limits(store, to, target)
            if changed:
                return self._marked(store, at, to)
            start = to
        return at

    def _marked(self, store: Store, at: Position, to: Position) -> Position:
        """``to``, with the time of its event, if the log is still that in which the reader has come to ``at``."""
        made = store.made(at.seq, to.seq)
        require_same(at, made, store.path)
        return to._replace(made=made.get(to.seq))

    def slices(self, store: Store, after: Position, upto: Position) -> list[Slice]:
        """The trains to read between two positions."""
        pieces = store.slices(after, upto)
        return pieces if self.since is None else [p for p in pieces if p.largest >= self.since]

    def rows(self, trains: TrainReader, piece: Slice, after: Position, upto: Position) -> pa.RecordBatch:
        """The rows of one of these trains that lie between the positions."""
        rows = rows_between(trains.read(piece), piece.seq, after, upto)
        if self.since is None or piece.least >= self.since:
            return rows
        return rows.filter(pc.greater_equal(rowtime_micros(rows), self.since))

    def _require_held(self, at: Position, head: Head) -> None:
        """Refuses a position without a cut, behind which no row is held back, unless the stream is complete.

        At the end of time no row is held, and a limit may then give a position without a cut before the end.
        """
        complete = is_end(head.floor)
        if self.hold is not None and at.cut is None and not complete:
            raise InvalidOptionError(
                f"hold ({timedelta(microseconds=self.hold)}) was added, but this position in order={self.order} was "
                f"read without hold: all rows up to seq {at.seq} have been handed out, and hold would have no effect. "
                "Leave hold out, or start without the position: a query with a new checkpoint, a reader with "
                "start='earliest' or a time.",
                option="hold",
                seq=at.seq,
            )

    def _whole(self) -> bool:
        return self.order == "arrival" and self.hold is None

    def _limited(self) -> bool:
        return self.max_rows is not None or self.max_bytes is not None

    def _stages(self, store: Store, at: Position, head: Head) -> Iterator[Head]:
        """The log as it was after every ``max_rows`` rows from ``at`` on, so that a long log is read in pieces.

        The cost of a step thus depends on the rows that it hands out, not on the length of the log.
        """
        stage = store.at(at.seq)
        while self.max_rows is not None and stage.rows + self.max_rows < head.rows:
            later = range(stage.seq + 1, head.seq)
            most = stage.rows + self.max_rows
            found = bisect_left(later, most, key=lambda seq: store.at(seq).rows)
            if found == len(later):
                break
            stage = store.at(later[found])
            yield stage
        yield head

    def _behind(self, stage: Head, at: Position) -> bool:
        """Whether ``at`` has a later cut than ``stage``, as after a ``gc``: rows would be handed out too early."""
        cut = self._cut(stage)
        return cut is not None and at.cut is not None and cut < at.cut

    def _cut(self, head: Head) -> int | None:
        """The cut at ``head``: rows below it may be handed out; None: all rows."""
        cuts = []
        if self.order == "rowtime":
            cuts.append(0 if head.floor is None else head.floor + 1)
        if self.hold is not None and not is_end(head.floor):
            cuts.append(max(head.largest or 0, head.floor or 0) - self.hold + 1)
        return min(cuts) if cuts else None

    def _position(self, store: Store, at: Position, head: Head, cut: int | None) -> Position:
        cut = None if cut is None or at.cut is None else max(cut, at.cut)
        seq = max(head.seq, at.seq)
        if cut is None or head.floor is None or cut > head.floor:
            return Position(seq, cut, head.floor)
        return Position(seq, cut, weaker(head.floor, least_sent(store, seq, cut) or head.floor))

    def _changed(self, store: Store, at: Position, to: Position) -> bool:
        pieces = self.slices(store, at, to) if to.floor == at.floor else []
        return to.floor != at.floor or any(self._has_rows(store, piece, at, to) for piece in pieces)

    def _has_rows(self, store: Store, piece: Slice, at: Position, to: Position) -> bool:
        """Whether a row of the train lies between the positions.

        The train's least and largest rowtime decide it where they can; otherwise its rows are read, because a train
        may span the whole difference without a row in it.
        """
        if to.cut is None or piece.largest < to.cut:
            return True
        whole = self.since is None or piece.least >= self.since
        if whole and (piece.seq > at.seq or (at.cut is not None and piece.least >= at.cut)):
            return True
        return bool(self.rows(store, piece, at, to).num_rows)

    def _within_limits(self, store: Store, at: Position, target: Position) -> Position:
        pieces = self.slices(store, at, target) if self._limited() else []
        if self._fitting(pieces) == len(pieces):
            return target
        if target.cut is None:
            seq = max(pieces[self._fitting(pieces) - 1].seq, at.seq)  # rows that were held back before go in one step
            return Position(seq, None, store.at(seq).floor)
        starts = [max(p.least, at.cut or 0) for p in pieces]
        order = sorted(range(len(pieces)), key=starts.__getitem__)
        first_left = self._fitting([pieces[i] for i in order])
        last_start = starts[order[first_left - 1]]
        cut = next((starts[i] for i in order[first_left:] if starts[i] > last_start), target.cut)
        return Position(target.seq, cut, weaker(target.floor, cut)) if cut < target.cut else target

    def _fitting(self, pieces: list[Slice]) -> int:
        """How many of ``pieces`` are within the limits, but at least one."""
        rows = size = 0
        for count, piece in enumerate(pieces):
            rows, size = rows + piece.rows, size + piece.size
            if (rows > (self.max_rows or rows) or size > (self.max_bytes or size)) and count:
                return count
        return len(pieces)


def least_sent(store: Store, seq: int, cut: int) -> int | None:
    """The least rowtime >= ``cut`` in the trains up to ``seq``; None if there is none.

    The search uses ever longer spans from ``cut`` on, so that trains far ahead cost nothing. If rows were
    removed, the result is the least rowtime that they may have had.
    """
    if lost(Position(seq, cut, None), store.horizon()):
        return cut
    end, reach, largest = cut, SECOND_MICROS, store.at(seq).largest or 0
    while end <= largest:
        end, reach = cut + reach, reach * 16
        near = store.slices(Position(seq, cut, None), Position(seq, end, None))
        found = min((_least_from(store, piece, cut) for piece in near), default=end)
        if found < end:
            return found
    return None


def least_left(store: Store, seq: int) -> int | None:
    """The least rowtime in the trains up to ``seq`` that retention has left; None if there is none."""
    while True:
        removed = store.horizon().seq
        with suppress(DataLostError):  # another process has removed more meanwhile
            left = store.slices(Position(removed, None, None), Position(max(seq, removed), None, None))
            return min((piece.least for piece in left), default=None)


def _least_from(store: Store, piece: Slice, cut: int) -> int:
    if piece.least >= cut:
        return piece.least
    times = rowtime_micros(store.read(piece))
    return int(pc.min(times.filter(pc.greater_equal(times, cut))).as_py())


def release(order: str, hold: Any = None, *, max_rows: int | None = None, max_bytes: int | None = None) -> Release:
    """Makes a Release of checked arguments; InvalidOptionError names the wrong one."""
    return Release(to_choice(order, "order", *ORDERS), to_interval(hold, "hold"), None, max_rows, max_bytes)


def start_bound(start: Any, name: str = "start", others: str = "'earliest', 'latest', a position") -> int:
    """Converts a starting time (RowtimeBound, datetime, ISO string ...) to a floor in microseconds.

    ``others``: what the argument ``name`` may be besides.
    """
    try:
        return RowtimeBound(start).floor
    except InvalidOptionError as error:
        raise InvalidOptionError(f"{name} must be {others} or a time: {error}", option=name) from None


def dump_position(position: Position, stream: str, order: str) -> dict[str, Any]:
    """A position as a flat JSON object, with the ``stream`` and the ``order`` that it belongs to."""
    fields = {"stream": stream, "order": order, **position._asdict()}
    return fields if position.made is not None else {name: fields[name] for name in fields if name != "made"}


def is_position(value: str) -> bool:
    """Whether a text has the form of a reader's position, of whatever stream."""
    return _fields_or_none(value) is not None


def _position_fields(value: dict[str, Any] | str) -> dict[str, Any]:
    fields = _fields_or_none(value)
    if fields is None:
        raise InvalidOptionError(
            f"start={short_repr(value)} is not a position of a reader. Give a value that a reader returned.",
            option="start",
        )
    return fields


def _fields_or_none(value: dict[str, Any] | str) -> dict[str, Any] | None:
    try:
        fields = load(value) if isinstance(value, str) else value
    except ValueError:
        return None
    if isinstance(fields, dict) and fields.keys() >= {"stream", "order", "seq", "cut", "floor"}:
        numbers = [fields.get(name) for name in (*Position._fields, "since")]
        whole = all(n is None or (type(n) is int and abs(n) < 1 << 63) for n in numbers)
        if fields["seq"] is not None and whole and TIME_OR_NONE.has(fields.get("made")):
            return fields
    return None


def _beyond_copy(seq: int, shared: int) -> DataLostError:
    return DataLostError(
        f"This reader has read the stream up to seq {seq}, but a copy that has it up to {shared} has taken its place. "
        "What was sent since would be skipped. Bring the newer stream back, or start from the beginning, "
        "queries with a new checkpoint.",
        asked=seq,
        last=shared,
    )


def load_position(
    value: dict[str, Any] | str, stream: str, order: str, ancestors: Mapping[str, int] = MappingProxyType({})
) -> Position:
    """Reads what ``dump_position`` wrote; InvalidOptionError if it is of another stream or another order.

    A position in one of the ``ancestors``, of which the stream is a copy, is one in the stream, too. If it lies beyond
    what both have in common, DataLostError is raised.
    """
    fields = _position_fields(value)
    shared = ancestors.get(fields["stream"])
    if shared is not None and fields["seq"] > shared:
        raise _beyond_copy(fields["seq"], shared)
    if fields["stream"] != stream and shared is None:
        raise InvalidOptionError(
            f"This position belongs to the stream {fields['stream']}, but the stream at this path is {stream}: it was "
            "deleted and created again, the path has changed, the checkpoint is that of another query, or the target "
            "of a drain has another stream's rows. Give a position in this stream, or start without one: a query with "
            "a new checkpoint, a drain into a new target, a reader with start='earliest' or a time.",
            wanted=fields["stream"],
            found=stream,
        )
    if fields["order"] != order:
        raise InvalidOptionError(
            f"This position was read with order={fields['order']}, but is read with order={order} now. Keep the order, "
            "or start without the position: a query with a new checkpoint, a reader with start='earliest' or a time.",
            wanted=fields["order"],
            found=order,
        )
    return Position(fields["seq"], fields["cut"], fields["floor"], fields.get("made"))


def require_by_rowtime(position: str) -> None:
    """Raises InvalidOptionError if the position is not that of a reader in the order of rowtimes."""
    order = _position_fields(position)["order"]
    if order != "rowtime":
        raise InvalidOptionError(
            f"A position of order={order!r} cannot be taken back to a time. Read with order='rowtime'.",
            option="order",
            value=order,
        )


def first_time(position: str) -> int:
    """The rowtime from which a reader that begins at ``position`` gets all rows; 0 if it gets all that there are.

    Rows below it were removed from the stream, or are left out by ``start``.
    """
    fields = _position_fields(position)
    return max(fields["cut"] or 0, fields.get("since") or 0)


def position_since(position: str, time: int) -> str:
    """The position of a reader that leaves out the rows before ``time``, in microseconds."""
    fields = _position_fields(position)
    return json.dumps({**fields, "since": max(time, fields.get("since") or 0)})


def position_before(position: str, time: int) -> str:
    """The position of the same reader before the rows at or after ``time``, in microseconds.

    The bound at ``position`` must have reached ``time``, so that all rows below it have been handed out; the rows from
    it on are handed out again. InvalidOptionError if the reader's order is not "rowtime".
    """
    require_by_rowtime(position)
    fields = _position_fields(position)
    return json.dumps({**fields, "cut": min(fields["cut"], time), "floor": min(fields["floor"], time)})
