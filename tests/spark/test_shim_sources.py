"""Several sources in one query: the weakest counts."""

from pathlib import Path

import pytest
from pyspark.sql import functions as F

from tests.spark.observed_query import Observed, put_row
from tests.streams import Pipe, opened, send


def hourly(frame):
    return frame.groupBy(F.window("rowtime", "1 hour"), "k").count()


class Files:
    """An ordinary streaming source."""

    def __init__(self, pipe: Pipe, folder: Path) -> None:
        self.folder = folder / "files"
        self.folder.mkdir()
        self.frame = pipe.spark.readStream.schema("rowtime TIMESTAMP, k STRING").json(str(self.folder))

    def put(self, clock: str, key: str) -> None:
        put_row(self.folder / f"{len(list(self.folder.iterdir()))}.json", clock, key)


@pytest.mark.smoke
def test_a_union_of_two_streams_takes_the_weakest(pipe: Pipe, tmp_path) -> None:
    a, b = opened(pipe.create("a", "k STRING"), "p"), opened(pipe.create("b", "k STRING"), "p")
    with Observed(hourly(pipe.read("a").union(pipe.read("b"))), tmp_path) as query:
        send(a, ("12:10", "a"), promise="15:00")
        send(b, ("12:20", "b"))
        assert query.step() == []
        send(b, ("12:40", "b"))
        assert query.step() == []
        send(b, promise="13:00")
        assert query.step() == [(("12:00", "13:00"), "a", 1), (("12:00", "13:00"), "b", 2)]


def test_a_stream_of_several_producers_is_not_led_by_its_rows(pipe: Pipe, tmp_path) -> None:
    """Spark's data-driven watermark would be 14:00 after the first row."""
    path = pipe.create("a", "k STRING")
    fast, slow = opened(path, "fast"), opened(path, "slow")
    with Observed(hourly(pipe.read("a")), tmp_path) as query:
        send(fast, ("12:10", "a"), ("14:00", "a"))
        send(slow, promise="12:00")
        query.step()
        send(slow, ("12:30", "a"), promise="13:00")
        assert query.step() == [(("12:00", "13:00"), "a", 2)]


@pytest.mark.long
def test_one_watermark_over_a_stream_and_files_is_the_weaker(pipe: Pipe, tmp_path) -> None:
    rows, files = opened(pipe.create("a", "k STRING"), "p"), Files(pipe, tmp_path)
    frame = pipe.read("a").union(files.frame).withWatermark("rowtime", "10 minutes")
    with Observed(hourly(frame), tmp_path) as query:
        files.put("12:20", "f")
        send(rows, ("12:10", "a"), promise="13:30")
        assert query.step() == [], "the files may still be at 12:10"
        files.put("13:05", "f")
        assert query.step() == []
        files.put("13:10", "f")
        assert query.step() == [(("12:00", "13:00"), "a", 1), (("12:00", "13:00"), "f", 1)]
        files.put("14:30", "f")
        assert query.step() == []
        assert query.watermark == "13:30", "the bound is now the weaker one"


@pytest.mark.long
def test_a_union_with_files_promises_nothing(pipe: Pipe, tmp_path) -> None:
    rows, files = opened(pipe.create("a", "k STRING"), "p"), Files(pipe, tmp_path)
    with Observed(pipe.read("a").union(files.frame), tmp_path) as query:
        send(rows, ("12:10", "a"), promise="13:30")
        assert query.step() == [("12:10", "a")]
        assert query.promised == {}


@pytest.mark.long
def test_a_union_with_files_has_no_watermark_of_its_own(pipe: Pipe, tmp_path) -> None:
    pipe.create("a", "k STRING")
    query = Observed(hourly(pipe.read("a").union(Files(pipe, tmp_path).frame)), tmp_path)
    with pytest.raises(Exception, match="without watermark"), query:
        pass


@pytest.mark.long
def test_a_stream_that_speaks_for_the_files(pipe: Pipe, tmp_path) -> None:
    rows, files = opened(pipe.create("a", "k STRING"), "p"), Files(pipe, tmp_path)
    with Observed(hourly(pipe.read("a", punctuate="true").union(files.frame)), tmp_path) as query:
        files.put("12:40", "f")
        send(rows, promise="12:50")
        assert query.step() == []
        send(rows, promise="13:00")
        assert query.step() == [(("12:00", "13:00"), "f", 1)]


def test_a_table_beside_the_stream_changes_nothing(pipe: Pipe, tmp_path) -> None:
    rows = opened(pipe.create("a", "k STRING"), "p")
    names = pipe.spark.createDataFrame([("a", "Anna")], "k STRING, name STRING")
    with Observed(pipe.read("a").join(names, "k").select("rowtime", "name"), tmp_path) as query:
        send(rows, ("12:10", "a"), promise="13:30")
        assert query.step() == [("12:10", "Anna")]
        assert query.promised == {"rowtime": "13:30"}


def test_the_policy_max_is_refused(pipe: Pipe, tmp_path) -> None:
    pipe.create("a", "k STRING")
    policy = "spark.sql.streaming.multipleWatermarkPolicy"
    pipe.spark.conf.set(policy, "max")
    try:
        with (
            pytest.raises(Exception, match=f"{policy}=min, but it is max"),
            Observed(hourly(pipe.read("a")), tmp_path) as query,
        ):
            query.step()
    finally:
        pipe.spark.conf.unset(policy)
