"""The order in which a producer's rows may come, and the bound that its rows imply.

One object per sink judges each call: which of its rows are late, and the producer's floor after it.
Its small state is stored as JSON with each commit, and passed on at a takeover.
"""

import json
from collections.abc import Mapping, Sequence
from heapq import heappush, heappushpop, nlargest
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from spark_rowtime.bounds.bound import stronger
from spark_rowtime.bounds.key_order import InOrderPer
from spark_rowtime.bounds.train import Timed
from spark_rowtime.bounds.verdict import Disorder, Verdict
from spark_rowtime.errors import InvalidOptionError
from spark_rowtime.types.arguments import to_count
from spark_rowtime.types.monotone import Amount, show_number, to_amount, whole_numbers
from spark_rowtime.types.schema import ROWTIME

__all__ = ["AnyOrder", "Disorder", "InOrder", "InOrderPer", "KSorted", "Lateness", "Verdict", "declared"]
_LEAST_NUMBER = -(2**63)


class InOrder(Disorder):
    """The default: each row implies a bound at its own rowtime (law 1); equal rowtimes are allowed."""

    declaration, one_by_one, implies = "{}", True, True

    def judge(self, timed: Timed, floor: int | None) -> Verdict:
        if timed.rises and (floor is None or timed.least >= floor):
            return Verdict(None, timed.largest)
        times = _micros(timed.rows.column(ROWTIME))
        reached = pc.cumulative_max(times, start=floor)
        return Verdict(pc.equal(times, reached), reached[-1].as_py(), "its producer's earlier rows and bounds", reached)

    def take(self, accepted: pa.RecordBatch) -> None:
        """Does nothing: the floor is the whole state."""


class AnyOrder(Disorder):
    """``rowsImplyBounds=False``: rows may come in any order at or above the last bound sent, and imply no bound."""

    declaration, one_by_one = '{"rowsImplyBounds": false}', True

    def judge(self, timed: Timed, floor: int | None) -> Verdict:
        if floor is None or timed.least >= floor:
            return Verdict(None, None)
        fits = pc.greater_equal(_micros(timed.rows.column(ROWTIME)), floor)
        bounds = pa.repeat(pa.scalar(floor, pa.int64()), timed.rows.num_rows)
        return Verdict(fits, None, "the bound in force", bounds)

    def take(self, accepted: pa.RecordBatch) -> None:
        """Does nothing: the floor is the whole state."""


class Lateness(Disorder):
    """``lateness``: a row is late if a column is further below its largest value of earlier steps than its lateness.

    A step is one call. The bound is the largest rowtime seen less its lateness, if rowtime has one.
    This is modelled on Feldera's LATENESS. ``columns``: the lateness by column, in the column's unit: microseconds,
    days, or a whole number.
    """

    def __init__(self, columns: Mapping[str, int]) -> None:
        self.columns = dict(columns)
        self.declaration = json.dumps({"lateness": self.columns}, sort_keys=True)
        self.largest: dict[str, int] = {}

    def judge(self, timed: Timed, floor: int | None) -> Verdict:
        rows = timed.rows
        fits, why = AnyOrder().judge(timed, floor).fits, "the bound in force"
        bounds, declared = pa.repeat(pa.scalar(floor, pa.int64()), rows.num_rows), None
        for column, lateness in self.columns.items():
            if column not in self.largest:
                continue
            least = max(self.largest[column] - lateness, _LEAST_NUMBER)
            good = pc.fill_null(pc.greater_equal(whole_numbers(rows.column(column)), least), True)
            if not pc.all(good).as_py():
                shown, below = show_number(rows.column(column).type, least)
                why = f"{shown}, the largest {column!r} of earlier steps less its lateness"
                first = pc.invert(good) if fits is None else pc.and_not(fits, good)
                bounds = pc.if_else(first, pa.scalar(below, pa.int64()), bounds)
                fits = good if fits is None else pc.and_(fits, good)
                declared = first if declared is None else pc.or_(declared, first)
        return Verdict(fits, self._floor(rows if fits is None else rows.filter(fits)), why, bounds, declared)

    def _floor(self, accepted: pa.RecordBatch) -> int | None:
        if ROWTIME not in self.columns:
            return None
        largest = stronger(self.largest.get(ROWTIME), _largest(accepted, ROWTIME))
        return None if largest is None else max(largest - self.columns[ROWTIME], 1)

    def take(self, accepted: pa.RecordBatch) -> None:
        for column in self.columns:
            largest = stronger(self.largest.get(column), _largest(accepted, column))
            if largest is not None:
                self.largest[column] = largest

    def state(self) -> str:
        return json.dumps(self.largest)

    def restore(self, state: str, parts: Sequence[bytes] = ()) -> None:
        del parts
        self.largest = json.loads(state) if state else {}


