"""In which order rows may come: Feldera's LATENESS in both forms, k-sorted rows, and the laws of judging."""

import itertools
import json
from datetime import UTC, date, datetime, timedelta

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit_support import HOUR, MINUTE, accepted, clock_times, new_sink, new_stream, row, rows, us, when

import spark_rowtime as rt
from spark_rowtime.bounds.disorder import declared
from spark_rowtime.bounds.key_floors import KeyFloors
from spark_rowtime.bounds.train import Timed
from spark_rowtime.store import open_store
from spark_rowtime.types.schema import rows_to_batch, stream_schema
from spark_rowtime.types.timestamps import from_micros

TIMES = st.lists(st.integers(1, 30), min_size=1, max_size=8)
SCHEMA = stream_schema("rowtime TIMESTAMP NOT NULL, updated TIMESTAMP, part BIGINT")
DECLARATIONS = st.sampled_from(
    [
        {},
        {"rowsImplyBounds": False},
        {"lateness": timedelta(microseconds=4)},
        {"lateness": {"rowtime": timedelta(microseconds=4), "updated": timedelta(microseconds=2)}},
        {"kSort": 0},
        {"kSort": 2},
        {"inOrderPer": "part"},
        {"inOrderPer": "part", "keyIdle": 6},
    ]
)


def part_of(time):
    return time % 3 if time % 4 else None


def batch(times) -> pa.RecordBatch:
    column = pa.array(times, pa.int64()).cast(pa.timestamp("us", "UTC"))
    parts = pa.array(map(part_of, times), pa.int64())
    return pa.RecordBatch.from_arrays([column, column, parts], schema=SCHEMA)


def state_of(disorder):
    return (
        disorder.state(),
        disorder.weakest(),
        sorted(map(str, getattr(disorder, "keys", KeyFloors(pa.int64())).known())),
    )


def restored_from(disorder, declaration):
    """One that goes on from what the store has of ``disorder``."""
    other, changes = declared(SCHEMA, **declaration), disorder.changes()
    other.restore(disorder.state(), [] if changes is None else [changes.content])
    return other


def timed(times) -> Timed:
    return Timed(batch(times))


def fits(verdict, count) -> list[bool]:
    return [True] * count if verdict.fits is None else verdict.fits.to_pylist()


# ---- Feldera's LATENESS


def test_f1_as_five_steps_four_rows_remain():
    path = new_stream("rowtime TIMESTAMP NOT NULL, place STRING")
    sink = new_sink(path, order={"lateness": "1 hour"}, onLate="reject")
    for text, place in (
        ("00:00", "home"),
        ("01:00", "office"),
        ("00:10", "shop"),
        ("02:00", "home"),
        ("00:20", "friend"),
    ):
        sink.sendRow((when(f"2006-09-12T{text}"), place))
    assert accepted(path) == ["00:00", "01:00", "00:10", "02:00"]
    assert rt.describeStream(path).rejected == 1


def test_f1_as_one_step_all_five_remain():
    path = new_stream("rowtime TIMESTAMP NOT NULL, place STRING")
    sink = new_sink(path, order={"lateness": "1 hour"})
    sink.sendRows([(when(f"2006-09-12T{t}"), "x") for t in ("00:00", "01:00", "00:10", "02:00", "00:20")])
    assert len(accepted(path)) == 5


def test_f1_steps_are_calls_however_they_are_committed():
    """Buffering and train cuts never change what is late."""
    path = new_stream()
    sink = new_sink(path, order={"lateness": "1 hour"}, linger=HOUR, maxTrainRows=2)
    sink.sendRow(row("9:00"))
    sink.sendRows(rows("10:00", "12:00", "9:30", "8:30"))
    with pytest.raises(rt.LateRowError):
        sink.sendRow(row("10:59"))
    sink.sendRow(row("11:00"))
    sink.flush()
    assert accepted(path) == ["09:00", "10:00", "12:00", "09:30", "08:30", "11:00"]


def test_f1_the_bound_is_the_largest_rowtime_less_the_lateness():
    sink = new_sink(new_stream(), order={"lateness": "1 hour"})
    assert sink.getRowtimeBound() is None
    sink.sendRow(row("10:00"))
    assert sink.getRowtimeBound() == rt.RowtimeBound(when("9:00"))
    sink.sendRow(row("9:30"))
    assert sink.getRowtimeBound() == rt.RowtimeBound(when("9:00"))


