"""asofJoin through real streams."""

import random
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame
from pyspark.sql.functions import count, window

import spark_rowtime as rt
from spark_rowtime.operators import asofJoin, slidingAggregate
from tests.spark.operator_streams import after_noon, kept, output, restart, told
from tests.spark.test_operators_sliding import in_zone
from tests.streams import Pipe, bound, opened, send

ORDERS, RATES = "currency STRING, amount INT", "currency STRING, rate DOUBLE"


def rated(pipe: Pipe, **more: Any) -> DataFrame:
    return asofJoin(pipe.read("orders"), pipe.read("rates"), by="currency", **more)


@pytest.mark.smoke
def test_a_row_gets_the_last_right_row_at_or_before_it_when_both_bounds_are_past_it(pipe: Pipe) -> None:
    orders, rates = pipe.create("orders", ORDERS), pipe.create("rates", RATES)
    pipe.run(rated(pipe))
    with opened(orders) as left, opened(rates) as right:
        send(left, ("12:20", "USD", 2), ("12:21", "JPY", 3), ("12:30", "USD", 4), promise="13:00")
        assert pipe.step() == []
        send(right, ("12:00", "USD", 1.0), ("12:20", "USD", 1.1), promise="12:20")
        assert pipe.step() == [], "another rate at 12:20 was still possible"
        send(right, ("12:20", "USD", 1.2), promise="12:25")
        assert pipe.step() == [("12:20", "USD", 2, 1.2), ("12:21", "JPY", 3, None)], "the last that arrived"
        assert pipe.bound == bound("12:25"), "the weaker one of both"
        send(right, promise="14:00")
        assert pipe.step() == [("12:30", "USD", 4, 1.2)], "a quiet table of rates holds nothing up"
        assert pipe.bound == bound("13:00")


@pytest.mark.long
@pytest.mark.each
@pytest.mark.parametrize(
    ("direction", "rates"),
    [("forward", {"12:20": 1.1, "12:21": 1.4, "12:31": None}), ("nearest", {"12:20": 1.1, "12:21": 1.1, "12:31": 1.5})],
)
def test_a_row_waits_for_tolerance_where_a_later_one_may_count(
    pipe: Pipe, direction: str, rates: dict[str, float | None]
) -> None:
    orders, changes = pipe.create("orders", ORDERS), pipe.create("rates", RATES)
    pipe.run(rated(pipe, direction=direction, tolerance="5 minutes"))
    with opened(orders) as left, opened(changes) as right:
        send(left, *[(clock, "USD", 1) for clock in rates], promise="13:00")
        send(right, ("12:20", "USD", 1.0), ("12:20", "USD", 1.1), ("12:23", "USD", 1.4), promise="12:25")
        assert pipe.step() == []
        assert pipe.bound == bound("12:20")
        send(right, ("12:28", "USD", 1.5), promise="12:30")
        expected = [(clock, "USD", 1, rate) for clock, rate in rates.items()]
        assert pipe.step() == expected[:2]
        send(right, promise="14:00")
        assert pipe.step() == expected[2:]


FORMS: list[dict[str, Any]] = [
    {"direction": "backward", "how": "left", "tolerance": "4 seconds"},
    {"direction": "nearest", "how": "left", "tolerance": "4 seconds"},
    {"direction": "forward", "how": "inner", "tolerance": "9 seconds"},
    {"direction": "backward", "how": "inner", "tolerance": None},
]
SECONDS = {"4 seconds": 4_000_000, "9 seconds": 9_000_000, None: 1 << 62}


@pytest.mark.parametrize("form", FORMS, ids=lambda form: f"{form['direction']} {form['how']}")
def test_equal_to_duckdb_with_restarts_ties_nulls_and_late_rows(pipe: Pipe, form: dict[str, Any]) -> None:
    chance = random.Random(4711)
    paths = pipe.create("orders", "currency STRING, n INT"), pipe.create("rates", "currency STRING, m INT, rate DOUBLE")
    frame = rated(pipe, **form, buckets=3)
    pipe.run(frame)
    with opened(paths[0], **ANY_ORDER) as left, opened(paths[1], **ANY_ORDER) as right:
        for step in range(6):
            for sink in chance.sample((left, right), 2):
                sink.sendRows([row(chance, step, sink is right) for _ in range(chance.choice((0, 40)))])
                sink.sendRowtimeBound(after_noon(seconds=10 * step + chance.choice((0, 5, 9))))
                sink.flush()
                if chance.random() < 0.5:
                    output(pipe)
            if step in (2, 4):
                restart(pipe, frame)
        for sink in (left, right):
            sink.sendRowtimeBound(after_noon(hours=1))
            sink.flush()
        found = {values["n"]: values["rate"] and values["m"] for values in output(pipe)}
        assert rt.describeStream(paths[1]).rejected > 0, "rows were late"
    both = [pipe.spark.read.format("rowtime").load(path) for path in paths]
    batch = asofJoin(*both, by="currency", **form).collect()
    assert found == {values["n"]: values["rate"] and values["m"] for values in batch}
    assert found == by_duckdb(*map(all_rows, paths), form)


