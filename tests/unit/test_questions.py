"""What a source answers the extension, and what it does where Spark itself asks."""

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from unit_support import asked, row, us, when

import spark_rowtime as rt
from spark_rowtime.spark.options import READ, Options
from spark_rowtime.spark.questions import AskedReader
from spark_rowtime.spark.rejected_source import RejectedStreamReader
from spark_rowtime.spark.source import RowtimeStreamReader


@pytest.fixture
def path(tmp_path: Path) -> str:
    path = str(tmp_path / "s.rowtime")
    rt.createStream(path, "rowtime TIMESTAMP NOT NULL, ticker STRING")
    with rt.openSink(path, producer="Berlin") as sink:
        for time in ("10:00", "10:01", "10:02"):
            sink.sendRow(row(time))
    return path


def source_of(path: str, **options: str) -> RowtimeStreamReader:
    return RowtimeStreamReader(Options({"path": path, **options}, READ), 2)


@pytest.fixture
def source(path: str):
    source = source_of(path)
    yield source
    source.stop()


def ends(
    source: RowtimeStreamReader, start: dict[str, Any] | None = None, reader: str = "checkpoint"
) -> dict[str, Any]:
    """The end of the next batch."""
    start = start or source.initialOffset()
    end = asked(source, start, "next", unlimited=False, reader=reader, account=None, topic=None)
    assert isinstance(end, dict)
    return end


def test_a_plan_names_the_trains_between_two_offsets(path: str, source: RowtimeStreamReader) -> None:
    start, end = source.initialOffset(), ends(source)
    plan = asked(source, start, "plan", end=end, parallelism=2)
    trains = [train for partition in plan["partitions"] for train in partition]
    assert (plan["producers"], sum(train[4] for train in trains)) == (["'Berlin'"], 3)
    assert all(Path(file).is_relative_to(path) for file in plan["files"])
    empty = asked(source, end, "plan", end=end, parallelism=2)
    assert [train for partition in empty.get("partitions", []) for train in partition] == []


def test_what_python_workers_read_is_an_answer_too(source: RowtimeStreamReader) -> None:
    start, end = source.initialOffset(), ends(source)
    parts = source.partitions(start, {"ask": "partitions", "end": end, "reader": "checkpoint"})
    assert sum(rows.num_rows for part in parts for rows in source.read(part)) == 3


@pytest.mark.parametrize(("asked_", "least"), [("9:00", "10:00"), ("10:01", "10:01"), ("10:01:30", "10:02")])
def test_the_least_rowtime_that_was_sent_from_a_time_on(source: RowtimeStreamReader, asked_: str, least: str) -> None:
    assert asked(source, ends(source), "leastSent", time=us(asked_)) == us(least)


def test_nothing_was_sent_after_the_last_row(source: RowtimeStreamReader) -> None:
    assert asked(source, ends(source), "leastSent", time=us("11:00")) is None


def test_only_the_question_for_the_next_batch_registers_the_query(
    path: str, source: RowtimeStreamReader, tmp_path: Path
) -> None:
    start = source.initialOffset()
    asked(source, start, "leastSent", time=us("9:00"))
    asked(source, start, "plan", end=start, parallelism=1)
    assert rt.describeStream(path).readers == ()
    ends(source, start, str(tmp_path / "checkpoint" / "sources" / "0"))
    assert len(rt.describeStream(path).readers) == 1


def test_a_bound_beside_topics_counts_where_its_cut_was_read(path: str, source: RowtimeStreamReader) -> None:
    with rt.openSink(path, producer="of_topic", rowsImplyBounds=False, linger="1 hour") as sink:
        sink.sendRowtimeBound(when("11:00"), cut={"orders": {0: 5}})
    end = ends(source)
    for read, floor in ((4, us("10:02")), (5, us("11:00"))):
        offsets = {"orders": {"0": read}}
        assert asked(source, end, "floorAt", reader="query", offsets=offsets, reads=None) == floor


@pytest.mark.parametrize("question", [{"ask": "whatever"}, {"ask": "next", "unlimited": False}])
def test_a_question_of_a_jar_of_another_version_is_refused(
    source: RowtimeStreamReader, question: dict[str, Any]
) -> None:
    with pytest.raises(rt.ShimMissingError, match="of another version"):
        source.partitions(source.initialOffset(), question)


