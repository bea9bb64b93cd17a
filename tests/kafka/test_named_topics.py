"""Topics with bounds beside them in a query whose sources have names (``readStream.name``)."""

from collections.abc import Iterator
from contextlib import closing
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

import spark_rowtime as rt
from tests.kafka.topic_bounds import TopicBounds, late, promise
from tests.spark.observed_query import Observed
from tests.sparksession import EVOLUTION, HAS_NAMES

pytestmark = pytest.mark.skipif(not HAS_NAMES, reason="this Spark has no names of sources")


class Named(TopicBounds):
    """A topic whose source has a name."""

    def __init__(self, name: str, spark: Any, kafka: Any, folder: Path) -> None:
        (folder / name).mkdir()
        super().__init__(spark, kafka, folder / name)
        self.name = name

    def read(self, **options: Any) -> DataFrame:
        given = {"subscribe": self.topics[0], "kafka.bootstrap.servers": self.kafka.bootstrap, **options}
        return self.spark.readStream.format("kafka").name(self.name).options(**given).load()

    def send(self, hour: int, bounds: Any) -> None:
        """A row in the middle of this hour, and the bound at its end."""
        self.put(0, (f"{hour}:30", self.name))
        promise(bounds, f"{hour + 1}:00", self.cut())


def hours_of(*topics: tuple[Named, str]) -> DataFrame:
    """How many rows each topic has in each hour, as one union. Each is read from these offsets on."""
    rows = reduce(DataFrame.union, [one.rows(startingOffsets=start) for one, start in topics])
    return rows.groupBy(f.window("ts", "1 hour"), "k").count()


def ran(query: Observed) -> list[tuple[Any, ...]]:
    """Runs it up to the end of its topics; returns hours and names."""
    with query:
        return [(row[0][0], row[1]) for row in query.step()]


def sources(query: Observed) -> list[str]:
    """The names in the last offsets."""
    version, _, *lines = (query.checkpoint / "offsets" / str(query.last)).read_text().splitlines()
    assert version == "v2"
    return sorted(line.partition(":")[0] for line in lines)


@pytest.fixture
def named(spark: Any, kafka: Any, tmp_path: Path) -> Iterator[tuple[Named, Named]]:
    """Two topics, in a session where each source has a name."""
    for name, value in EVOLUTION.items():
        spark.conf.set(name, value)
    yield Named("shops", spark, kafka, tmp_path), Named("web", spark, kafka, tmp_path)
    for name in EVOLUTION:
        spark.conf.unset(name)


@pytest.mark.long
def test_a_topic_with_a_name_goes_on_and_another_comes_and_goes(named: tuple[Named, Named], tmp_path: Path) -> None:
    """The bounds of a topic have its name and ``_bounds`` behind it."""
    shops, web = named
    with closing(shops.sink()) as of_shops, closing(web.sink()) as of_web:
        shops.send(10, of_shops)
        web.send(10, of_web)
        query = Observed(hours_of((shops, "earliest")), tmp_path)
        assert ran(query) == [("10:00", "shops")]
        assert sources(query) == ["shops", "shops_bounds"]
        shops.send(11, of_shops)
        assert ran(query) == [("11:00", "shops")], "it was started again"

        query.frame = hours_of((web, "earliest"), (shops, "earliest"))
        with pytest.raises(
            StreamingQueryException, match=r'source web_bounds .* "?2006-09-11T12:00:00Z.*startingOffsets'
        ):
            ran(query)
        web.send(11, of_web)
        query.frame = hours_of((web, "latest"), (shops, "earliest"))
        assert ran(query) == []
        assert sources(query) == ["shops", "shops_bounds", "web", "web_bounds"]
        shops.send(12, of_shops)
        assert ran(query) == [], "the other one counts for the watermark"
        web.send(12, of_web)
        query.frame = hours_of((shops, "earliest"), (web, "latest"))
        assert sorted(ran(query)) == [("12:00", "shops"), ("12:00", "web")], "they have changed places"

        query.frame = hours_of((shops, "earliest"))
        shops.send(13, of_shops)
        assert ran(query) == [("13:00", "shops")], "the one that was removed holds nothing back"


@pytest.mark.night
def test_the_first_rows_of_a_topic_that_comes_are_late_where_the_query_has_passed_them(
    named: tuple[Named, Named], tmp_path: Path
) -> None:
    shops, web = named
    with closing(shops.sink()) as of_shops, closing(web.sink()) as of_web:
        shops.send(10, of_shops)
        promise(of_web, "11:00", web.cut())
        query = Observed(hours_of((shops, "earliest")), tmp_path)
        ran(query)
        web.put(1, ("10:59", "stray"), ("11:30", "web"))
        query.frame = hours_of((shops, "earliest"), (web, "earliest"))
        with query:
            assert query.step() == []
            assert late(query.query) == 1
        assert [row[:4] for row in web.rejected] == [(1, 0, "10:59", "stray")]
        batch = query.lose_commit()
        with query:
            query.step()
        assert batch in query.batches
        assert rt.describeStream(web.bounds).rejected == 1


@pytest.mark.long
def test_a_watch_beside_a_topic_with_a_name(named: tuple[Named, Named], tmp_path: Path) -> None:
    shops, _ = named
    shops.put(0, ("10:30", "a"), ("11:30", "b"))
    for partition in (1, 2):
        shops.put(partition, ("11:30", "b"))
    rows = shops.parsed(startingOffsets="earliest")
    watched = rt.punctuate(rows, "ts", bounds=str(tmp_path / "watched"), watch={"every": "0 seconds"})
    query = Observed(watched.groupBy(f.window("ts", "1 hour"), "k").count(), tmp_path)
    writer = query.frame.writeStream.foreachBatch(query).option("checkpointLocation", str(query.checkpoint))
    writer.trigger(availableNow=True).start().awaitTermination()
    assert [row[1:] for rows in query.batches.values() for row in rows] == [("a", 1)]
