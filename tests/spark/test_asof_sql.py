"""SQL's ASOF JOIN over streams: the operator asofJoin where its form allows that, else refused by name."""

import random

import pytest
from pyspark.sql import DataFrame

from spark_rowtime.operators import asofJoin
from spark_rowtime.operators.chunks import from_bytes
from tests.spark.operator_streams import after_noon, output, restart
from tests.spark.test_operators_asof import ANY_ORDER, ORDERS, RATES, row
from tests.streams import Pipe, bound, opened, send

JOIN = """
SELECT o.*, r.rate FROM orders o {how} ASOF JOIN rates r
MATCH_CONDITION (o.rowtime >= r.rowtime) ON o.currency = r.currency
"""


@pytest.fixture
def pair(pipe: Pipe) -> Pipe:
    """The streams of orders and rates, as views of SQL."""
    pipe.spark.conf.set("spark.sql.join.asofJoin.enabled", "true")
    for name, columns in (("orders", ORDERS), ("rates", RATES)):
        pipe.create(name, columns)
        pipe.read(name).createOrReplaceTempView(name)
    return pipe


def test_a_row_gets_the_last_right_row_at_or_before_it_when_both_bounds_are_past_it(pair: Pipe) -> None:
    pair.run(pair.spark.sql(JOIN.format(how="LEFT")))
    with opened(pair.path("orders")) as left, opened(pair.path("rates")) as right:
        send(left, ("12:20", "USD", 2), ("12:21", "JPY", 3), ("12:30", "USD", 4), promise="13:00")
        assert pair.step() == []
        send(right, ("12:00", "USD", 1.0), ("12:20", "USD", 1.1), promise="12:20")
        assert pair.step() == [], "another rate at 12:20 was still possible"
        send(right, ("12:20", "USD", 1.2), promise="12:25")
        assert pair.step() == [("12:20", "USD", 2, 1.2), ("12:21", "JPY", 3, None)], "the last that arrived"
        assert pair.bound == bound("12:25"), "the weaker one of both"
        send(right, promise="14:00")
        assert pair.step() == [("12:30", "USD", 4, 1.2)], "a quiet table of rates holds nothing up"
        assert pair.bound == bound("13:00")


MATCH = "MATCH_CONDITION (o.rowtime >= r.rowtime)"
FORMS = {
    "left": f"SELECT o.rowtime, n, m FROM orders o LEFT ASOF JOIN rates r {MATCH} ON o.currency = r.currency",
    "inner, mirrored, two keys": "SELECT o.rowtime, n, m FROM orders o ASOF JOIN rates r MATCH_CONDITION "
    "(r.rowtime <= o.rowtime) ON r.currency = o.currency AND upper(o.currency) = upper(r.currency)",
    "using": f"SELECT o.rowtime, n, m, currency FROM orders o LEFT ASOF JOIN rates r {MATCH} USING (currency)",
    "without keys": f"SELECT o.rowtime, n, m FROM orders o LEFT ASOF JOIN rates r {MATCH}",
    "below others": "WITH o AS (SELECT * FROM orders), r AS (SELECT *, m + 1 AS more FROM rates WHERE rate IS NULL OR "
    "rate < 2), j AS (SELECT r.rowtime AS rated, r.currency AS c, * EXCEPT (r.rowtime, r.currency) "
    f"FROM o ASOF JOIN r {MATCH} ON o.currency = r.currency) "
    "SELECT rowtime, n, more - 1 AS m FROM j WHERE c IS NOT NULL AND rated <= rowtime",
}


@pytest.mark.parametrize("form", FORMS)
def test_equal_to_the_operator_in_batch_with_restarts_ties_nulls_and_late_rows(pipe: Pipe, form: str) -> None:
    pipe.spark.conf.set("spark.sql.join.asofJoin.enabled", "true")
    chance = random.Random(form)
    paths = pipe.create("orders", "currency STRING, n INT"), pipe.create("rates", "currency STRING, m INT, rate DOUBLE")
    for name in ("orders", "rates"):
        pipe.read(name).createOrReplaceTempView(name)
    frame = pipe.spark.sql(FORMS[form])
    pipe.run(frame.select("rowtime", "n", "m"))
    with opened(paths[0], **ANY_ORDER) as left, opened(paths[1], **ANY_ORDER) as right:
        for step in range(4):
            for sink in chance.sample((left, right), 2):
                sink.sendRows([row(chance, step, sink is right) for _ in range(chance.choice((0, 40)))])
                sink.sendRowtimeBound(after_noon(seconds=10 * step + chance.choice((0, 5, 9))))
                sink.flush()
            if step == 2:
                restart(pipe, frame.select("rowtime", "n", "m"))
        for sink in (left, right):
            sink.sendRowtimeBound(after_noon(hours=1))
            sink.flush()
        found = {values["n"]: values["m"] for values in output(pipe)}
    assert len(found) > 20
    assert found == by_the_operator(pipe, form)


