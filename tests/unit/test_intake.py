"""Intake: rows of any form become a batch of the stream's schema, or SchemaMismatchError says what is wrong."""

from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from unit_support import HOUR, clock_times, row, rows, us, when

import spark_rowtime as rt
from spark_rowtime.errors import SchemaMismatchError
from spark_rowtime.producer.intake import Intake, gathered
from spark_rowtime.types.local_time import LocalTime
from spark_rowtime.types.schema import batch_to_schema, rows_to_batch, stream_schema
from spark_rowtime.types.timestamps import LARGEST, LEAST

SCHEMA = stream_schema("rowtime TIMESTAMP NOT NULL, ticker STRING, units INT NOT NULL")


def new_intake(schema=SCHEMA, *, promoted=None, tz=None, clock):
    return Intake(schema, promoted, clock, None if tz is None else LocalTime(tz))


def full(text, ticker="X", units=1):
    return {**row(text, ticker), "units": units}


# ---- one result, whatever the form and the path

ROWTIMES = st.none() | st.sampled_from([0, LEAST, us("10:00"), LARGEST, LARGEST + 1])
TICKERS = st.none() | st.sampled_from(["IBM", "grün", ""])
UNITS = st.none() | st.integers(-(2**31), 2**31 - 1)


@example([(0, "IBM", 1)], 0)
@example([(LARGEST + 1, "IBM", 1)], 0)
@example([(None, "IBM", 1), (LEAST, "IBM", 1)], 1)
@given(st.lists(st.tuples(ROWTIMES, TICKERS, UNITS), max_size=4), st.sampled_from([0, 1]))
def test_an_arrow_batch_that_is_taken_as_it_is_equals_one_that_is_converted(values, offset):
    """And a batch that the one refuses, the other refuses."""
    nullable = pa.schema([field.with_nullable(True) for field in SCHEMA])
    columns = list(zip(*values, strict=True)) or [[]] * 3
    batch = pa.record_batch([pa.array(c, f.type) for c, f in zip(columns, nullable, strict=True)], schema=nullable)
    batch = batch.slice(min(offset, batch.num_rows))
    intake = new_intake(clock=lambda: us("12:00"))
    try:
        converted = batch_to_schema(batch, SCHEMA)
    except SchemaMismatchError:
        with pytest.raises(SchemaMismatchError):
            intake.rows(batch, None)
        return
    timed = intake.rows(batch, None)
    assert (timed.rows.to_pylist() if timed else []) == converted.to_pylist()
    assert timed is None or timed.ends == tuple(
        pc.min_max(converted.column("rowtime").cast(pa.int64())).as_py().values()
    )


PLAIN = st.tuples(st.datetimes(datetime(1990, 1, 1), timezones=st.just(UTC)), TICKERS, st.integers(-9, 9))
OTHER = st.tuples(st.just("2006-09-11T10:00:00"), TICKERS, st.just(7.0))


@given(st.lists(PLAIN | OTHER, min_size=1, max_size=4), st.booleans())
def test_rows_of_plain_values_and_others_give_the_same_batch(values, as_mappings):
    given_rows = [dict(zip(SCHEMA.names, value, strict=True)) for value in values] if as_mappings else values
    intake = new_intake(clock=lambda: us("12:00"))
    expected = rows_to_batch(values, SCHEMA)
    assert intake.rows(given_rows, None).rows.equals(expected)
    one_by_one = [intake.checked(intake.row(one, None)).rows for one in given_rows]
    assert pa.Table.from_batches(one_by_one).combine_chunks().to_batches()[0].equals(expected)


# ---- a call that is refused leaves nothing


def test_a_call_that_is_refused_does_not_decide_who_gives_the_times(clock):
    intake = new_intake(clock=clock)
    for refused in ([{"ticker": "a", "units": "many"}], [full("10:00"), {"ticker": "a", "units": 1}]):
        with pytest.raises(SchemaMismatchError):
            intake.rows(refused, None)
        assert intake.gives is None
    intake.rows([{"ticker": "a", "units": 1}], None)
    assert intake.gives is None, "the sink may still refuse the rows"
    intake.taken()
    assert intake.gives is True
    with pytest.raises(SchemaMismatchError, match="Row 0 comes with a rowtime"):
        intake.rows([full("10:00")], None)


