"""Sources with names (``readStream.name``), by which Spark knows them again in a query that was changed."""

from collections.abc import Iterator
from functools import reduce

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame

from tests.spark.query_output import Watched
from tests.sparksession import EVOLUTION, HAS_NAMES
from tests.streams import Pipe, opened, send

pytestmark = pytest.mark.skipif(not HAS_NAMES, reason="this Spark has no names of sources")


@pytest.fixture
def named(pipe: Pipe) -> Iterator[Pipe]:
    """A session where each source has a name."""
    for name, value in EVOLUTION.items():
        pipe.spark.conf.set(name, value)
    yield pipe
    for name in EVOLUTION:
        pipe.spark.conf.unset(name)


def hours_of(pipe: Pipe, names: str, **added: str) -> DataFrame:
    """The sum of each stream's rows in each hour, as one union; ``added``: where the query begins to read a stream."""
    reader = pipe.spark.readStream.format("rowtime")
    read = {
        name: reader.name(name).option("startingPosition", added.get(name, "earliest")).load(pipe.path(name))
        for name in names
    }
    rows = reduce(DataFrame.union, [frame.selectExpr("rowtime", f"'{name}' AS s", "x") for name, frame in read.items()])
    hours = rows.selectExpr("window(rowtime, '1 hour') AS hour", "s", "x").groupBy("hour", "s").sum("x")
    return hours.selectExpr("hour.start AS rowtime", "s", "`sum(x)`")


class Evolving:
    """A query of the sums of each hour, which is started again with other sources."""

    def __init__(self, pipe: Pipe) -> None:
        self.pipe, self.sinks = pipe, {name: opened(pipe.create(name, "x INT"), "feed") for name in "abc"}
        self.checkpoint = pipe.folder / "checkpoint"

    def send(self, hour: int, names: str = "abc") -> None:
        """A row in the middle of this hour into each of these streams, and the bound at its end."""
        for name in names:
            send(self.sinks[name], (f"{hour}:30", hour), promise=f"{hour + 1}:00")

    def run(self, names: str, **added: str) -> list[tuple[object, ...]]:
        watched = Watched().all_available(hours_of(self.pipe, names, **added), self.checkpoint)
        return [row[:2] for row in watched.rows]


@pytest.fixture
def query(named: Pipe) -> Evolving:
    return Evolving(named)


def test_sources_are_known_by_name_when_they_change_places(query: Evolving) -> None:
    query.send(10)
    assert query.run("ab") == [("10:00", "a"), ("10:00", "b")]
    query.send(11)
    assert query.run("ba") == [("11:00", "a"), ("11:00", "b")]
    newest = max((query.checkpoint / "offsets").glob("[0-9]*"), key=lambda path: int(path.name))
    version, _, *offsets = newest.read_text().splitlines()
    assert version == "v2"
    assert [line.partition(":")[0] for line in offsets] == ["a", "b"]


@pytest.mark.night
@pytest.mark.smoke
def test_a_source_is_added_where_its_rows_are_not_late(query: Evolving) -> None:
    query.send(10)
    assert query.run("ab") == [("10:00", "a"), ("10:00", "b")]
    with pytest.raises(StreamingQueryException, match="source c ") as refused:
        query.run("abc")
    assert '"2006-09-11T11:00:00Z"' in str(refused.value)
    query.send(11)
    assert query.run("abc", c="2006-09-11T11:00:00Z") == [("11:00", name) for name in "abc"], "not that of c at 10:30"
    query.send(12, "ab")
    assert query.run("abc") == [], "c counts for the watermark"
    query.send(12, "c")
    assert query.run("cab") == [("12:00", name) for name in "abc"]


@pytest.mark.night
def test_the_new_source_may_start_where_its_own_bound_is(query: Evolving) -> None:
    query.send(10)
    query.run("ab")
    assert query.run("abc", c="latest") == []
    query.send(11)
    assert query.run("abc") == [("11:00", name) for name in "abc"]


@pytest.mark.long
def test_a_source_that_is_removed_holds_nothing_back(query: Evolving) -> None:
    query.send(10)
    query.run("ab")
    query.send(11, "a")
    assert query.run("a") == [("11:00", "a")]
    query.send(11, "b")
    query.send(12)
    assert query.run("a") == [("12:00", "a")]
    with pytest.raises(StreamingQueryException, match=r"source b .* is new"):
        query.run("ab")  # its row of 11:30 would be late
    assert query.run("ab", b="2006-09-11T13:00:00Z") == []
    query.send(13)
    assert query.run("ab") == [("13:00", "a"), ("13:00", "b")]


@pytest.mark.long
def test_one_of_the_sources_stays(query: Evolving) -> None:
    query.send(10)
    query.run("a")
    with pytest.raises(StreamingQueryException, match="none of its other sources"):
        query.run("b")