def by_the_operator(pipe: Pipe, form: str) -> dict[int, int | None]:
    both = [pipe.spark.read.format("rowtime").load(pipe.path(name)) for name in ("orders", "rates")]
    rates = both[1].where("rate IS NULL OR rate < 2") if form == "below others" else both[1]
    how = "left" if "LEFT" in FORMS[form] else "inner"
    by = () if form == "without keys" else ("currency",)
    other = rates if by else rates.withColumnRenamed("currency", "other")
    return {values["n"]: values["m"] for values in asofJoin(both[0], other, by=by, how=how).collect()}


@pytest.mark.night
def test_a_window_above_closes_with_the_bound_at_its_end(pair: Pipe) -> None:
    pair.spark.sql(JOIN.format(how="LEFT")).createOrReplaceTempView("rated")
    hours = "SELECT window.end AS rowtime, count(rate) AS n FROM rated GROUP BY window(rowtime, '1 hour')"
    pair.run(pair.spark.sql(hours))
    with opened(pair.path("orders")) as left, opened(pair.path("rates")) as right:
        send(right, ("11:00", "USD", 1.0), promise="12:00")
        send(left, ("11:30", "USD", 1), ("11:59:59.999", "USD", 2), promise="12:00")
        assert pair.step() == [("12:00", 2)]


@pytest.mark.long
def test_a_stream_with_itself(pair: Pipe) -> None:
    """The rate before, by the time of the last one, of which each row is the nearest itself."""
    twice = "SELECT a.*, b.rate AS same, b.rowtime AS at FROM rates a ASOF JOIN rates b "
    pair.run(pair.spark.sql(twice + "MATCH_CONDITION (a.rowtime >= b.rowtime) ON a.currency = b.currency"))
    with opened(pair.path("rates")) as right:
        send(right, ("11:00", "USD", 1.0), ("11:30", "USD", 2.0), promise="12:00")
        found = [(row[1], row[2], row[3]) for row in pair.step()]
        assert found == [("USD", 1.0, 1.0), ("USD", 2.0, 2.0)]


NEEDED = {
    "by the output": ("SELECT rowtime, n, m FROM j", "n", "m"),
    "by a condition": ("SELECT rowtime, n FROM j WHERE m > 0 AND text IS NOT NULL", "n text", "m"),
    "by a window": ("SELECT window.end AS rowtime, sum(n) AS n FROM j GROUP BY window(rowtime, '1 hour')", "n", ""),
    "by a union": ("SELECT rowtime, n FROM j UNION ALL SELECT rowtime, n FROM orders", "n", ""),
    "by all": ("SELECT DISTINCT * FROM j", "n text", "m note"),
}


@pytest.mark.long
@pytest.mark.parametrize("why", NEEDED)
def test_the_state_has_the_columns_that_the_query_needs(pipe: Pipe, why: str) -> None:
    pipe.spark.conf.set("spark.sql.join.asofJoin.enabled", "true")
    paths = [
        pipe.create("orders", "k INT, n INT, text STRING NOT NULL"),
        pipe.create("rates", "k INT, m INT, note STRING"),
    ]
    for name in ("orders", "rates"):
        pipe.read(name).createOrReplaceTempView(name)
    text, left_columns, right_columns = NEEDED[why]
    joined = f"SELECT o.*, r.* EXCEPT (rowtime, k) FROM orders o LEFT ASOF JOIN rates r {MATCH} ON o.k = r.k"
    pipe.run(pipe.spark.sql(f"WITH j AS ({joined}) {text}"))
    with opened(paths[0], **ANY_ORDER) as left, opened(paths[1], **ANY_ORDER) as right:
        send(right, ("12:00", 1, 5, "a"), ("12:30", 1, 6, "b"), promise="12:20")
        send(left, ("12:10", 1, 7, "c"), ("12:40", 1, 8, "d"), promise="12:20")
        assert pipe.query is not None
        pipe.query.processAllAvailable()
    always = {"time", "key0", "keyHash"}
    assert in_state(pipe, "left") == always | {f"left {name}" for name in left_columns.split()}
    assert in_state(pipe, "right") == always | {f"right {name}" for name in right_columns.split()}
    assert in_state(pipe, "current") == in_state(pipe, "right")


def in_state(pipe: Pipe, variable: str) -> set[str]:
    """The columns of the rows that a state function keeps in that variable."""
    checkpoint = str(pipe.folder / "checkpoint")
    operators = pipe.spark.read.format("state-metadata").load(checkpoint).where("operatorName LIKE 'transformWith%'")
    reader = pipe.spark.read.format("statestore").option("stateVarName", variable)
    rows = reader.option("operatorId", operators.first()["operatorId"]).load(checkpoint)
    chunks = [row.chunk for row in rows.select("user_map_value.chunk").collect()]
    assert chunks
    return {name for chunk in chunks for name in from_bytes(chunk).column_names}


