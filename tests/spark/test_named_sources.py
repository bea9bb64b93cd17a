"""Sources with names (``readStream.name``), by which Spark knows them again in a query that was changed."""

from collections.abc import Iterator
from functools import reduce

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame
from pyspark.sql.streaming import DataStreamReader

from tests.spark.query_output import Watched
from tests.streams import Pipe, opened, send

pytestmark = pytest.mark.skipif(not hasattr(DataStreamReader, "name"), reason="this Spark has no names of sources")

EVOLUTION = "spark.sql.streaming.queryEvolution.enableSourceEvolution"


@pytest.fixture
def named(pipe: Pipe) -> Iterator[Pipe]:
    """A session where each source has a name."""
    pipe.spark.conf.set(EVOLUTION, "true")
    yield pipe
    pipe.spark.conf.unset(EVOLUTION)


def hours_of(pipe: Pipe, names: str) -> DataFrame:
    """The sum of each stream's rows in each hour, as one union."""
    read = {name: pipe.spark.readStream.format("rowtime").name(name).load(pipe.path(name)) for name in names}
    rows = reduce(DataFrame.union, [frame.selectExpr("rowtime", f"'{name}' AS s", "x") for name, frame in read.items()])
    hours = rows.selectExpr("window(rowtime, '1 hour') AS hour", "s", "x").groupBy("hour", "s").sum("x")
    return hours.selectExpr("hour.start AS rowtime", "s", "`sum(x)`")


def test_sources_are_known_by_name_when_they_change_places(named: Pipe) -> None:
    sinks = {name: opened(named.create(name, "x INT"), "feed") for name in "abc"}

    def run(hour: int, names: str) -> list[tuple[object, ...]]:
        for sink in sinks.values():
            send(sink, (f"{hour}:30", hour), promise=f"{hour + 1}:00")
        return Watched().all_available(hours_of(named, names), named.folder / "checkpoint").rows

    assert run(10, "ab") == [("10:00", "a", 10), ("10:00", "b", 10)]
    assert run(11, "ba") == [("11:00", "a", 11), ("11:00", "b", 11)]
    with pytest.raises(StreamingQueryException, match="its checkpoint was begun with"):
        run(12, "cab")  # what has been promised of the output is not known of c
