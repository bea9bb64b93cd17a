"""matchRecognize through real streams, and in batch."""

import random
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import window

import spark_rowtime as rt
from spark_rowtime.operators import matchRecognize
from tests.spark import match_reference
from tests.spark.operator_streams import kept, output, restart
from tests.spark.test_operators_sliding import in_zone
from tests.streams import Pipe, bound, clock_of, opened, send

PRICES = "ticker STRING, price INT"
V: dict[str, Any] = {
    "pattern": "STRT DOWN+ UP+",
    "define": {"DOWN": "price < PREV(price)", "UP": "UP.price > PREV(UP.price)"},
    "measures": {"since": "STRT.rowtime", "lowest": "LAST(DOWN.price)", "rows": "COUNT(*)", "by": "price - STRT.price"},
}


@pytest.mark.smoke
def test_a_match_comes_out_when_no_later_row_can_change_it(pipe: Pipe) -> None:
    prices = pipe.create("prices", PRICES)
    pipe.run(matchRecognize(pipe.read("prices"), "ticker", **V, within="10 minutes"))
    with opened(prices, rowsImplyBounds=False) as sink:
        send(sink, ("12:03", "A", 7), ("12:01", "A", 9), ("12:02", "A", 5), ("12:02", "B", 5), promise="12:04")
        assert pipe.step() == [], "the next row may be another UP"
        assert pipe.bound == bound("11:54")
        send(sink, ("12:04", "B", 4), ("12:05", "A", 6), ("12:06", "B", 8), promise="12:06")
        first = ("A", "12:03", "12:01", 5, 3, -2)
        assert matched(pipe) == [first], "the row of 12:05 ends it"
        send(sink, promise="12:12")
        assert matched(pipe) == [first], "a row at 12:12 may be another UP"
        send(sink, promise="12:12", strict=True)
        assert matched(pipe) == [first, ("B", "12:06", "12:02", 4, 3, 3)], "within has passed"
        send(sink, promise="13:00")
        assert len(matched(pipe)) == 2
        assert [row[0] for row in pipe.step()] == ["12:03", "12:06"]
        assert kept(pipe) == 0
        assert pipe.bound == bound("12:50")


def matched(pipe: Pipe) -> list[tuple[Any, ...]]:
    """All matches that were given out, also those above the bound of the output."""
    return [tuple(clock_of(v) if isinstance(v, datetime) else v for v in row.values()) for row in output(pipe)]


FORMS: list[dict[str, Any]] = [
    {"within": "4 seconds", "after": "past last row"},
    {"within": "9 seconds", "after": "to next row"},
]
RANDOM: dict[str, Any] = {
    "define": {"B": "v > PREV(v)", "C": "v <= FIRST(v) OR COUNT(B.*) > 1"},
    "measures": {"first": "FIRST(n)", "last": "n", "b": "COUNT(B.*)", "s": "SUM(C.v)", "m": "MIN(B.v)"},
}
PATTERN = match_reference.Part(
    "sequence",
    (
        match_reference.Part("variable", ("A",)),
        match_reference.Part("repeat", (match_reference.Part("variable", ("B",)),), 1, None),
        match_reference.Part("repeat", (match_reference.Part("variable", ("C",)),), 0, 2, False),
        match_reference.Part("|", (match_reference.Part("variable", ("C",)), match_reference.Part("variable", ("B",)))),
    ),
)


@pytest.mark.long
@pytest.mark.each
@pytest.mark.parametrize("form", FORMS, ids=lambda form: str(form["after"]))
def test_equal_to_a_matcher_that_tries_all_with_restarts_ties_and_nulls(pipe: Pipe, form: dict[str, Any]) -> None:
    chance, sent, number = random.Random(4711), list[tuple[int, Any, int, int]](), 0
    path = pipe.create("rows", "k STRING, n INT, v INT")
    frame = recognized(pipe.read("rows"), form)
    pipe.run(frame)
    with opened(path, rowsImplyBounds=False) as sink:
        for step in range(6):
            rows = []
            for _ in range(25):
                number += 1
                rows.append(
                    (10 * step + chance.randrange(14), chance.choice(("x", "y", None)), number, chance.randrange(9))
                )
            sent += rows
            sink.sendRows([(seconds(row[0]), *row[1:]) for row in rows])
            sink.sendRowtimeBound(seconds(10 * step + 10))
            sink.flush()
            if step == 3:
                restart(pipe, frame)
            output(pipe)
        sink.sendRowtimeBound(seconds(1000))
        sink.flush()
        found = sorted(map(shown, output(pipe)))
    batch = recognized(pipe.spark.read.format("rowtime").load(path), form).collect()
    assert sorted(shown(row.asDict()) for row in batch) == found
    assert [row[1:4] for row in found] == reference(sent, form)
    assert len(found) > 8
    assert kept(pipe) == 0