REFUSED = {
    "MATCH_CONDITION (o.rowtime > r.rowtime)": "not left >= right",
    "MATCH_CONDITION (o.rowtime <= r.rowtime)": 'direction="forward" and tolerance',
    "MATCH_CONDITION (o.amount >= r.rate)": "two TIMESTAMP columns with a watermark",
    "MATCH_CONDITION (o.rowtime >= r.rowtime + INTERVAL 1 HOUR)": "two TIMESTAMP columns with a watermark",
    "MATCH_CONDITION (o.rowtime >= r.rowtime) ON o.currency <=> r.currency": "another condition than left = right",
    "MATCH_CONDITION (o.rowtime >= r.rowtime) ON o.currency = r.currency AND r.rate > 1": "(r.rate > ",
    "MATCH_CONDITION (o.rowtime >= r.rowtime) ON struct(o.currency) = struct(r.currency)": "another condition",
}


def test_what_is_refused_by_name(pair: Pipe) -> None:
    for form, said in REFUSED.items():
        refused_by(pair, pair.spark.sql(f"SELECT o.* FROM orders o ASOF JOIN rates r {form}"), said)
    pair.spark.sql("CREATE OR REPLACE TEMP VIEW old AS SELECT TIMESTAMP '2006-09-11' AS since, 1.0 AS rate")
    of_table = "SELECT o.* FROM orders o ASOF JOIN old r MATCH_CONDITION (o.rowtime >= r.since)"
    refused_by(pair, pair.spark.sql(of_table), "one side is no stream")
    of_interval = f"SELECT o.* FROM orders o ASOF JOIN (SELECT *, make_interval(1) AS year FROM rates) r {MATCH}"
    refused_by(pair, pair.spark.sql(of_interval), "column year is INTERVAL")


def refused_by(pair: Pipe, frame: DataFrame, said: str) -> None:
    with pytest.raises(Exception, match="ASOF JOIN") as refused:
        pair.run(frame)
    for text in (said, "operators.asofJoin"):
        assert text in str(refused.value)


def test_without_rocksdb_it_is_refused(pair: Pipe) -> None:
    provider = "spark.sql.streaming.stateStore.providerClass"
    rocksdb = pair.spark.conf.get(provider)
    pair.spark.conf.unset(provider)
    try:
        frame = pair.spark.sql(JOIN.format(how=""))
        refused_by(pair, frame, "needs the RocksDB state store")
    finally:
        pair.spark.conf.set(provider, rocksdb)
    refused_by(pair, frame, "make it again")


@pytest.mark.night
@pytest.mark.parametrize("in_sql", [True, False])
def test_rows_in_the_state_keep_their_columns_in_a_changed_query(pipe: Pipe, in_sql: bool) -> None:
    """Its columns are in another order, or there is one that the rows in the state do not have."""
    pipe.spark.conf.set("spark.sql.join.asofJoin.enabled", "true")
    paths = [pipe.create("orders", "a INT, b INT"), pipe.create("rates", "c INT, d INT")]

    def joined(orders: str, rates: str) -> DataFrame:
        left, right = (pipe.read("orders").selectExpr(*orders.split()), pipe.read("rates").selectExpr(*rates.split()))
        if not in_sql:
            return asofJoin(left, right)
        left.createOrReplaceTempView("orders")
        right.createOrReplaceTempView("rates")
        return pipe.spark.sql(f"SELECT o.*, r.* EXCEPT (rowtime) FROM orders o LEFT ASOF JOIN rates r {MATCH}")

    columns = ("rowtime", "a", "b", "c", "d")
    pipe.run(joined("rowtime a b", "rowtime c d").select(*columns))
    with opened(paths[0]) as left, opened(paths[1], **ANY_ORDER) as right:
        send(left, ("12:20", 1, 2), ("12:40", 3, 4), promise="13:00")
        send(right, ("12:10", 5, 6), ("12:30", 7, 8), promise="12:20")
        assert pipe.step() == []
        restart(pipe, joined("b rowtime a", "d c rowtime").select(*columns))
        send(right, promise="12:35")
        assert pipe.step() == [("12:20", 1, 2, 5, 6)]
        send(right, ("12:35", 9, 10), promise="12:50")
        assert pipe.step() == [("12:40", 3, 4, 9, 10)]
        send(left, ("13:10", 1, 2), promise="14:00")
        assert pipe.step() == []
        restart(pipe, joined("rowtime a b a+b", "rowtime c d").where("`(a + b)` > 0").select(*columns))
        send(right, promise="14:00")
        with pytest.raises(Exception, match="Start it with a new checkpoint"):
            pipe.step()
