"""RowBuffer: rows of plain Python values, checked one by one on arrival and converted to Arrow by column."""

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Any

import pyarrow as pa

from spark_rowtime.bounds.key_order import InOrderPer
from spark_rowtime.producer.interrupt_guard import InterruptGuard
from spark_rowtime.types.schema import ROWTIME, TIMESTAMP
from spark_rowtime.types.timestamps import EPOCH, LARGEST, LEAST
from spark_rowtime.types.values import LARGEST_FLOAT


class RowBuffer:
    """Takes the rows that need no further check, in a fraction of a microsecond each.

    ``take(row)`` returns True if it has taken the row. It returns False, and changes nothing, if the row is of
    another form, its rowtime is outside the open range, or there is no room. The caller then uses the slow path,
    which takes the row or raises an error that explains what is wrong with it.

    Law (*surely*): a row that was taken can always be converted to Arrow later, whatever rows are next to it, with
    the same result as the slow path. ``rises``: no row may have a rowtime below that of the row before it.
    ``naive``: a time without a zone is in UTC; if False, such a time needs the slow path.

    ``keys``: no row may have a rowtime below the floor of its value of a column, which its rowtime then becomes. While
    no row is below the largest floor, nothing else is looked at, and the floors are raised later, many at a time. From
    the first row that is, until the buffer is opened again, the floor of each row's value is looked up. ``guard``
    encloses what must not be interrupted.
    """

    def __init__(
        self,
        schema: pa.Schema,
        *,
        rises: bool,
        naive: bool = True,
        keys: InOrderPer | None = None,
        guard: InterruptGuard | None = None,
    ) -> None:
        self._schema, self._at = schema, schema.get_field_index(ROWTIME)
        self._columns: list[list[Any]] = [[] for _ in schema]
        self._times = self._columns[self._at]
        self.take: Callable[[Any], bool]
        self._keys, self._guard = keys, guard or InterruptGuard()
        self._limits = timedelta.max, timedelta.max, 0
        self._by_value = False
        """Whether the floor of each row's value is looked up, and is in the list ``one_by_one`` of ``keys``."""
        self._settled: tuple[list[pa.Array], list[pa.Array]] = [], []
        """The rowtimes and the values of the first rows, which are in the floors of ``keys``."""
        make = _maker(schema, rises, naive, keys.index if keys else None)
        self.take, self._set = make(schema.names, self._columns, self._go_by_value)

    def __len__(self) -> int:
        return len(self._times)

    def open(self, floor: int | None, ceiling: int | None, rows: int) -> None:
        """Takes rows of [floor, ceiling] (microseconds; None: the legal limit) until the buffer holds ``rows`` rows."""
        latest = LARGEST if ceiling is None else ceiling
        most = None if self._keys is None else self._keys.latest()
        latest = latest if most is None else min(latest, most)
        self._limits = _since_epoch(floor or LEAST), _since_epoch(latest), rows
        self._by_value = False
        self._set(*self._limits, _since_epoch(self._keys.keys.peak if self._keys else 0))

    def _go_by_value(self) -> bool:
        """From now on, looks up the floor of each row's value; returns True."""
        self.settle()
        assert self._keys is not None
        keys, self._by_value = self._keys.keys, True
        self._set(*self._limits, timedelta.max, keys.slots, keys.one_by_one(), keys.floors.data)
        return True

    def shut(self) -> None:
        """Takes no rows until the buffer is opened again."""
        self._limits = timedelta.max, timedelta.max, 0
        self._set(*self._limits)

    def mend(self) -> None:
        """Repairs the buffer after an interrupt in ``take``: removes a row that is not in all columns, and shuts it."""
        self.shut()
        rows = min(map(len, self._columns))
        for column in self._columns:
            del column[rows:]
        if self._keys is not None:
            self._keys.keys.forget_one_by_one()
            self._by_value = False

    def last(self) -> int | None:
        """The rowtime of the last row taken, in microseconds; None while there is none."""
        return self._times[-1] // _MICROSECOND if self._times else None

    def settle(self) -> None:
        """Raises the floors of ``keys`` to the rowtimes of the rows; until then they do not have the latest rows."""
        if self._keys is None or (done := sum(map(len, self._settled[0]))) == len(self._times):
            return
        at, keys = self._keys.index, self._keys.keys
        times = pa.array(self._times[done:], pa.duration("us"))
        chunks, floors = _chunks(self._columns[at][done:], self._schema.field(at).type), times.view(pa.int64())
        with self._guard:
            for values in chunks:
                first, floors = floors[: len(values)].to_numpy(), floors[len(values) :]
                if self._by_value:
                    keys.rise(values, first)
                else:
                    keys.set(values, keys.find(values), first)
            self._settled[0].append(times)
            self._settled[1].extend(chunks)

    def drain(self) -> list[pa.RecordBatch]:
        """Removes and returns all rows, in their order: one batch, unless a column is larger than Arrow's 2 GB."""
        self.settle()
        arrays = [self._array(i, field.type) for i, field in enumerate(self._schema)]
        batches: list[pa.RecordBatch] = pa.Table.from_arrays(arrays, schema=self._schema).to_batches()
        self.clear()
        return batches

    def clear(self) -> None:
        """Drops the rows."""
        columns: list[Any] = [*self._columns, *self._settled]
        for column in columns:
            del column[:]

    def _array(self, index: int, kind: pa.DataType) -> Any:
        """A column as Arrow; it is converted here, unless ``settle`` has done so."""
        if index == self._at:
            times = self._settled[0] or [pa.array(self._times, pa.duration("us"))]
            return _joined(times, times[0].type).view(TIMESTAMP)
        if self._keys is not None and index == self._keys.index:
            return _joined(self._settled[1], kind)
        return pa.array(self._columns[index], kind)