class KSorted(Disorder):
    """``kSort=k``: every row is at most k positions away from its place in rowtime order.

    The bound is the (k+1)-th largest rowtime seen; there is none before k + 1 rows. (The largest rowtime among
    the rows that have reached their place would reject legal rows.)
    """

    def __init__(self, k: int) -> None:
        self.k = k
        self.declaration = json.dumps({"kSort": k})
        self.top: list[int] = []

    def judge(self, timed: Timed, floor: int | None) -> Verdict:
        top, fits, bounds, reached = sorted(self.top), [], [], floor
        for time in timed.micros.tolist():
            bounds.append(reached)
            fits.append(reached is None or time >= reached)
            if fits[-1]:
                (heappushpop if len(top) > self.k else heappush)(top, time)
                reached = stronger(reached, self._bound(top))
        late = None if all(fits) else pa.array(fits)
        return Verdict(late, self._bound(top), "the k-sort bound", pa.array(bounds, pa.int64()))

    def _bound(self, top: list[int]) -> int | None:
        """The least of the k + 1 largest rowtimes, which are a heap."""
        return top[0] if len(top) > self.k else None

    def take(self, accepted: pa.RecordBatch) -> None:
        self.top = nlargest(self.k + 1, self.top + _micros(accepted.column(ROWTIME)).to_pylist())

    def state(self) -> str:
        return json.dumps(self.top)

    def restore(self, state: str, parts: Sequence[bytes] = ()) -> None:
        del parts
        self.top = json.loads(state) if state else []


def declared(
    schema: pa.Schema,
    *,
    rowsImplyBounds: bool = True,
    lateness: Amount | Mapping[str, Amount] | None = None,
    kSort: int | None = None,
    inOrderPer: str | None = None,
    keyIdle: int | None = None,
) -> Disorder:
    """The Disorder that openSink's arguments declare; InvalidOptionError if they contradict each other.

    ``keyIdle`` is in microseconds.
    """
    options = (("lateness", lateness), ("kSort", kSort), ("inOrderPer", inOrderPer))
    given = [name for name, value in options if value is not None]
    given += [] if rowsImplyBounds else ["rowsImplyBounds=False"]
    if len(given) > 1:
        raise InvalidOptionError(
            f"{' and '.join(given)} exclude each other: each declares how the bound is computed. Give one.",
            option=given[0],
        )
    if keyIdle is not None and inOrderPer is None:
        raise InvalidOptionError(
            "keyIdle is about the values of the column that inOrderPer names: give both.", option="keyIdle"
        )
    if inOrderPer is not None:
        return InOrderPer(schema, inOrderPer, keyIdle)
    if kSort is not None:
        return KSorted(to_count(kSort, "kSort"))
    if lateness is not None:
        return Lateness(_lateness_columns(schema, lateness))
    return InOrder() if rowsImplyBounds else AnyOrder()


def _lateness_columns(schema: pa.Schema, lateness: Amount | Mapping[str, Amount]) -> dict[str, int]:
    if not isinstance(lateness, Mapping):
        lateness = {ROWTIME: lateness}
    for column in lateness:
        if column not in schema.names:
            raise InvalidOptionError(
                f"lateness names {column!r}, which is not a column of the stream: {schema.names}.",
                option="lateness",
                column=column,
            )
    return {column: to_amount(schema.field(column), value) for column, value in lateness.items()}


def _micros(column: pa.Array) -> pa.Array:
    return column.view(pa.int64())


def _largest(rows: pa.RecordBatch, column: str) -> int | None:
    largest: Any = pc.max(whole_numbers(rows.column(column))).as_py()
    return None if largest is None else int(largest)
