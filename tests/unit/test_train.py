"""Train: splitting, joining, and the floors between the trains of one commit."""

from types import SimpleNamespace

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit_support import clock_times, when

from spark_rowtime import RowtimeBound, Train
from spark_rowtime.bounds.bound import as_bound
from spark_rowtime.bounds.train import Timed, floors_between, one_batch, span
from spark_rowtime.types.schema import rows_to_batch, stream_schema

SCHEMA = stream_schema("rowtime TIMESTAMP NOT NULL, ticker STRING")
TIMES = st.lists(st.integers(1, 40), max_size=8)


def batch(times):
    column = pa.array(times, pa.int64()).cast(pa.timestamp("us", "UTC"))
    return pa.RecordBatch.from_arrays([column, pa.array(map(str, range(len(times))), pa.string())], schema=SCHEMA)


TRAINS = st.builds(lambda times, floor: Train(batch(times), as_bound(floor)), TIMES, st.none() | st.integers(1, 50))


def micros(train):
    return train.rows.column("rowtime").cast(pa.int64()).to_pylist()


@given(TRAINS, st.integers(0, 9))
def test_split(train, at):
    """split: the first part ends with the strongest bound that is true of all that follows."""
    first, rest = train.split(at)
    assert micros(first) + micros(rest) == micros(train)
    assert first.rows.num_rows == min(at, train.rows.num_rows)
    assert rest.bound == train.bound
    if train.bound is None:
        assert first.bound is None
    else:
        assert first.bound.floor == min([train.bound.floor, *micros(rest)])


@given(TRAINS, TRAINS)
def test_join(one, later):
    """join: the later bound supersedes the earlier."""
    joined = one.join(later)
    assert micros(joined) == micros(one) + micros(later)
    assert joined.bound == (one.bound if later.bound is None else later.bound)


@given(TRAINS, st.integers(0, 9))
def test_split_then_join(train, at):
    """split then join gives the train back."""
    first, rest = train.split(at)
    joined = first.join(rest)
    assert joined.rows.equals(train.rows)
    assert joined.bound == train.bound


def test_s4_split_and_join():
    rows = rows_to_batch([(when("10:00"), "ORCL"), (when("10:01"), "MSFT"), (when("10:02"), "IBM")], SCHEMA)
    train = Train(rows, RowtimeBound(when("10:05")))
    first, rest = train.split(2)
    assert (clock_times(first.rows), first.bound) == (["10:00", "10:01"], RowtimeBound(when("10:02")))
    assert (clock_times(rest.rows), rest.bound) == (["10:02"], RowtimeBound(when("10:05")))
    caught_up = first.join(Train(rows.slice(0, 0), RowtimeBound(when("10:03"))))
    assert caught_up.bound == RowtimeBound(when("10:03"))


def test_span():
    assert span(batch([])) is None
    assert span(batch([5, 3, 9])) == (3, 9)


SPANS = st.lists(st.none() | st.tuples(st.integers(1, 40), st.integers(41, 60)), max_size=6)
FLOORS = st.none() | st.integers(1, 50)


@given(SPANS, FLOORS, FLOORS)
def test_floors_between(spans, final, before):
    """One floor before each span and one at the end; each the least of what follows, never below before."""
    floors = floors_between(spans, final, before)
    assert len(floors) == len(spans) + 1
    for at, floor in enumerate(floors):
        following = [ends[0] for ends in spans[at:] if ends is not None]
        least = None if final is None else min([final, *following])
        known = [f for f in (before, least) if f is not None]
        assert floor == (max(known) if known else None)


@given(SPANS, FLOORS)
def test_floors_between_only_grow_and_are_true(spans, final):
    floors = [floor or 0 for floor in floors_between(spans, final, None)]
    assert floors == sorted(floors)
    for at, ends in enumerate(spans):
        assert ends is None or floors[at] <= ends[0]


@given(TIMES.filter(bool))
def test_facts_about_rowtimes(times):
    timed = Timed(batch([0, *times]).slice(1))
    assert timed.rises == (sorted(times) == times)
    assert (timed.ends, timed.micros.tolist()) == ((min(times), max(times)), times)


def test_rows_that_fit_no_batch_are_refused():
    """A column of texts beyond 2 GiB stays in two pieces."""
    two = pa.Table.from_batches([batch([1]), batch([2])])
    assert one_batch(two).num_rows == 2
    with pytest.raises(pa.ArrowInvalid, match="2 rows are too many for one batch"):
        one_batch(SimpleNamespace(num_rows=2, combine_chunks=lambda: two))