_MICROSECOND = timedelta(microseconds=1)
_NAIVE_EPOCH = EPOCH.replace(tzinfo=None)
_EXACT_IN_FLOAT = 1 << 53

_SURE = {
    pa.bool_(): "type({v}) is bool",
    pa.string(): "type({v}) is str and ({v}.isascii() or encodes({v}))",
    pa.binary(): "type({v}) is bytes",
    pa.float32(): "type({v}) is float and -largest_float < {v} < largest_float",
    pa.float64(): "type({v}) is float or type({v}) is int and -whole <= {v} <= whole",
    pa.date32(): "type({v}) is date",
    pa.timestamp("us"): "type({v}) is datetime and {v}.tzinfo is None",
    TIMESTAMP: "type({v}) is datetime and ({v}.tzinfo is UTC or {v}.tzinfo is None)",
    pa.int8(): "type({v}) is int and -0x80 <= {v} < 0x80",
    pa.int16(): "type({v}) is int and -0x8000 <= {v} < 0x8000",
    pa.int32(): "type({v}) is int and -0x80000000 <= {v} < 0x80000000",
    pa.int64(): "type({v}) is int and -0x8000000000000000 <= {v} < 0x8000000000000000",
}
"""By type of the column: the condition under which a value certainly fits. Other types always use the slow path."""

_TEMPLATE = """
def make(names, columns, go_by_value):
    {names}, = names
    {columns}, = columns
    least = latest = peak = slots = times = floors = None
    most = 0

    def take(row):
        nonlocal {moved}
        try:
            kind = type(row)
            if kind is tuple or kind is list:
                {values}, = row
            elif kind is dict and len(row) == {count}:
                {values}, = {items},
            else:
                return False
            if (
                type({rowtime}) is datetime
                and least <= (time := {rowtime} - {epoch}) <= latest
                and len({times}) < most
                {checks}
            ):
                {rise}
                {appends}
                {key}
                return True
        except (TypeError, ValueError, KeyError, OverflowError):
            pass
        return False

    def set_(floor, ceiling, rows, peak_=None, slots_=None, times_=None, floors_=None):
        nonlocal least, latest, most, peak, slots, times, floors
        least, latest, most, peak, slots, times, floors = floor, ceiling, rows, peak_, slots_, times_, floors_

    set_(never, never, 0)
    return take, set_
"""
"""The source of a function for one schema; straight-line code is fast. No name or value of a user gets into it."""
_KEY_CHECK = (
    "and (slots is None and (peak <= time or not go_by_value()) or slots is not None and "
    "(last <= time if (last := times[slot := slots[v{key}]]) is not None else floors[slot] <= time // microsecond))"
)
_KEY_TAKES = """if slots is None:
                    peak = time
                else:
                    times[slot] = time"""


