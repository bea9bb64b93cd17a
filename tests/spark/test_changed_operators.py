"""An operator that is not the one its checkpoint was begun with: frames and keys are in no checkpoint of Spark's."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_rowtime.operators import asofJoin, cascadingAggregate, matchRecognize, slidingAggregate
from tests.spark.observed_query import Observed
from tests.spark.test_changed_query import rewrite
from tests.streams import Pipe, opened, send

COLUMNS = "product STRING, shop STRING, units INT"
SUM = {"n": ("sum", "units")}


def sliding(pipe: Pipe, **given: Any) -> DataFrame:
    return slidingAggregate(pipe.read("orders"), **{"by": "product", "aggregates": SUM, **given})


def computed(pipe: Pipe, of: str) -> DataFrame:
    return slidingAggregate(pipe.read("orders").withColumn("product", F.expr(of)), "product", rows=2, aggregates=SUM)


def cascading(pipe: Pipe, **given: Any) -> DataFrame:
    return cascadingAggregate(pipe.read("orders"), **{"by": "product", "aggregates": SUM, **given})


def asof(pipe: Pipe, **given: Any) -> DataFrame:
    orders = pipe.read("orders")
    right = orders.selectExpr("rowtime", "product", "shop", "units AS last")
    return asofJoin(orders.select("rowtime", "product"), right.drop("shop"), **{"by": "product", **given})


def asof_in_sql(pipe: Pipe, on: str, rates: str = "rates") -> DataFrame:
    pipe.spark.conf.set("spark.sql.join.asofJoin.enabled", "true")
    for name in ("orders", "rates"):
        pipe.read("orders").createOrReplaceTempView(name)
    return pipe.spark.sql(
        f"SELECT o.rowtime, o.product, r.units AS last FROM orders o ASOF JOIN {rates} r "
        f"MATCH_CONDITION (o.rowtime >= r.rowtime) ON {on}"
    )


def matches(pipe: Pipe, **given: Any) -> DataFrame:
    return matchRecognize(
        pipe.read("orders"), pattern="A B", define={"B": "B.units > A.units"}, measures={"n": "COUNT(*)"},
        within="1 hour", **given,
    )  # fmt: skip


SAME = "o.product = r.product"
Build = Callable[..., DataFrame]
CHANGES: dict[str, tuple[Build, dict[str, Any], dict[str, Any], str]] = {
    "interval": (sliding, {"interval": "80 minutes"}, {"interval": "8 minutes"}, "rows of the last 80 minutes"),
    "following": (
        sliding,
        {"interval": "1 hour"},
        {"interval": "1 hour", "following": "1 hour"},
        "1 hour and the next 0 microseconds",
    ),
    "rows": (sliding, {"rows": 2}, {"rows": 3}, "the last 2 rows"),
    "keys": (sliding, {"rows": 2}, {"rows": 2, "by": "shop"}, "in 8 buckets by .*time product"),
    "buckets": (sliding, {"rows": 2, "buckets": 3}, {"rows": 2}, "in 3 buckets"),
    "window": (cascading, {"window": "2 hours"}, {"window": "1 hour"}, "rows of windows of 2 hours"),
    "start": (cascading, {"window": "2 hours"}, {"window": "2 hours", "startTime": "1 hour"}, "from 0 micro"),
    "tolerance": (asof, {"tolerance": "1 hour"}, {}, "the backward right row within 1 hour"),
    "direction": (
        asof,
        {"tolerance": "1 hour", "direction": "forward"},
        {"tolerance": "1 hour"},
        "the forward right row",
    ),
    "keys in SQL": (asof_in_sql, {"on": SAME}, {"on": "o.shop = r.shop"}, "by .*time product"),
    "the key of a side in SQL": (asof_in_sql, {"on": SAME}, {"on": "o.shop = r.product"}, "by .*time product"),
    "a computed key in SQL": (asof_in_sql, {"on": SAME}, {"on": "upper(o.product) = upper(r.product)"}, "time product"),
    "a computed key": (
        computed,
        {"of": "product"},
        {"of": "upper(product)"},
        "time product",
    ),
    "keys of matches": (
        matches,
        {"partitionBy": "product"},
        {"partitionBy": "shop"},
        "rows of matches in 8 buckets by .*time product",
    ),
}


LONG = [pytest.param(change, marks=() if change in ("interval", "keys") else pytest.mark.long) for change in CHANGES]


@pytest.mark.parametrize("change", LONG)
def test_another_frame_or_key_is_refused_on_an_old_checkpoint(pipe: Pipe, tmp_path: Path, change: str) -> None:
    build, old, new, said = CHANGES[change]
    orders = opened(pipe.create("orders", COLUMNS), "feed")
    with Observed(build(pipe, **old), tmp_path) as query:
        send(orders, ("10:00", "A", "x", 1), ("11:00", "A", "y", 2), promise="11:00", strict=True)
        query.step()
    with (
        pytest.raises(Exception, match=f"its checkpoint was begun with .*{said}"),
        Observed(build(pipe, **new), tmp_path) as query,
    ):
        send(orders, promise="11:30")
        query.step()
    with Observed(build(pipe, **old), tmp_path) as query:
        query.step()


@pytest.mark.parametrize("operator", ["sliding", "asof"])
def test_a_column_of_another_type_gets_none_of_the_values_in_the_state(
    pipe: Pipe, tmp_path: Path, operator: str
) -> None:
    """Spark would show the number as a time."""

    def built(units: str) -> DataFrame:
        orders = pipe.read("orders").withColumn("units", F.expr(units))
        if operator == "sliding":
            return slidingAggregate(orders, "product", interval="1 hour", aggregates={"n": ("count", "*")})
        return asofJoin(orders.select("rowtime", "product"), orders.select("rowtime", "product", "units"), by="product")

    orders = opened(pipe.create("orders", COLUMNS), "feed", rowsImplyBounds=False)
    with Observed(built("units"), tmp_path) as query:
        send(orders, ("10:00", "A", "x", 1), ("11:00", "A", "y", 2), promise="10:30")
        query.step()
    with (
        pytest.raises(Exception, match="rows in its state have it as int32, and not as date32"),
        Observed(built("date_from_unix_date(units)"), tmp_path) as query,
    ):
        send(orders, promise="11:30")
        query.step()


@pytest.mark.long
def test_other_names_of_a_key_in_sql_are_no_other_key(pipe: Pipe, tmp_path: Path) -> None:
    orders = opened(pipe.create("orders", COLUMNS), "feed")
    renamed = "(SELECT rowtime, product AS item, units FROM rates)"
    same = [{"on": SAME}, {"on": "o.product = r.PRODUCT"}, {"on": "o.product = r.item", "rates": renamed}]
    for hour, given in enumerate(same, start=10):
        with Observed(asof_in_sql(pipe, **given), tmp_path) as query:
            send(orders, (f"{hour}:00", "A", "x", hour), promise=f"{hour}:30")
            assert query.step() == [(f"{hour}:00", "A", hour)]


@pytest.mark.long
def test_a_checkpoint_of_an_earlier_version_gets_its_frame(pipe: Pipe, tmp_path: Path) -> None:
    orders = opened(pipe.create("orders", COLUMNS), "feed")
    file = tmp_path / "checkpoint" / "rowtime-times.json"
    with Observed(sliding(pipe, interval="1 hour"), tmp_path) as query:
        send(orders, ("10:00", "A", "x", 1), promise="10:30")
        query.step()
    whole = json.loads(file.read_text())
    [function] = whole.pop("functions")
    assert function.startswith("rows of the last 3600000000L and the next 0L in 8 buckets by ")
    rewrite(file, whole)
    with (
        pytest.raises(Exception, match="its checkpoint was begun with"),
        Observed(sliding(pipe, interval="1 hour", following="1 hour"), tmp_path) as query,
    ):
        query.step()
    assert json.loads(file.read_text()) == whole, "what is refused takes nothing for itself"
    with Observed(sliding(pipe, interval="1 hour"), tmp_path) as query:
        send(orders, ("11:00", "A", "x", 2), promise="11:30")
        assert query.step() == [("11:00", "A", "x", 2, 3)]
    assert json.loads(file.read_text()).keys() == {"times", "functions"}
