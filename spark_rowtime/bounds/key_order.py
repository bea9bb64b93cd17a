"""InOrderPer: rows are in order per value of a column, in any order across values."""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from spark_rowtime.bounds.bound import stronger
from spark_rowtime.bounds.key_floors import KeyFloors
from spark_rowtime.bounds.key_parts import UNKNOWN, Floors, KeyChanges, KeyParts
from spark_rowtime.bounds.train import Timed
from spark_rowtime.bounds.verdict import Disorder, Verdict
from spark_rowtime.errors import InvalidOptionError
from spark_rowtime.types.schema import ROWTIME
from spark_rowtime.types.short_repr import short_repr


class _Found(NamedTuple):
    """Rows, and the slot of each row's value; -1 for a value that has none."""

    rows: pa.RecordBatch
    slots: Floors


class InOrderPer(Disorder):
    """``inOrderPer=column``: each value of the column has its own bound, that of its last row.

    A row is late below its value's bound or below the floor in force before the call. The producer's bound is the
    weakest of the values known. A value is known from its first row, or from a bound for it, until it is closed, or
    lies more than ``idle`` microseconds of rowtime below the largest: then it does not count until it sends again.
    NULL is a value.

    Law (*weakest value*): the producer's floor is the least floor of the values known, unless a floor for all values
    is above it.
    """

    one_by_one = True

    def __init__(self, schema: pa.Schema, column: str, idle: int | None = None) -> None:
        kind = _kind(schema, column)
        self.column, self._kind, self._idle = column, kind, idle
        self._index: int = schema.get_field_index(column)
        self.declaration = json.dumps({"inOrderPer": column} | ({} if idle is None else {"keyIdle": idle}))
        self.keys = KeyFloors(kind)
        self._base = self._largest = 0
        self._found: _Found | None = None

    @property
    def index(self) -> int:
        """The position of the column in the schema."""
        return self._index

    def judge(self, timed: Timed, floor: int | None) -> Verdict:
        self._found = None
        if timed.rises and timed.least >= max(self.keys.peak, floor or 0):
            return Verdict(None, None)
        start = np.maximum(self.keys.at(self._find(timed.rows)), floor or 0)
        early = bool((timed.micros < start).any())
        if timed.rises and not early:
            return Verdict(None, None)
        codes = self._codes(timed.rows)
        if not early and _in_order(codes, timed.micros):
            return Verdict(None, None)
        reached = _reached(codes, timed.micros, start)
        fits = timed.micros == reached
        if fits.all():
            return Verdict(None, None)
        why = f"its own {self.column!r}'s earlier rows and bounds, and the bound in force"
        return Verdict(pa.array(fits), None, why, pa.array(reached, pa.int64()))

    def take(self, accepted: pa.RecordBatch) -> None:
        slots, self._found = self._find(accepted), None
        times = accepted.column(ROWTIME).view(pa.int64()).to_numpy()
        self.keys.set(accepted.column(self.column), slots, times)
        self._largest = max(self._largest, int(times.max(initial=0)))
        self._let_idle_go()

    def weakest(self) -> int | None:
        """The producer's floor: that of its weakest value, or the bound for all values; None if there is neither."""
        return stronger(self._base or None, self.keys.weakest())

    def promise(self, floor: int) -> None:
        """Raises the floors of all values, known or not."""
        self._base = max(self._base, floor)

    def floor_of(self, key: Any) -> int | None:
        """The floor of one value; None if nothing is promised for it."""
        return stronger(self._base or None, self.keys.of(key))

    def said(self, key: Any) -> int | None:
        """The floor of one value, if it has been raised since the state was restored."""
        return self.keys.raised(key)

    def promise_of(self, key: Any, floor: int) -> None:
        """Raises the floor of one value, which is known from now on."""
        floor = max(floor, self.floor_of(key) or 0)
        self.keys.set_one(key, floor)
        self._largest = max(self._largest, floor)
        self._let_idle_go()

    def close(self, key: Any) -> None:
        """Lets a value go: it does not count until it sends again."""
        if key in self.keys.slots:
            self.keys.remove(self.keys.slots[key])

    def key(self, value: Any) -> Any:
        """Returns ``value`` as the column holds it; InvalidOptionError if the column cannot hold it."""
        try:
            held = pa.array([value], self._kind).to_pylist()[0]
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            held = None
        if held != value or isinstance(held, bool) != isinstance(value, bool):
            raise InvalidOptionError(
                f"{short_repr(value)} is no value of the column {self.column!r}, which is {self._kind}.",
                column=self.column,
            )
        return held

    def latest(self) -> int | None:
        """The largest rowtime with which a row makes no value idle; None: no row does."""
        weakest = self.weakest()
        return None if self._idle is None else (weakest or 0) + self._idle

    def state(self) -> str:
        return json.dumps({"base": self._base, "largest": self._largest})

    def changes(self) -> KeyChanges | None:
        return self.keys.changes()

    def landed(self, changes: KeyChanges) -> None:
        self.keys.landed(changes)

    def restore(self, state: str, parts: Sequence[bytes] = ()) -> None:
        found = json.loads(state) if state else {}
        self._base, self._largest = found.get("base", 0), found.get("largest", 0)
        self.keys = KeyFloors(self._kind)
        self.keys.restore(parts)

    def _let_idle_go(self) -> None:
        """Lets the values go that lie too far behind the largest.

        The largest does not have the rows that were taken one by one: they made no value idle; see ``latest``.
        """
        if self._idle is None or self._base >= self._largest - self._idle:
            return
        self.keys.remove(np.flatnonzero(self.keys.floors < self._largest - self._idle))

    def _find(self, rows: pa.RecordBatch) -> Floors:
        """The slot of each row's value, which is not looked up again for the rows that were judged last."""
        if self._found is None or self._found.rows is not rows:
            self._found = _Found(rows, self.keys.find(rows.column(self.column)))
        return self._found.slots

    def _codes(self, rows: pa.RecordBatch) -> Floors:
        """For each row a number that stands for its value."""
        slots = self._find(rows)
        if slots.min(initial=0) >= 0:
            return slots
        coded = rows.column(self.column).dictionary_encode(null_encoding="encode")
        codes: Floors = coded.indices.to_numpy().astype(np.int64)
        return codes