ANY_ORDER: dict[str, Any] = {"rowsImplyBounds": False, "onLate": "reject"}
_NUMBERS = iter(range(1 << 30))


def row(chance: random.Random, step: int, is_rate: bool) -> tuple[Any, ...]:
    """A row about that step, whose number tells its place in the order of arrival. Some are late."""
    time = after_noon(seconds=max(0, 10 * step + chance.randrange(-6, 25)), microseconds=1)
    values = (time, chance.choice(("A", "B", "C", None)), next(_NUMBERS))
    return (*values, chance.choice((None, 1.5, float("nan")))) if is_rate else values


def all_rows(path: str) -> pa.Table:
    """The rows of a stream in the order of arrival, with their times as numbers."""
    with rt.openReader(path, order="arrival") as reader:
        rows = pa.Table.from_batches([train.rows for train in reader])
    return rows.append_column("t", rows.column("rowtime").cast(pa.int64()))


def by_duckdb(orders: pa.Table, rates: pa.Table, form: dict[str, Any]) -> dict[int, int | None]:
    """The number of each order, and that of its rate; None where it has none, and where the rate is NULL."""
    one, *other = {"backward": [">="], "forward": ["<="], "nearest": [">=", "<="]}[form["direction"]]
    text = """SELECT n, orders.t AS t, m, lasts.t AS at, rate FROM orders ASOF LEFT JOIN (
        SELECT * FROM rates QUALIFY row_number() OVER (PARTITION BY currency, t ORDER BY m DESC) = 1
    ) AS lasts ON orders.currency = lasts.currency AND orders.t {} lasts.t"""
    with duckdb.connect() as database:
        database.register("orders", orders)
        database.register("rates", rates)
        found = {values[0]: values for values in database.sql(text.format(one)).fetchall()}
        for values in database.sql(text.format(other[0])).fetchall() if other else ():
            found[values[0]] = min(found[values[0]], values, key=distance)
    near = {n: values if distance(values) <= SECONDS[form["tolerance"]] else None for n, values in found.items()}
    left = form["how"] == "left"
    return {n: v and v[4] and v[2] for n, v in near.items() if left or (v is not None and v[3] is not None)}


def distance(values: tuple[Any, ...]) -> float:
    return float("inf") if values[3] is None else abs(values[1] - values[3])


@pytest.mark.long
def test_the_state_has_one_right_row_of_each_key(pipe: Pipe) -> None:
    """More keys than a page of the state holds, in one bucket."""
    orders, rates = pipe.create("orders", ORDERS), pipe.create("rates", RATES)
    pipe.run(rated(pipe, buckets=1))
    sizes = []
    with opened(orders) as left, opened(rates, rowsImplyBounds=False) as right:
        for hour in range(4):
            keys = range(0, 20_000, 1 if hour else 3)
            right.sendRows([(after_noon(hours=hour, seconds=key % 60), f"C{key}", float(hour)) for key in keys])
            right.sendRowtimeBound(after_noon(hours=hour, minutes=2))
            send(right)
            left.sendRows([(after_noon(hours=hour, minutes=1), f"C{key}", key) for key in range(0, 20_000, 997)])
            left.sendRowtimeBound(after_noon(hours=hour, minutes=2))
            send(left)
            found = [values for values in output(pipe) if values["rowtime"] > after_noon(hours=hour)]
            assert {values["amount"]: values["rate"] for values in found} == {
                key: float(hour) if key in keys else None for key in range(0, 20_000, 997)
            }
            sizes.append(kept(pipe))
    assert sizes[1] == sizes[2] == sizes[3] < 40, "pages, not rows"


@pytest.mark.long
def test_with_tolerance_a_bound_alone_frees_the_state(pipe: Pipe) -> None:
    orders, rates = pipe.create("orders", ORDERS), pipe.create("rates", RATES)
    pipe.run(rated(pipe, tolerance="1 hour"))
    with opened(orders) as left, opened(rates) as right:
        send(right, ("12:00", "USD", 1.0), promise="12:10")
        send(left, promise="12:10")
        output(pipe)
        assert kept(pipe) > 0
        for clock in ("13:30", "14:10"):
            send(right, promise=clock)
            send(left, promise=clock)
            assert output(pipe) == []
        assert kept(pipe) == 0


