"""A query without news: how its sources wait for some."""

import pytest
from pyspark.sql import DataFrame

from tests.spark.query_output import Watched
from tests.spark.recorded_questions import asked, asking
from tests.sparksession import wait_for
from tests.streams import Pipe, opened, send

LONG_SECONDS = 0.2


@pytest.mark.long
def test_one_source_waits_for_all_and_longer_the_longer_there_is_no_news(pipe: Pipe) -> None:
    spark, names = asking(pipe.spark), ("lone", "one", "two", "mixed", "seldom")
    streams = {name: pipe.create(name, "x INT") for name in names}
    for path in streams.values():
        send(opened(path, "feed"), ("10:00", 1))

    def read(name: str) -> DataFrame:
        return spark.readStream.format("rowtime").load(streams[name])

    def long(*of: str) -> list[str]:
        """Which of the streams were asked to wait long, and for which others."""
        found = [(name, question) for name in of for question in asked(streams[name])]
        return sorted({(name, *q["streams"]) for name, q in found if q["seconds"] == LONG_SECONDS})

    ticks = spark.readStream.format("rate").load().selectExpr("timestamp AS rowtime", "CAST(value AS INT) AS x")
    queries: list[Watched] = []
    try:
        for frame in (read("lone"), read("one").union(read("two")), read("mixed").union(ticks)):
            queries.append(watched := Watched().start(frame))
            wait_for(lambda watched=watched: watched.batches, "a batch")  # a rate always has news
        queries.append(Watched().start(read("seldom"), every="1 second"))
        queries[-1].step()
        wait_for(lambda: long("lone") and long("one", "two") and asked(streams["mixed"]), "long waits")
        assert long("lone") == [("lone",)]
        assert long("one", "two") in ([("one", streams["two"])], [("two", streams["one"])])
        assert {question["seconds"] for question in asked(streams["mixed"])} == {0.005}
        assert asked(streams["seldom"]) == []
    finally:
        for watched in queries:
            watched.query.stop()


@pytest.mark.long
def test_news_of_either_source_ends_the_wait_of_an_idle_query(pipe: Pipe) -> None:
    paths = [pipe.create(name, "x INT") for name in ("one", "two")]
    sinks = [opened(path, "feed") for path in paths]
    one, two = (pipe.spark.readStream.format("rowtime").load(path) for path in paths)
    watched = Watched().start(one.union(two))
    try:
        for number in range(3):
            for sink in sinks:
                send(sink, ("10:00", number))
                assert watched.step() == [("10:00", number)]
    finally:
        watched.query.stop()