def declares_keys(declaration: str) -> bool:
    """Whether a producer with this declaration has a key column."""
    return declaration.startswith('{"inOrderPer": ')


def weakest_known(
    declaration: str, schema: pa.Schema, parts: Sequence[bytes], most: int
) -> tuple[int, list[tuple[Any, int]]]:
    """Returns how many values a producer with a key column knows, and the weakest of them with their floors."""
    kind = _kind(schema, json.loads(declaration)["inOrderPer"])
    values, floors = KeyParts(kind).unpack(parts) if parts else (pa.array([], kind), np.empty(0, np.int64))
    known = np.flatnonzero(floors != UNKNOWN)
    few = known
    if len(known) > most:
        few = known[floors[known] <= np.partition(floors[known], most)[most]]
    pairs = zip(values.take(pa.array(few)).to_pylist(), floors[few].tolist(), strict=True)
    return len(known), sorted(pairs, key=lambda pair: (pair[1], str(pair[0])))[:most]


def _in_order(codes: Floors, times: Floors) -> bool:
    """Whether no time is below that of an earlier row with the same code."""
    order = _by_code(codes)
    ordered, same = times[order], codes[order]
    return not ((ordered[1:] < ordered[:-1]) & (same[1:] == same[:-1])).any()


def _by_code(codes: Floors) -> Floors:
    """The rows in the order of their codes, which are below 2**32; those of one code in their own order.

    Numpy sorts numbers of 16 bits by radix, which takes a fraction of the time.
    """
    order: Floors = np.argsort(codes.astype(np.uint16), kind="stable")
    if codes.max(initial=0) > np.iinfo(np.uint16).max:
        order = order[np.argsort((codes[order] >> 16).astype(np.uint16), kind="stable")]
    return order


def _reached(codes: Floors, times: Floors, start: Floors) -> Floors:
    """For each row, the largest time of its value up to it, and at least ``start``, which rows of one value share.

    The times are replaced by their ranks, so that a running maximum over rows sorted by value cannot overflow.
    """
    distinct, ranks = np.unique(np.maximum(times, start), return_inverse=True)
    order = _by_code(codes)
    offsets = codes[order] * len(distinct)
    reached = np.empty(len(codes), np.int64)
    reached[order] = np.maximum.accumulate(offsets + ranks.ravel()[order]) - offsets
    found: Floors = distinct[reached]
    return found


def _kind(schema: pa.Schema, column: Any) -> pa.DataType:
    if not isinstance(column, str) or column not in schema.names:
        raise InvalidOptionError(f"inOrderPer={column!r} is no column; there are {schema.names}.", column=str(column))
    kind, types = schema.field(column).type, pa.types
    known = types.is_string(kind) or types.is_binary(kind) or types.is_integer(kind) or types.is_boolean(kind)
    if not known and not types.is_date(kind) and not types.is_decimal(kind):
        raise InvalidOptionError(
            f"inOrderPer={column!r}: rows are not told apart by a column of type {kind}; it must be a STRING, BINARY, "
            "BOOLEAN, DATE, DECIMAL or integer column.",
            column=column,
        )
    return kind