def shown(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["k"] or "", row["first"], row["last"], row["b"], row["rowtime"].timestamp(), str(row["s"]), row["m"]


def recognized(rows: DataFrame, form: dict[str, Any]) -> DataFrame:
    return matchRecognize(rows, "k", pattern=str(PATTERN), **RANDOM, **form, buckets=3)


def reference(sent: list[tuple[int, Any, int, int]], form: dict[str, Any]) -> list[tuple[int, int, int]]:
    """Of each match the number of the first and the last row, and how many rows are mapped to B."""
    by_key, within, found = defaultdict(list), int(form["within"].split()[0]), []
    for time, key, number, value in sorted(sent, key=lambda row: (row[0], row[2])):
        by_key[key or ""].append((time, number, value))
    for key in sorted(by_key):
        rows = by_key[key]

        def holds(so_far: Any, way: tuple[str, ...], rows: Any = rows) -> bool:
            first, row = so_far[-len(way)], so_far[-1]
            before = next((other for other in reversed(so_far[:-1])), None)
            if way[-1] == "B":
                return before is not None and row[0] - before[0] <= within and row[2] > before[2]
            return way[-1] == "A" or bool(row[2] <= first[2] or way.count("B") > 1)

        overlapping = form["after"] == "to next row"
        of = match_reference.matches(PATTERN, rows, [row[0] for row in rows], holds, within, overlapping=overlapping)
        found += sorted((rows[at][1], rows[at + len(way) - 1][1], way.count("B")) for at, way in of)
    return found


def seconds(number: int) -> datetime:
    return datetime(2006, 9, 11, 12, tzinfo=UTC) + timedelta(seconds=number)


def test_a_window_above_it_closes_through_a_stream(pipe: Pipe) -> None:
    """The rows come later than their time: for a window, write them to a stream, and read that."""
    pipe.create("prices", PRICES)
    found = matchRecognize(pipe.read("prices"), pattern="A B", define={}, measures={"n": "COUNT(*)"}, within="1 minute")
    with pytest.raises(rt.InvalidOptionError, match="has no watermark"):
        matchRecognize(found, pattern="A", define={}, measures={"n": "1"}, within="1 minute")
    assert found.groupBy(window("rowtime", "1 hour")).count().columns == ["window", "count"]


@pytest.mark.night
def test_a_changed_query_reads_the_rows_of_its_state_by_their_expressions(pipe: Pipe) -> None:
    """In another order they are the same. Rows without one are refused, and the query before goes on with them."""
    path = pipe.create("rows", "units INT")

    def found(**define: str) -> DataFrame:
        rows, measures = pipe.read("rows"), {"first": "A.units"}
        return matchRecognize(rows, pattern="A B", define=define, measures=measures, within="1 minute")

    pipe.run(found(A="units > 5", B="units < 5"))
    with opened(path, rowsImplyBounds=False) as sink:
        send(sink, ("12:01", 9), ("12:01:10", 1), promise="12:00")
        assert matched(pipe) == []
        restart(pipe, found(A="units > 8", B="units < 5"))
        send(sink, ("12:05", 6), promise="12:00:30")
        with pytest.raises(StreamingQueryException, match="needs 'units > 8' of each row") as refused:
            output(pipe)
        assert "Start the query with a new checkpoint" in str(refused.value)
        restart(pipe, found(B="units < 5", A="units > 5"))
        send(sink, ("12:05:10", 2), promise="12:01:05")
        assert matched(pipe) == []
        restart(pipe, found(A="units > 5"))
        send(sink, promise="13:00")
        assert matched(pipe) == [("12:01:10", 9), ("12:05:10", 6)], "any row is a B"


def ticks(spark: SparkSession, *prices: int) -> DataFrame:
    """The prices of ACME, one each minute from 10:00 on."""
    start = datetime(2011, 4, 1, 10, tzinfo=UTC)
    rows = [("ACME", start + timedelta(minutes=n), price) for n, price in enumerate(prices)]
    return spark.createDataFrame(rows, "symbol STRING, rowtime TIMESTAMP, price INT")


def minutes(found: DataFrame) -> list[tuple[Any, ...]]:
    def shown(value: Any) -> Any:
        return value.astimezone(UTC).minute if isinstance(value, datetime) else value

    return [tuple(map(shown, row[2:])) for row in found.orderBy("rowtime").collect()]


@pytest.mark.long
def test_worked_examples_of_oracle_and_flink(spark: SparkSession) -> None:
    """Oracle's "Simple V-Shape with 1 Row Output per Match", but with SKIP PAST LAST ROW.

    Flink's "Introduction and Examples", "Aggregations", and "Greedy and Reluctant Quantifiers".
    """
    oracle = ticks(spark, 12, 17, 19, 21, 25, 12, 15, 20, 24, 25, 19, 15, 25, 25, 14, 12, 14, 24, 23, 22)
    times = {"since": "STRT.rowtime", "bottom": "LAST(DOWN.rowtime)", "until": "LAST(UP.rowtime)"}
    v: dict[str, Any] = {
        "pattern": V["pattern"],
        "define": {"DOWN": "DOWN.price < PREV(DOWN.price)", "UP": "UP.price > PREV(UP.price)"},
    }
    found = matchRecognize(oracle, "symbol", **v, measures=times, within="1 day")
    assert minutes(found) == [(4, 5, 9), (10, 11, 12), (13, 15, 17)]

    flink = ticks(spark, 12, 17, 19, 21, 25, 18, 15, 14, 24, 25, 19)
    down = (
        "(LAST(PRICE_DOWN.price, 1) IS NULL AND PRICE_DOWN.price < START_ROW.price) "
        "OR PRICE_DOWN.price < LAST(PRICE_DOWN.price, 1)"
    )
    found = matchRecognize(
        flink,
        "symbol",
        pattern="START_ROW PRICE_DOWN+ PRICE_UP",
        define={"PRICE_DOWN": down, "PRICE_UP": "PRICE_UP.price > LAST(PRICE_DOWN.price, 1)"},
        measures={"a": "START_ROW.rowtime", "b": "LAST(PRICE_DOWN.rowtime)", "c": "LAST(PRICE_UP.rowtime)"},
        within="1 hour",
    )
    assert minutes(found) == [(4, 7, 8)]

    flink = ticks(spark, 12, 17, 13, 16, 25, 2, 4, 10, 15, 25, 25, 30)
    found = matchRecognize(
        flink,
        "symbol",
        pattern="A+ B",
        define={"A": "AVG(A.price) < 15"},
        measures={"a": "FIRST(A.rowtime)", "b": "LAST(A.rowtime)", "c": "AVG(A.price)"},
        within="1 hour",
    )
    assert minutes(found) == [(0, 3, 14.5), (5, 10, 13.5)]

    define = {"A": "A.price > 10", "B": "B.price < 15", "C": "C.price > 12"}
    for pattern, price in (("A B* C", 16), ("A B*? C", 13)):
        rows = ticks(spark, 10, 11, 12, 13, 14, 16)
        found = matchRecognize(
            rows, "symbol", pattern=pattern, define=define, measures={"p": "C.price"}, within="1 hour"
        )
        assert minutes(found)[0] == (price,)


def test_values_of_all_types_pass_exactly(spark: SparkSession) -> None:
    rows = spark.sql(
        "SELECT id AS n, timestamp_micros(id) AS rowtime, CAST(id AS DECIMAL(9,2)) AS d, string(id) AS s,"
        " if(id = 0, double('nan'), id) AS f, date_from_unix_date(int(id)) AS day, array(id) AS a,"
        " struct(id AS x) AS t, id = 1 AS flag, binary(string(id)) AS bin, timestamp_ntz'2006-09-11 00:00:00' AS local"
        " FROM range(2)"
    )
    names = [name for name in rows.columns if name != "rowtime"]
    found = matchRecognize(
        rows,
        pattern="X Y",
        define={
            "Y": "d > X.d AND s > X.s AND f < X.f AND day > X.day AND Y.local = X.local AND rowtime - X.rowtime > "
            "INTERVAL '0' SECOND AND NOT X.flag"
        },
        measures={
            **{f"first_{name}": f"FIRST({name})" for name in names},
            **{f"last_{name}": f"Y.{name}" for name in names},
            "most": "MAX(f)",
            "text": "concat(X.s, '-', upper(LAST(s)), '-', t.x)",
        },
        within="1 second",
    )
    first, last = rows.orderBy("n").select(*names).collect()
    with in_zone(spark, "Europe/Berlin"):
        row = found.collect()[0]
    assert [str(value) for value in row[1:-2]] == [str(value) for value in (*first, *last)]
    assert [field.dataType for field in found.schema.fields[1:-2]] == 2 * [rows.schema[name].dataType for name in names]
    assert (str(row["most"]), row["text"]) == ("nan", "0-1-1")


def test_arguments_that_cannot_be_are_refused(spark: SparkSession) -> None:
    rows = ticks(spark, 1, 2)
    good: dict[str, Any] = {"pattern": "A B", "define": {}, "measures": {"n": "COUNT(*)"}, "within": "1 hour"}
    for wrong, why in (
        ({"define": {"D": "true"}}, "define: D is not in the pattern, whose variables are A, B"),
        ({"measures": {}}, "measures is empty"),
        ({"measures": {"n": "CLASSIFIER()"}}, "CLASSIFIER is not supported"),
        ({"measures": {"n": "SUM(symbol)"}}, "SUM takes whole numbers and floats, not string"),
        ({"after": "to last A"}, "after"),
        ({"within": None}, "within"),
        ({"define": None}, "define must be a dict of texts"),
        ({"measures": {"n": 5}}, "measures must be a dict of texts"),
        ({"pattern": 5}, "pattern=5 must be a string"),
        ({"pattern": "(" * 3000 + "A" + ")" * 3000}, "nested too deeply"),
        ({"partitionBy": 5}, "5 is no key"),
    ):
        with pytest.raises(rt.InvalidOptionError, match=why):
            matchRecognize(rows, **{"partitionBy": "symbol", **good, **wrong})
    for measures, name in (({"symbol": "1"}, "symbol"), ({"Symbol": "1"}, "Symbol"), ({"n": "1", "N": "1"}, "N")):
        with pytest.raises(rt.SchemaMismatchError, match=f"'{name}' already"):
            matchRecognize(rows, "symbol", **{**good, "measures": measures})