def test_late_rows_beside_topics_are_kept(path: str, source: RowtimeStreamReader) -> None:
    rows = pa.record_batch({"rowtime": pa.array([us("9:00")], pa.timestamp("us", "UTC")), "ticker": ["X"]})
    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, rows.schema) as stream:
        stream.write_batch(rows)
    late = {"reader": "q", "batch": 0, "bound": us("10:00"), "rows": base64.b64encode(out.getvalue()).decode()}
    late["offsets"] = {"orders": {"0": 3}}
    for _ in range(2):
        assert asked(source, source.initialOffset(), "late", **late) is None
    assert rt.rejectedRows(path).column("ticker").to_pylist() == ["X"]


def test_available_now_ends_with_what_is_there_at_its_start(path: str, source: RowtimeStreamReader) -> None:
    then = ends(source)
    asked(source, {}, "target", reader="query", topic=None)
    with rt.openSink(path, producer="Berlin") as sink:
        sink.sendRow(row("10:03"))
    assert ends(source) == then


def test_a_committed_batch_need_not_be_kept(path: str, source: RowtimeStreamReader, tmp_path: Path) -> None:
    end = ends(source, reader=str(tmp_path / "checkpoint" / "sources" / "0"))
    assert rt.describeStream(path).readers[0].unread == 3
    source.commit(end)
    assert rt.describeStream(path).readers[0].unread == 0


def test_the_end_of_a_query_ends_the_threads_that_wait_for_news(path: str, source: RowtimeStreamReader) -> None:
    asked(source, {}, "news", seconds=0, streams=[path])
    news = source._event_wait
    source.stop()
    assert news is not None
    assert news._ended.is_set()


def test_a_question_of_another_version_is_refused(source: RowtimeStreamReader) -> None:
    with pytest.raises(rt.ShimMissingError, match=r"asks 'weather'.*rowtime jar"):
        asked(source, {}, "weather")


@pytest.mark.parametrize(
    "call",
    [lambda s, at: s.latestOffset(at, None), lambda s, _: s.latestOffset(), lambda s, at: s.partitions(at, at)],
    ids=["Spark 4.2", "Spark 4.0", "a batch that runs again"],
)
def test_whoever_does_not_ask_has_no_extension(source: RowtimeStreamReader, call: Callable[..., Any]) -> None:
    with pytest.raises(rt.ShimMissingError, match="does not have the extension"):
        call(source, source.initialOffset())


def read(source: AskedReader, start: dict[str, Any], end: dict[str, Any]) -> int:
    return sum(rows.num_rows for part in source.partitions(start, end) for rows in source.read(part))


@pytest.mark.parametrize("kind", [RowtimeStreamReader, RejectedStreamReader])
def test_without_arguments_spark_reads_all_that_is_there(path: str, kind: type[Any]) -> None:
    """As Spark 4.0 and 4.1 ask without the extension: at a restart they show where they are by an empty batch."""
    view = {"view": "rejected"} if kind is RejectedStreamReader else {"bounds": "ignore"}
    for hour, rows in ((10, 3), (11, 1)):
        source = kind(Options({"path": path, **view}, READ), 2)
        if hour == 10:
            start = source.initialOffset()
        else:
            source.partitions(start, start)
        end = source.latestOffset()
        assert source.latestOffset() == end
        assert read(source, start, end) == (rows if kind is RowtimeStreamReader else 0)
        start = end
        source.stop()
        with rt.openSink(path, producer="Berlin") as sink:
            sink.sendRow(row("11:00"))


@pytest.mark.parametrize("limit", ["maxRowsPerTrigger", "maxBytesPerTrigger"])
def test_without_arguments_no_limit_can_hold(path: str, limit: str) -> None:
    source = source_of(path, bounds="ignore", **{limit: "1"})
    with pytest.raises(rt.InvalidOptionError, match=rf"{limit} needs .*Spark 4\.2"):
        source.latestOffset()
    source.stop()


def test_the_metrics_count_a_rejection_without_another_event(path: str, source: RowtimeStreamReader) -> None:
    assert source.latest()["metrics"]["rowsRejected"] == 0
    with rt.openSink(path, producer="Berlin", onLate="reject") as sink:
        sink.flush()
        known = source.latest()
        sink.sendRow(row("9:00"))
        sink.flush()
        assert source.latest()["seq"] == known["seq"]
        assert source.latest()["metrics"]["rowsRejected"] == 1