def test_rows_after_a_refused_call_are_the_rows_of_their_own_call(clock):
    intake = new_intake(clock=clock)
    with pytest.raises(SchemaMismatchError, match="Row 1"):
        intake.rows([full("10:00"), full("10:01", units=None)], None)
    assert clock_times(intake.rows([full("10:02")], None).rows) == ["10:02"]


@pytest.mark.parametrize("nothing", [[], (), SCHEMA.empty_table(), pa.table({"ticker": pa.array([], pa.string())})])
def test_no_rows_are_no_batch_and_decide_nothing(clock, nothing):
    intake = new_intake(stream_schema("rowtime TIMESTAMP NOT NULL, ticker STRING"), clock=clock)
    if isinstance(nothing, pa.Table):
        nothing = nothing.select([name for name in nothing.schema.names if name != "units"])
    assert intake.rows(nothing, None) is None
    assert intake.rows([{"ticker": "a"}], None).rows.num_rows == 1
    assert intake.gives is None


# ---- the time now


def test_all_rows_of_a_call_get_one_time_which_is_never_below_the_floor(clock):
    intake = new_intake(clock=clock)
    two = [{"ticker": name, "units": 1} for name in "ab"]
    assert clock_times(intake.rows(two, None).rows) == ["12:00", "12:00"]
    assert clock_times(intake.rows(two, us("12:30")).rows) == ["12:30", "12:30"]
    clock.advance(HOUR)
    assert intake.row(two[0], us("12:30"))["rowtime"] == when("13:00")


# ---- times without a zone


def test_times_without_a_zone_are_in_the_producers_in_every_form(clock):
    intake = new_intake(clock=clock, tz="Europe/Berlin")
    naive, aware = datetime(2006, 9, 11, 12), when("10:00")
    one = pa.table(
        {"rowtime": pa.array([naive], pa.timestamp("us")), "ticker": ["X"], "units": pa.array([1], pa.int32())}
    )
    encoded = one.set_column(0, "rowtime", one["rowtime"].dictionary_encode())
    for form in ([(naive, "X", 1)], [{**full("9:00"), "rowtime": naive}], [("2006-09-11T12:00", "X", 1)], one, encoded):
        assert clock_times(intake.rows(form, None).rows) == ["10:00"]
    for single in ((naive, "X", 1), (aware, "X", 1), {**full("9:00"), "rowtime": naive}):
        assert clock_times(intake.checked(intake.row(single, None)).rows) == ["10:00"]


def test_a_time_that_the_zones_clocks_skipped_or_showed_twice_is_refused_with_its_row(clock):
    intake = new_intake(clock=clock, tz="Europe/Berlin")
    for hour, said in ((datetime(2006, 3, 26, 2, 30), "does not exist"), (datetime(2006, 10, 29, 2, 30), "twice")):
        with pytest.raises(SchemaMismatchError, match=f"Row 1: rowtime: .*{said}"):
            intake.rows([full("10:00"), (hour, "X", 1)], None)


def test_a_zone_does_not_reach_times_within_a_nested_column(clock):
    nested = stream_schema("rowtime TIMESTAMP NOT NULL, times ARRAY<TIMESTAMP>")
    with pytest.raises(rt.InvalidOptionError, match="times"):
        new_intake(nested, tz="Europe/Berlin", clock=clock)


# ---- iterables


def test_gathered_reads_an_iterable_and_leaves_other_values(clock):
    assert gathered(text for text in "ab") == ["a", "b"]
    table = pa.table({"a": [1]})
    for value in (table, table.to_batches()[0], {"a": 1}, "ab", b"ab", 7, None):
        assert gathered(value) is value
    assert new_intake(clock=clock).rows(gathered(iter([full("10:00")])), None).rows.num_rows == 1


def test_a_generator_may_be_given_directly(clock):
    given_rows = ({**one, "units": 1} for one in rows("10:00", "10:01"))
    assert new_intake(clock=clock).rows(given_rows, None).rows.num_rows == 2


def test_no_row_of_a_call_is_left_for_the_next(clock):
    """Not where the first rows are plain values and a later one is not, nor where it is refused."""
    intake = new_intake(clock=clock)
    assert intake.rows([full("10:00"), full("10:01", units=1.0)], None).rows.num_rows == 2
    assert intake.rows([], None) is None
    with pytest.raises(SchemaMismatchError):
        intake.rows([full("10:02"), full("10:03", units="many")], None)
    assert intake.rows([], None) is None
    assert clock_times(intake.rows([full("10:04")], None).rows) == ["10:04"]
