"""Bounds of programs in other languages: a topic of bounds, and a program in Java that writes to it."""

import json
import re
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

import spark_rowtime as rt
from spark_rowtime.cli import main
from spark_rowtime.kafka import BoundsFeed
from spark_rowtime.kafka.bounds_feed import bound_with_offsets
from spark_rowtime.kafka.malformed import MalformedError
from tests.kafka.feeds import PATIENT
from tests.kafka.topics import messages

SCHEMA = "rowtime TIMESTAMP NOT NULL"
JAVA = Path(__file__).parents[2] / "examples" / "java" / "OrdersWithBounds.java"
TEN = rt.RowtimeBound("2026-01-05T10:00:00Z")


def take(kafka: Any, path: str, topic: str) -> None:
    """Takes what the topic of bounds has now."""
    arguments = {"servers": kafka.bootstrap, "topics": topic, "untilEnd": True, **PATIENT}
    rt.runAdapter(BoundsFeed, path, arguments=arguments, producer="bounds", restarts=0)


def said(hour: int, **more: Any) -> str:
    """The text of a bound."""
    nanos = rt.RowtimeBound(f"2026-01-05T{hour:02}:00:00Z").floor * 1000
    return json.dumps({"resolved": f"{nanos}.0000000000", **more})


def test_a_program_in_java_sends_a_bound_with_the_offsets_of_its_messages(
    kafka: Any, kafka_jars: Path, tmp_path: Path
) -> None:
    assert len(JAVA.read_text().split("public static void main")[1].splitlines()) <= 30
    for name, partitions in (("orders", 3), ("orders-bounds", 1)):
        kafka.topic(name, partitions=partitions)
    command = ["java", "-cp", f"{kafka_jars}/*", str(JAVA), kafka.bootstrap]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=500)
    assert done.returncode == 0, done.stderr
    path = str(tmp_path / "bounds.rowtime")
    rt.createStream(path, SCHEMA)
    take(kafka, path, "orders-bounds")
    info = rt.describeStream(path)
    assert info.bound == TEN
    [producer] = info.producers
    assert producer.name == "orders-bounds-0"
    counts = [len(partition) for partition in messages(kafka.bootstrap, "orders")]
    assert producer.cut == {"orders": dict(enumerate(counts))}
    assert sum(counts) == 60


def test_each_partition_is_a_program_and_a_bound_counts_once(
    kafka: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path, topic = str(tmp_path / "bounds.rowtime"), kafka.topic(partitions=2)
    rt.createStream(path, SCHEMA)
    first = [said(10, offsets={"orders": {"0": 5}}, topicIds={"orders": "abc"}), "no bound", None, said(11)]
    kafka.send(topic, [{"value": value, "partition": 0} for value in first])
    take(kafka, path, topic)
    assert rt.describeStream(path).bound is None, "the other program has said nothing"
    assert caplog.text.count("is no bound with offsets, and promises nothing") == 1
    later = [{"value": said(9, offsets={"orders": {"1": 7}}), "partition": 1}]
    later += [{"value": said(12, offsets={"orders": {"0": 9}, "returns": {"3": 2}}), "partition": 0}]
    kafka.send(topic, later)
    for _ in range(2):
        take(kafka, path, topic)
        found = {producer.name: producer for producer in rt.describeStream(path).producers}
        assert found[f"{topic}-0"].cut == {"orders": {0: 9}, "returns": {3: 2}}
        assert found[f"{topic}-0"].bound == rt.RowtimeBound("2026-01-05T12:00:00Z")
        assert found[f"{topic}-1"].cut == {"orders": {1: 7}}
        assert rt.describeStream(path).bound == rt.RowtimeBound("2026-01-05T09:00:00Z")
    kafka.send(topic, [{"value": said(13, offsets={"orders": {"0": 9}}, topicIds={"orders": "xyz"}), "partition": 0}])
    with pytest.raises(rt.RowtimeError) as caught:
        take(kafka, path, topic)
    assert isinstance(caught.value.__cause__ or caught.value, rt.KafkaTopicError), "orders was created again"


NO_OFFSETS: list[Any] = [{}, [], {"a": 3}, {"a": {}}, {"a": {"x": 1}}]
NO_OFFSETS += [{"a": {name: 1}} for name in ("-1", "²", "1.0", "9" * 20, "00", "")]
NO_OFFSETS += [{"a": {"0": end}} for end in (-1, 1.5, "1", None, 1 << 63)]
NO_OFFSETS += [{topic: {"0": 1}} for topic in ("orders\ud800\0", "a b", "", "a" * 250)]
NO_IDS: list[Any] = [{"b": "x"}, [], {"a": 3}]


@pytest.mark.each
@pytest.mark.parametrize(
    "value",
    [
        *(b"", b"7", b"{}", b"\xff", b'{"resolved": 7, "offsets": {"a": {"0": 1}}}', said(10).encode()),
        said(10, offsets={"a": {"0": 5}}).replace("}", ', "0": 1}', 1).encode(),
        said(10, offsets={"a": {"0": 5}}).replace("{", '{"resolved": "2026-01-05T11:00:00Z", ', 1).encode(),
        *(said(10, offsets=offsets).encode() for offsets in NO_OFFSETS),
        *(said(10, offsets={"a": {"0": 1}}, topicIds=ids).encode() for ids in NO_IDS),
    ],
)
def test_what_is_no_bound_with_offsets(value: bytes) -> None:
    with pytest.raises(MalformedError):
        bound_with_offsets(SimpleNamespace(value=lambda: value))


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (said(10), "it has no 'offsets'"),
        (said(10, offsets=[3]), r"its offsets \[3\] .* It has the form"),
        (said(10, offsets={"orders": 5}), "It names no partition of topic 'orders'"),
    ],
)
def test_what_the_log_says_of_offsets_that_are_none(value: str, why: str) -> None:
    with pytest.raises(MalformedError, match=why):
        bound_with_offsets(SimpleNamespace(value=value.encode))


