"""A query without news: how long its source may wait for some."""

from pyspark.sql import DataFrame

from tests.spark.query_output import Watched
from tests.spark.recorded_questions import asking, told_alone
from tests.streams import Pipe, opened, send


def test_only_a_source_that_is_the_querys_only_one_waits_longer(pipe: Pipe) -> None:
    spark, names = asking(pipe.spark), ("lone", "one", "two", "mixed")
    streams = {name: pipe.create(name, "x INT") for name in names}
    for path in streams.values():
        send(opened(path, "feed"), ("10:00", 1))

    def read(name: str) -> DataFrame:
        return spark.readStream.format("rowtime").load(streams[name])

    ticks = spark.readStream.format("rate").load().selectExpr("timestamp AS rowtime", "CAST(value AS INT) AS x")
    for frame in (read("lone"), read("one").union(read("two")), read("mixed").union(ticks)):
        watched = Watched().start(frame)
        try:
            watched.step()
        finally:
            watched.query.stop()
    told = {name: told_alone(path) for name, path in streams.items()}
    assert told == {"lone": ["True"], "one": ["False"], "two": ["False"], "mixed": ["False"]}


def test_news_ends_the_wait_of_an_idle_query(pipe: Pipe) -> None:
    path = pipe.create("s", "x INT")
    sink = opened(path, "feed")
    watched = Watched().start(pipe.spark.readStream.format("rowtime").load(path))
    try:
        for number in range(3):
            send(sink, ("10:00", number))
            assert watched.step() == [("10:00", number)]
    finally:
        watched.query.stop()