def test_f2_too_late_in_any_column_is_too_late():
    path = new_stream("rowtime TIMESTAMP NOT NULL, updated TIMESTAMP")
    order = {"lateness": {"rowtime": "1 hour", "updated": "10 minutes"}}
    sink = new_sink(path, "P", order=order, onLate="reject")
    sink.sendRow((when("10:00"), when("10:30")))
    sink.sendRow((when("9:00"), when("10:20")))
    sink.sendRow((when("10:00"), when("10:19")))
    sink.sendRow((when("8:59"), when("10:30")))
    sink.sendRow((when("10:01"), None))
    assert accepted(path) == ["10:00", "09:00", "10:01"]
    lost = open_rejected(path)
    assert lost == [(when("10:20"), "10:00"), (when("9:00"), "08:59")]


def open_rejected(path):
    from spark_rowtime.store import open_store

    table = open_store(path).rejected()
    return list(zip(table.column("bound").to_pylist(), clock_times(table), strict=True))


def test_lateness_of_another_column_says_nothing_of_rowtime():
    path = new_stream("rowtime TIMESTAMP NOT NULL, updated TIMESTAMP")
    sink = new_sink(path, order={"lateness": {"updated": "10 minutes"}})
    sink.sendRow((when("10:00"), when("10:30")))
    sink.sendRow((when("1:00"), when("10:30")))
    assert sink.getRowtimeBound() is None
    with pytest.raises(rt.LateRowError, match="'updated'"):
        sink.sendRow((when("10:00"), when("10:00")))


def test_lateness_of_numbers_and_dates():
    path = new_stream("rowtime TIMESTAMP NOT NULL, version INT, day DATE")
    order = {"lateness": {"version": 2, "day": "1 day"}}
    sink = new_sink(path, "P", order=order, onLate="reject")
    sink.sendRow((when("10:00"), 7, date(2006, 9, 12)))
    sink.sendRow((when("10:01"), 5, date(2006, 9, 11)))
    sink.sendRow((when("10:02"), 4, date(2006, 9, 12)))
    sink.sendRow((when("10:03"), 7, date(2006, 9, 10)))
    sink.sendRow((when("10:04"), None, None))
    assert accepted(path) == ["10:00", "10:01", "10:04"]
    assert open_rejected(path) == [(None, "10:02"), (datetime(2006, 9, 11, tzinfo=UTC), "10:03")]
    assert sink.getRowtimeBound() is None
    again = new_sink(path, "P", order=order)  # a takeover goes on from there
    with pytest.raises(rt.LateRowError, match="5, the largest 'version' of earlier steps less its lateness"):
        again.sendRow((when("10:05"), 4, None))
    with pytest.raises(rt.LateRowError, match="2006-09-11, the largest 'day'"):
        again.sendRow((when("10:05"), 9, date(2006, 9, 10)))


def test_the_least_number_is_late_for_nobody():
    schema = stream_schema("rowtime TIMESTAMP NOT NULL, n BIGINT")
    disorder = declared(schema, lateness={"n": 10})
    disorder.take(rows_to_batch([(when("10:00"), -(2**63))], schema))
    assert disorder.judge(Timed(rows_to_batch([(when("10:00"), -(2**63))], schema)), None).fits is None


def test_a_bound_that_is_sent_counts_beside_lateness():
    sink = new_sink(new_stream(), order={"lateness": "1 hour"})
    sink.sendRow(row("10:00"))
    sink.sendRowtimeBound(when("9:45"))
    with pytest.raises(rt.LateRowError):
        sink.sendRow(row("9:44"))
    sink.sendRow(row("9:45"))


@given(st.lists(TIMES, max_size=8), st.integers(0, 10))
def test_lateness_is_judged_against_earlier_steps(steps, lateness):
    """By an oracle: late is what lies more than ``lateness`` below the largest accepted in earlier steps."""
    disorder = declared(SCHEMA, lateness=timedelta(microseconds=lateness))
    seen, floor = [], None
    for step in steps:
        verdict = disorder.judge(timed(step), floor)
        expected = [not seen or t >= max(seen) - lateness for t in step]
        assert fits(verdict, len(step)) == expected
        kept = [t for t, good in zip(step, expected, strict=True) if good]
        disorder.take(batch(kept))
        seen += kept
        floor = verdict.floor
        assert floor == max(max(seen) - lateness, 1)


# ---- k-sorted


def is_k_sorted(times, k) -> bool:
    """Whether some order among equal ones puts every row at most k positions from its place."""
    places = sorted(range(len(times)), key=lambda at: (times[at], at))
    return all(abs(place - at) <= k for place, at in enumerate(places))


