"""SQL's ASOF JOIN of two streams has the rows of Spark's own, of the same streams in batch: names, types and values."""

import random
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import DataFrame, DataFrameReader
from pyspark.sql.streaming import DataStreamReader

from tests.spark.operator_streams import after_noon
from tests.streams import Pipe, opened

pytestmark = pytest.mark.long

LEFT = "orders o LEFT ASOF JOIN rates r MATCH_CONDITION (o.rowtime >= r.rowtime)"
FORMS = {
    "using, with the columns that it hides": "SELECT *, o.currency AS ours, r.currency AS theirs, r.rowtime AS rated "
    f"FROM {LEFT} USING (currency)",
    "doubles as keys": f"SELECT o.*, r.m, r.y FROM {LEFT} ON o.x = r.y",
    "keys that are cast": f"SELECT o.*, r.m, r.y, r.e FROM {LEFT} ON o.d = r.e AND o.n % 3 = r.y",
    "expressions as keys": f"SELECT o.*, r.m FROM {LEFT} ON coalesce(o.currency, 'A') = coalesce(r.currency, 'B')",
    "a condition above it": f"SELECT o.*, m FROM {LEFT} ON o.currency = r.currency WHERE m % 2 = 0 OR m IS NULL",
    "of another one": f"WITH rated AS (SELECT o.*, m FROM {LEFT} ON o.currency = r.currency) SELECT o.*, r.m AS again "
    "FROM rated o ASOF JOIN rates r MATCH_CONDITION (o.rowtime >= r.rowtime) ON o.x = r.y AND o.currency = r.currency",
}


@pytest.mark.parametrize("form", FORMS)
def test_the_rows_are_those_of_the_same_join_in_batch(pipe: Pipe, form: str) -> None:
    pipe.spark.conf.set("spark.sql.join.asofJoin.enabled", "true")
    chance = random.Random(form)
    fill(pipe, "orders", "currency STRING, n INT, x DOUBLE, d DECIMAL(10,2)", chance)
    fill(pipe, "rates", "currency STRING, m INT, y DOUBLE, e DECIMAL(12,4)", chance)
    expected = joined(pipe, pipe.spark.read, FORMS[form])
    frame = joined(pipe, pipe.spark.readStream, FORMS[form])
    assert frame.dtypes == expected.dtypes
    query = frame.writeStream.format("memory").queryName("joined").start()
    query.processAllAvailable()
    query.stop()
    found = pipe.spark.table("joined").collect()
    assert len(found) > 10
    assert sorted(map(repr, found)) == sorted(map(repr, expected.collect()))


def joined(pipe: Pipe, reader: DataFrameReader | DataStreamReader, text: str) -> DataFrame:
    for name in ("orders", "rates"):
        reader.format("rowtime").load(pipe.path(name)).createOrReplaceTempView(name)
    return pipe.spark.sql(text)


def fill(pipe: Pipe, name: str, columns: str, chance: random.Random) -> None:
    """Rows whose times are unique: Spark does not say which of several right rows of one time it takes."""
    with opened(pipe.create(name, columns), rowsImplyBounds=False) as sink:
        for number in range(0, 60, 20):
            sink.sendRows([row(chance, number + at) for at in range(20)])
            sink.sendRowtimeBound(after_noon(seconds=number))
            sink.flush()
        sink.sendRowtimeBound(after_noon(hours=1))


def row(chance: random.Random, number: int) -> tuple[Any, ...]:
    time = after_noon(seconds=number + chance.randrange(9), milliseconds=number)
    x, d = chance.choice((None, 0.0, -0.0, 1.0, 2.0, float("nan"))), chance.choice((None, "1.00", "2.00"))
    return time, chance.choice(("A", "B", "C", None)), number, x, d and Decimal(d)