def test_a_bound_with_offsets_from_a_shell(tmp_path: Path) -> None:
    path = str(tmp_path / "bounds.rowtime")
    rt.createStream(path, SCHEMA)
    send = ["send", path, "--name", "shop", "--final"]
    cut = ["--cut", '{"orders": {"0": 4711, "1": 4690}}']
    done = CliRunner().invoke(main, [*send, "2026-01-05T10:00:00Z", *cut])
    assert done.output == f"{path}: a bound was sent by shop, behind orders 0: 4711, 1: 4690. Bound: {TEN}.\n"
    [shop] = rt.describeStream(path).producers
    assert (shop.cut, shop.bound, shop.status.value) == ({"orders": {0: 4711, 1: 4690}}, TEN, "attached")
    later = ["2026-01-05T11:00:00Z", "--cut", '{"orders": {"0": 4800}}', "--complete", "--json"]
    said = json.loads(CliRunner().invoke(main, [*send, *later]).output)
    assert (said["stream"], said["producer"], said["bound"]["end"]) == (path, "shop", True)
    [shop] = rt.describeStream(path).producers
    assert (shop.cut, shop.status.value) == ({"orders": {0: 4800, 1: 4690}}, "complete")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--final", "2026-01-05T10:00:00Z", "--cut", "orders"], "is not a cut"),
        (["--final", "2026-01-05T10:00:00Z", "--cut", '{"orders": {"x": 1}}'], "is not a cut"),
        (["--cut", '{"orders": {"0": 1}}'], "--cut needs --final"),
        (["--final", "2026-01-05T10:00:00Z", "--cut", "{}", "--bounds", "1h"], "--bounds is for a file"),
        ([], "Give --csv FILE and --rowtime COLUMN"),
    ],
)
def test_a_cut_that_cannot_be_sent_is_refused(tmp_path: Path, arguments: list[str], text: str) -> None:
    path = str(tmp_path / "bounds.rowtime")
    rt.createStream(path, SCHEMA)
    done = CliRunner().invoke(main, ["send", path, "--name", "shop", *arguments])
    assert done.exit_code in (1, 2)
    assert text in " ".join(done.output.split())
    assert rt.describeStream(path).producers == ()


def test_the_bytes_in_the_page_are_a_message() -> None:
    page = (JAVA.parents[2] / "docs" / "kafka.md").read_text()
    [table] = re.findall(r"byte by byte:\n\n((?:\|.*\n)+)", page)
    lines = [[cell.strip(" `") for cell in line.strip("|\n").split("|")] for line in table.splitlines()[2:]]
    assert [bytes.fromhex(one).decode() for one, _ in lines] == [text for _, text in lines]
    value = bytes.fromhex("".join(one for one, _ in lines))
    assert bound_with_offsets(SimpleNamespace(value=lambda: value)) == (TEN, {"orders": {0: 40, 1: 20}}, None)