@pytest.mark.parametrize("k", [0, 1, 2, 3])
def test_k_sort_never_rejects_a_legal_sequence(k):
    """Every legal order of up to six rows, some of one rowtime, sent one by one."""
    for values in ([1, 2, 3, 4, 5, 6], [1, 1, 2, 2, 3, 3], [1, 2, 2, 2, 3]):
        legal = 0
        for times in set(itertools.permutations(values)):
            if not is_k_sorted(times, k):
                continue
            legal += 1
            disorder, floor = declared(SCHEMA, kSort=k), None
            for time in times:
                verdict = disorder.judge(timed([time]), floor)
                assert verdict.fits is None, (times, time, floor)
                disorder.take(batch([time]))
                floor = verdict.floor
        assert legal >= 1


@given(TIMES, TIMES, st.integers(0, 3))
def test_k_sort_judges_rows_alike_however_they_are_grouped(earlier, later, k):
    one, two = declared(SCHEMA, kSort=k), declared(SCHEMA, kSort=k)
    together = one.judge(timed(earlier + later), None)
    first, kept = two.judge(timed(earlier), None), batch(earlier)
    two.take(kept if first.fits is None else kept.filter(first.fits))
    second = two.judge(timed(later), first.floor)
    assert fits(together, len(earlier + later)) == fits(first, len(earlier)) + fits(second, len(later))
    assert together.floor == second.floor