@lru_cache(maxsize=64)
def _maker(
    schema: pa.Schema, rises: bool, naive: bool, key: int | None
) -> Callable[..., tuple[Callable[[Any], bool], Callable[..., None]]]:
    """``make`` of the template for ``schema``: column i is ``v<i>``, its name ``n<i>``, its list ``c<i>``.

    ``key``: the column whose values have slots, once ``go_by_value`` has set these; a value without one is a KeyError.
    A value's floor is in ``times``, or, where None is there, in ``floors``.
    """
    at, count = schema.get_field_index(ROWTIME), len(schema)
    checks = [f"and ({_sure(field, f'v{i}', naive)})" for i, field in enumerate(schema) if i != at]
    if key is not None:
        checks.append(_KEY_CHECK.format(key=key))
    appends = [f"c{i}.append({'time' if i == at else f'v{i}'})" for i in range(count)]
    source = _TEMPLATE.format(
        names=_each("n{}", count),
        columns=_each("c{}", count),
        values=_each("v{}", count),
        items=_each("row[n{}]", count),
        count=count,
        rowtime=f"v{at}",
        epoch=f"(naive_epoch if v{at}.tzinfo is None else epoch)" if naive else "epoch",
        times=f"c{at}",
        checks="\n                ".join(checks),
        moved="least" if key is None else "peak",
        rise="least = time" if rises else "",
        key=_KEY_TAKES if key is not None else "",
        appends="\n                ".join(appends),
    )
    scope = {
        "date": date,
        "datetime": datetime,
        "UTC": UTC,
        "epoch": EPOCH,
        "naive_epoch": _NAIVE_EPOCH,
        "never": timedelta.max,
        "microsecond": _MICROSECOND,
        "encodes": _encodes,
        "whole": _EXACT_IN_FLOAT,
        "largest_float": LARGEST_FLOAT,
    }
    exec(compile(source, "<rows of one schema>", "exec"), scope)  # noqa: S102
    make: Callable[..., Any] = scope["make"]  # type: ignore[assignment]
    return make


def _chunks(values: list[Any], kind: pa.DataType) -> list[pa.Array]:
    """The values as Arrow: one array, unless they are larger than its 2 GB."""
    found = pa.array(values, kind)
    return found.chunks if isinstance(found, pa.ChunkedArray) else [found]


def _joined(pieces: list[pa.Array], kind: pa.DataType) -> Any:
    """The pieces of a column in one, unless they are larger than Arrow's 2 GB."""
    try:
        return pa.concat_arrays(pieces)
    except pa.ArrowInvalid:
        return pa.chunked_array(pieces, kind)


def _each(form: str, count: int) -> str:
    return ", ".join(form.format(i) for i in range(count))


def _sure(field: pa.Field, value: str, naive: bool) -> str:
    known = _SURE if naive else {**_SURE, TIMESTAMP: "type({v}) is datetime and {v}.tzinfo is UTC"}
    sure = known.get(field.type, "False").format(v=value)
    return f"{sure} or {value} is None" if field.nullable else sure


def _encodes(text: str) -> bool:
    """Whether UTF-8 can encode the text: it cannot encode half of a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _since_epoch(micros: int) -> timedelta:
    return timedelta(microseconds=micros)
