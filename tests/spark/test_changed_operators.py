"""An operator that is not the one its checkpoint was begun with: frames and keys are in no checkpoint of Spark's."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame

from spark_rowtime.operators import asofJoin, cascadingAggregate, matchRecognize, slidingAggregate
from tests.spark.observed_query import Observed
from tests.spark.test_changed_query import rewrite
from tests.streams import Pipe, opened, send

COLUMNS = "product STRING, shop STRING, units INT"
SUM = {"n": ("sum", "units")}


def sliding(pipe: Pipe, **given: Any) -> DataFrame:
    return slidingAggregate(pipe.read("orders"), **{"by": "product", "aggregates": SUM, **given})


def cascading(pipe: Pipe, **given: Any) -> DataFrame:
    return cascadingAggregate(pipe.read("orders"), **{"by": "product", "aggregates": SUM, **given})


def asof(pipe: Pipe, **given: Any) -> DataFrame:
    orders = pipe.read("orders")
    right = orders.selectExpr("rowtime", "product", "shop", "units AS last")
    return asofJoin(orders.select("rowtime", "product"), right.drop("shop"), **{"by": "product", **given})


def asof_in_sql(pipe: Pipe, by: str) -> DataFrame:
    pipe.spark.conf.set("spark.sql.join.asofJoin.enabled", "true")
    for name in ("orders", "rates"):
        pipe.read("orders").createOrReplaceTempView(name)
    return pipe.spark.sql(
        "SELECT o.rowtime, o.product, r.units AS last FROM orders o ASOF JOIN rates r "
        f"MATCH_CONDITION (o.rowtime >= r.rowtime) ON o.{by} = r.{by}"
    )


def matches(pipe: Pipe, **given: Any) -> DataFrame:
    return matchRecognize(
        pipe.read("orders"), pattern="A B", define={"B": "B.units > A.units"}, measures={"n": "COUNT(*)"},
        within="1 hour", **given,
    )  # fmt: skip


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
    "keys": (sliding, {"rows": 2}, {"rows": 2, "by": "shop"}, "by .product. in 8 buckets"),
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
    "keys in SQL": (asof_in_sql, {"by": "product"}, {"by": "shop"}, "the last right row by .product."),
    "keys of matches": (matches, {"partitionBy": "product"}, {"partitionBy": "shop"}, "rows of matches by .product."),
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


def test_a_checkpoint_of_an_earlier_version_gets_its_frame(pipe: Pipe, tmp_path: Path) -> None:
    orders = opened(pipe.create("orders", COLUMNS), "feed")
    file = tmp_path / "checkpoint" / "rowtime-times.json"
    with Observed(sliding(pipe, interval="1 hour"), tmp_path) as query:
        send(orders, ("10:00", "A", "x", 1), promise="10:30")
        query.step()
    whole = json.loads(file.read_text())
    assert whole.pop("functions") == ["rows of the last 3600000000L and the next 0L by (product) in 8 buckets"]
    rewrite(file, whole)
    with Observed(sliding(pipe, interval="1 hour"), tmp_path) as query:
        send(orders, ("11:00", "A", "x", 2), promise="11:30")
        assert query.step() == [("11:00", "A", "x", 2, 3)]
    assert json.loads(file.read_text()).keys() == {"times", "functions"}
