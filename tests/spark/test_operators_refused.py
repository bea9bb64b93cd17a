"""What the operators refuse, and what they say."""

import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame

import spark_rowtime as rt
from spark_rowtime.operators import cascadingAggregate, slidingAggregate
from tests.spark.observed_query import Observed
from tests.streams import Pipe, at, opened, send

COLUMNS = "product STRING, units INT"
AVERAGE = {"avgUnits": ("avg", "units")}


def refusing(df: DataFrame, **given: Any) -> Any:
    return slidingAggregate(df, **{"by": "product", "interval": "1 hour", "aggregates": AVERAGE, **given})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"by": "shop"}, "one column 'shop'"),
        ({"rowtime": "units"}, "must be TIMESTAMP"),
        ({"interval": "one hour"}, "is not an interval"),
        ({"buckets": 0}, "buckets=0 must be"),
        ({"rows": 10}, "give one of them"),
        ({"interval": None}, "give one of them"),
        ({"interval": None, "rows": 0}, "1 or more"),
        ({"interval": None, "rows": 5, "following": "1 hour"}, "following needs interval, not rows"),
        ({"aggregates": {"n": ("sum",)}}, "must be a dict such as"),
        ({"aggregates": ["sum"]}, "must be a dict such as"),
        ({"by": None}, "None is no key"),
        ({"following": "41 days"}, "in a stream 40 days at most"),
    ],
)
def test_what_is_refused(pipe: Pipe, given: dict[str, Any], said: str) -> None:
    pipe.create("orders", COLUMNS)
    with pytest.raises(rt.RowtimeError, match=said):
        refusing(pipe.read("orders"), **given)


def test_without_a_watermark_it_is_refused(pipe: Pipe) -> None:
    pipe.create("orders", COLUMNS)
    with pytest.raises(rt.InvalidOptionError, match="no watermark"):
        refusing(pipe.read("orders", watermark="none"))


def test_without_rocksdb_it_is_refused(pipe: Pipe) -> None:
    pipe.create("orders", COLUMNS)
    key = "spark.sql.streaming.stateStore.providerClass"
    before = pipe.spark.conf.get(key)
    pipe.spark.conf.set(key, "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider")
    try:
        with pytest.raises(rt.InvalidOptionError, match="RocksDBStateStoreProvider"):
            refusing(pipe.read("orders"))
    finally:
        pipe.spark.conf.set(key, before)


def test_without_the_extra_it_says_which(pipe: Pipe, monkeypatch: pytest.MonkeyPatch) -> None:
    pipe.create("orders", COLUMNS)
    frame = pipe.read("orders")
    monkeypatch.setitem(sys.modules, "google.protobuf", None)
    with pytest.raises(rt.ExtraNotInstalledError, match=r"spark-rowtime\[operators\]"):
        refusing(frame)


def test_a_window_of_nothing_is_refused(pipe: Pipe) -> None:
    pipe.create("orders", COLUMNS)
    with pytest.raises(rt.InvalidOptionError, match="longer than 0"):
        cascadingAggregate(pipe.read("orders"), window="0 seconds", aggregates=AVERAGE)


WITHOUT_TIME = {
    "sliding": lambda rows: slidingAggregate(rows, "product", rowtime="at", interval="1 hour", aggregates=AVERAGE),
    "cascading": lambda rows: cascadingAggregate(rows, "product", rowtime="at", window="1 hour", aggregates=AVERAGE),
}


@pytest.mark.long
@pytest.mark.parametrize("operator", WITHOUT_TIME)
def test_a_row_without_a_time_is_refused_and_can_be_left_out(pipe: Pipe, tmp_path: Path, operator: str) -> None:
    orders = opened(pipe.create("orders", f"{COLUMNS}, at TIMESTAMP"), "feed")
    rows = pipe.read("orders").select("at", "product", "units").withWatermark("at", "0 seconds")
    send(orders, ("10:00", "A", 1, at("9:00")), ("10:01", "A", 0, None), ("10:02", "A", 1, at("9:01")), promise="11:00")
    with (
        pytest.raises(Exception, match="A row has no time: 'at' is null"),
        Observed(WITHOUT_TIME[operator](rows), tmp_path) as query,
    ):
        query.step()
    with Observed(WITHOUT_TIME[operator](rows.where("at IS NOT NULL")), tmp_path) as query:
        assert query.step() == [("09:00", "A", 1, 1.0), ("09:01", "A", 1, 1.0)]