def test_the_k_sort_bound_of_many_rows_takes_no_time_for_each_of_k() -> None:
    """With a large k, all rows of a call were sorted again for each: 20,000 took ten seconds."""
    times = [1 + n // 7 * 10 + n % 3 for n in range(50_000)]
    verdict = declared(SCHEMA, kSort=10_000).judge(timed(times), None)
    assert verdict.floor == sorted(times)[-10_001]


@given(TIMES, st.integers(0, 3))
def test_k_sort_bound_is_the_k_plus_first_largest_accepted(times, k):
    disorder, seen, expected = declared(SCHEMA, kSort=k), [], []
    for time in times:
        bound = sorted(seen, reverse=True)[k] if len(seen) > k else None
        verdict = disorder.judge(timed([time]), bound)
        assert fits(verdict, 1) == [bound is None or time >= bound]
        expected += fits(verdict, 1)
        if verdict.fits is None:
            seen.append(time)
            disorder.take(batch([time]))
        assert verdict.floor == (sorted(seen, reverse=True)[k] if len(seen) > k else None)
    assert fits(declared(SCHEMA, kSort=k).judge(timed(times), None), len(times)) == expected, "in one call, too"


# ---- the others


@given(TIMES, st.none() | st.integers(1, 30))
def test_in_order(times, floor):
    verdict = declared(SCHEMA).judge(timed(times), floor)
    reached, expected, bounds = floor, [], []
    for time in times:
        expected.append(reached is None or time >= reached)
        bounds.append(reached)
        reached = time if reached is None else max(reached, time)
    assert fits(verdict, len(times)) == expected
    assert verdict.floor == reached
    late = [b for b, good in zip(bounds, expected, strict=True) if not good]
    assert not late or verdict.bounds.filter(pa.compute.invert(verdict.fits)).to_pylist() == late


@given(TIMES, st.none() | st.integers(1, 30))
def test_any_order(times, floor):
    verdict = declared(SCHEMA, rowsImplyBounds=False).judge(timed(times), floor)
    assert fits(verdict, len(times)) == [floor is None or t >= floor for t in times]
    assert verdict.floor is None


# ---- laws of all


@given(DECLARATIONS, st.lists(TIMES, max_size=4), TIMES, st.none() | st.integers(1, 30))
def test_judge_is_pure(declaration, before, times, floor):
    """judge is pure: judging changes nothing, so a call that is refused leaves no trace."""
    disorder = declared(SCHEMA, **declaration)
    for step in before:
        disorder.take(batch(step))
    state = state_of(disorder)
    first = disorder.judge(timed(times), floor)
    disorder.judge(timed([29, 30, 30]), floor)
    again = disorder.judge(timed(times), floor)
    assert state_of(disorder) == state
    assert (fits(first, len(times)), first.floor) == (fits(again, len(times)), again.floor)


@given(DECLARATIONS, TIMES, st.none() | st.integers(1, 30))
def test_rows_one_by_one_are_judged_as_calls_of_one_row(declaration, times, floor):
    """sendRow, where it goes the short way, keeps the rows and implies the bounds that judge says."""
    found = [sent(declaration, times, floor, each) for each in (send_plain, send_judged)]
    assert found[0] == found[1]


def send_plain(sink, time) -> None:
    sink.sendRow((from_micros(time), from_micros(time), part_of(time)))


def send_judged(sink, time) -> None:
    sink.sendRows(batch([time]))


def sent(declaration, times, floor, send):
    """What a user sees of a producer's rows: the bound after each, those that are kept, and the producer after them."""
    path, bounds = new_stream(SCHEMA), []
    sink = new_sink(path, "fleet", order=declaration, onLate="reject", linger=HOUR)
    if floor is not None:
        sink.sendRowtimeBound(from_micros(floor))
    for time in times:
        send(sink, time)
        bounds.append(sink.getRowtimeBound())
    sink.flush()
    producer = open_store(path).producer("fleet")
    return bounds, accepted(path), (producer.floor, producer.accepted, producer.rejected)


@given(DECLARATIONS, st.lists(TIMES, max_size=4), TIMES)
def test_the_state_goes_round(declaration, before, times):
    """Restored from its state it judges as the one that was there."""
    disorder = declared(SCHEMA, **declaration)
    for step in before:
        disorder.take(batch(step))
    assert not disorder.state() or json.loads(disorder.state()) is not None
    restored = restored_from(disorder, declaration)
    assert state_of(restored) == state_of(disorder)
    here, there = disorder.judge(timed(times), 3), restored.judge(timed(times), 3)
    assert (fits(here, len(times)), here.floor) == (fits(there, len(times)), there.floor)


@given(DECLARATIONS, TIMES, st.integers(1, 30))
def test_late_rows_lie_below_the_bound_that_is_named(declaration, times, floor):
    disorder = declared(SCHEMA, **declaration)
    disorder.take(batch([20]))
    verdict = disorder.judge(timed(times), floor)
    if verdict.fits is not None:
        assert verdict.why
        for time, good, bound in zip(times, verdict.fits.to_pylist(), verdict.bounds.to_pylist(), strict=True):
            assert good or time < bound


# ---- declarations


def test_declarations_are_told_apart_and_stable():
    schema = stream_schema("rowtime TIMESTAMP NOT NULL, a TIMESTAMP, b TIMESTAMP_NTZ, c INT, d STRING")
    said = [
        declared(schema).declaration,
        declared(schema, rowsImplyBounds=False).declaration,
        declared(schema, lateness="1 hour").declaration,
        declared(schema, lateness="2 hours").declaration,
        declared(schema, lateness={"a": "1 hour", "b": "1 hour"}).declaration,
        declared(schema, kSort=1).declaration,
        declared(schema, kSort=2).declaration,
        declared(schema, inOrderPer="c").declaration,
        declared(schema, inOrderPer="d").declaration,
        declared(schema, inOrderPer="c", keyIdle=1).declaration,
    ]
    assert len(set(said)) == len(said)
    assert declared(schema, lateness={"b": "60 min", "a": "3600 s"}).declaration == said[4]
    assert declared(schema, lateness=timedelta(hours=1)).declaration == said[2]
    assert all(isinstance(json.loads(text), dict) for text in said)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"lateness": "1 hour", "kSort": 1}, "lateness and kSort"),
        ({"lateness": "1 hour", "rowsImplyBounds": False}, "rowsImplyBounds"),
        ({"kSort": -1}, "kSort"),
        ({"kSort": 1.5}, "kSort"),
        ({"kSort": True}, "kSort"),
        ({"lateness": "soon"}, "soon"),
        ({"lateness": "-1 hour"}, "negative"),
        ({"lateness": {"place": "1 hour"}}, "place"),
        ({"lateness": {"nothing": "1 hour"}}, "nothing"),
        ({"lateness": {"version": "1 hour"}}, "whole number"),
        ({"lateness": {"version": -1}}, "whole number"),
        ({"lateness": {"day": "36 hours"}}, "whole days"),
        ({"lateness": 5}, "an interval"),
        ({"lateness": {"rowtime": None}}, "lateness of 'rowtime'"),
        ({"inOrderPer": "place", "kSort": 1}, "kSort and inOrderPer"),
        ({"inOrderPer": "nothing"}, "no column"),
        ({"inOrderPer": 5}, "no column"),
        ({"inOrderPer": "rowtime"}, "of type timestamp"),
        ({"inOrderPer": "share"}, "of type double"),
        ({"keyIdle": 5}, "inOrderPer"),
    ],
)
def test_declarations_that_cannot_be(options, said):
    schema = stream_schema("rowtime TIMESTAMP NOT NULL, place STRING, version BIGINT, day DATE, share DOUBLE")
    with pytest.raises(rt.InvalidOptionError, match=said):
        declared(schema, **options)


def test_lateness_near_the_epoch_is_no_negative_bound():
    disorder = declared(SCHEMA, lateness="1 hour")
    assert disorder.judge(timed([MINUTE]), None).floor == 1


def test_rows_to_batch_agrees_with_the_batches_of_these_tests():
    assert rows_to_batch([(when("10:00"), when("10:00"), None)], SCHEMA) == batch([us("10:00")])