@pytest.mark.long
def test_a_window_above_closes_with_the_bound_at_its_end(pipe: Pipe) -> None:
    orders, rates = pipe.create("orders", ORDERS), pipe.create("rates", RATES)
    hours = rated(pipe).groupBy(window("rowtime", "1 hour")).agg(count("rate").alias("n"))
    pipe.run(hours.selectExpr("window.end AS rowtime", "n"))
    with opened(orders) as left, opened(rates) as right:
        send(right, ("11:00", "USD", 1.0), promise="12:00")
        send(left, ("11:30", "USD", 1), ("11:59:59.999", "USD", 2), promise="12:00")
        assert pipe.step() == [("12:00", 2)]


@pytest.mark.long
@pytest.mark.parametrize("direction", ["backward", "forward", "nearest"])
def test_in_batch_a_left_row_without_a_time_has_no_match(pipe: Pipe, direction: str) -> None:
    left = pipe.spark.createDataFrame([(None, 1)], "rowtime TIMESTAMP, n INT")
    right = pipe.spark.createDataFrame([(after_noon(), 1.0)], "rowtime TIMESTAMP, rate DOUBLE")
    [found] = asofJoin(left, right, direction=direction).collect()
    assert found.asDict() == {"rowtime": None, "n": 1, "rate": None}


@pytest.mark.long
def test_a_query_may_be_started_again_in_another_time_zone(pipe: Pipe) -> None:
    orders, rates = pipe.create("orders", ORDERS), pipe.create("rates", RATES)
    with opened(orders) as left, opened(rates) as right:
        for zone, clock in (("UTC", "10:00"), ("Europe/Berlin", "11:00")):
            with in_zone(pipe.spark, zone):
                pipe.run(slidingAggregate(rated(pipe), interval="1 hour", aggregates={"n": ("count", "*")}))
                send(right, (clock, "USD", 1.0))
                send(left, (clock, "USD", 1))
                output(pipe)
                pipe.stop()
        with in_zone(pipe.spark, "Asia/Tokyo"):
            pipe.run(slidingAggregate(rated(pipe), interval="1 hour", aggregates={"n": ("count", "*")}))
            for sink in (left, right):
                send(sink, promise="13:00")
            assert told(pipe) == [("10:00", "USD", 1, 1.0, 1), ("11:00", "USD", 1, 1.0, 2)]


@pytest.mark.long
def test_a_left_row_without_a_time_comes_out_at_once(pipe: Pipe) -> None:
    orders, rates = pipe.create("orders", "due TIMESTAMP, n INT"), pipe.create("rates", "due TIMESTAMP, rate DOUBLE")
    sides = [pipe.read(name, watermark="none").drop("rowtime") for name in ("orders", "rates")]
    found: list[Any] = []
    joined = asofJoin(*(side.withWatermark("due", "0 seconds") for side in sides), on="due")
    pipe.query = joined.writeStream.foreachBatch(lambda rows, _: found.extend(rows.collect())).start()
    with opened(orders) as left, opened(rates) as right:
        send(right, ("12:00", after_noon(), 1.0), ("12:01", after_noon(hours=9), 2.0))
        send(left, ("12:00", None, 1), ("12:00", after_noon(hours=8), 2))
        pipe.query.processAllAvailable()
    assert {row.n: row.rate for row in found} == {1: None, 2: 1.0}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"by": "shop"}, "one column 'shop'"),
        ({"by": ("currency", "amount")}, "'amount' is int on the left and double on the right"),
        ({"by": "currency"}, r"\['amount', 'name'\] would not be unique"),
        ({"direction": "up"}, "neither 'backward' nor 'forward' nor 'nearest'"),
        ({"how": "outer"}, "neither 'left' nor 'inner'"),
        ({"tolerance": "soon"}, "is not an interval"),
        ({"by": ("currency", "name")}, "'name' is string collate UTF8_LCASE"),
    ],
)
def test_what_is_refused(pipe: Pipe, given: dict[str, Any], said: str) -> None:
    left = pipe.spark.createDataFrame([], f"rowtime TIMESTAMP, {ORDERS}, name STRING COLLATE UTF8_LCASE")
    right = pipe.spark.createDataFrame(
        [], "rowtime TIMESTAMP, currency STRING, amount DOUBLE, name STRING COLLATE UTF8_LCASE"
    )
    with pytest.raises(rt.RowtimeError, match=said):
        asofJoin(left, right, **given)


def test_what_is_refused_of_streams(pipe: Pipe) -> None:
    for name, columns in (("orders", ORDERS), ("rates", RATES)):
        pipe.create(name, columns)
    with pytest.raises(rt.InvalidOptionError, match="needs tolerance on streams"):
        rated(pipe, direction="forward")
    with pytest.raises(rt.InvalidOptionError, match="no watermark"):
        asofJoin(pipe.read("orders"), pipe.read("rates", watermark="none"), by="currency")
    with pytest.raises(rt.InvalidOptionError, match="two streams, or two batch DataFrames"):
        asofJoin(pipe.read("orders"), pipe.spark.read.format("rowtime").load(pipe.path("rates")), by="currency")
