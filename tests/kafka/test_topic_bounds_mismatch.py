"""A Spark that is not as expected: a query over a topic fails, it never runs without the bounds beside it."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pyspark
import pytest

import spark_rowtime as rt
from tests.streams import at

EXECUTION = "org/apache/spark/sql/execution/streaming/runtime/"
CONVERTER = "org/apache/spark/sql/kafka010/KafkaRecordToRowConverter$.class"


def renamed(code: bytes, name: str) -> bytes:
    """A class with another name for a member, a method that it calls, or a text."""
    old, new = (len(text).to_bytes(2) + text.encode() for text in (name, name[:-1] + "_"))
    assert code.count(old) == 1
    return code.replace(old, new)


def without_update(folder: Path, jars: str) -> str:
    """Spark calls the method of the tracker by another name, so ours is not called."""
    [jar] = Path(pyspark.__file__).parent.glob("jars/spark-sql_*.jar")
    names = ("MicroBatchExecution", "AsyncProgressTrackingMicroBatchExecution", "WatermarkTracker")
    (folder / EXECUTION).mkdir(parents=True)
    with ZipFile(jar) as classes:
        for name in (*names, "WatermarkTracker$$anonfun$2"):
            place = f"{EXECUTION}{name}.class"
            (folder / place).write_bytes(renamed(classes.read(place), "updateWatermark"))
    return jars


def without_offset(folder: Path, jars: str) -> str:
    """The column of the offsets has another name."""
    [source] = [jar for jar in jars.split(",") if "sql-kafka" in jar]
    folder.mkdir()
    with ZipFile(source) as old, ZipFile(folder / "kafka.jar", "w") as new:
        for place in old.namelist():
            code = old.read(place)
            new.writestr(place, renamed(code, "offset") if place == CONVERTER else code)
    return ",".join([str(folder / "kafka.jar"), *(jar for jar in jars.split(",") if jar != source)])


CHANGES: dict[str, tuple[Callable[[Path, str], str], str]] = {
    "a column": (without_offset, "expected the columns [topic, partition, offset] of Spark's Kafka source, which has"),
    "a method": (without_update, "expected WatermarkTracker.updateWatermark to be called after batch 1"),
}


@pytest.mark.long
@pytest.mark.parametrize("what", CHANGES)
def test_a_changed_spark_is_refused(kafka: Any, spark_kafka_jars: str, tmp_path: Path, what: str) -> None:
    change, expected = CHANGES[what]
    error = said(kafka, change(tmp_path / "classes", spark_kafka_jars), tmp_path)
    assert "ShimMismatchError" in error
    assert expected in error


@pytest.mark.night
@pytest.mark.smoke  # its Spark is a process of its own, with the jars of Spark's Kafka source
def test_the_same_query_runs_on_the_spark_that_is_there(kafka: Any, spark_kafka_jars: str, tmp_path: Path) -> None:
    assert said(kafka, spark_kafka_jars, tmp_path) == ""
    assert rt.describeStream(str(tmp_path / "bounds.rowtime")).rejected == 2, "all rows but that of the first batch"


def said(kafka: Any, jars: str, folder: Path) -> str:
    """Runs a query over a topic in a process of its own; returns its error, or an empty text."""
    bounds, topic = str(folder / "bounds.rowtime"), kafka.topic()
    rt.createStream(bounds, "rowtime TIMESTAMP NOT NULL")
    with rt.openSink(bounds) as sink:
        sink.sendRowtimeBound(at("11:00"))
    kafka.send(topic, [{"value": at("10:00"), "partition": 0} for _ in range(3)])
    program = [sys.executable, "-m", "tests.kafka.changed_spark", bounds, kafka.bootstrap, topic]
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [*program, str(folder / "classes"), jars, str(folder / "said")]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=500, check=False)
    assert ran.returncode == 0, ran.stderr
    return (folder / "said").read_text()


@pytest.mark.long
@pytest.mark.parametrize("json", ["7", '[["orders", 0, 4711]]', '{"orders": 4711}', '{"orders": {"0": "4711"}}'])
def test_offsets_in_another_form_are_refused(spark: Any, json: str) -> None:
    offsets = spark.sparkContext._jvm.sparkrowtime.python.OffsetJson
    assert offsets.topics('{"orders": {"0": 4711}}').toString() == '{"orders":{"0":4711}}'
    with pytest.raises(Exception, match=r"ShimMismatchError(?s:.)*the offsets of Spark's Kafka source"):
        offsets.topics(json)


@pytest.mark.long
@pytest.mark.parametrize(
    ("end", "what"),
    [
        ('{"orders": {"0": 3, "1": 9}}', r"orders\[0\] up to offset 5, but now this partition ends at offset 3"),
        ('{"orders": {"0": 5}}', r"orders\[1\] up to offset 7, but now this partition is not there any more"),
        ('{"other": {"0": 9}}', r"orders\[0\] up to offset 5, but now this partition is not there any more"),
    ],
)
def test_topics_that_go_back_are_refused(spark: Any, end: str, what: str) -> None:
    require = spark.sparkContext._jvm.sparkrowtime.topics.ForwardOffsets.require
    start = '{"orders": {"0": 5, "1": 7}}'
    for forward in (start, '{"orders": {"0": 5, "1": 8, "2": 0}, "more": {"0": 0}}'):
        require("bounds.rowtime", start, forward)
    with pytest.raises(Exception, match=rf"(?s){what}.*The bounds in bounds.rowtime.*a new checkpoint"):
        require("bounds.rowtime", start, end)


@pytest.mark.long
def test_late_rows_are_sent_to_the_driver_while_a_task_adds_some(spark: Any) -> None:
    """An executor does so every ten seconds. If that fails for too long, Spark takes the executor for lost."""
    topic_bounds = spark.sparkContext._jvm.sparkrowtime.topics
    late, row = topic_bounds.LateRows(), topic_bounds.LateRows.Late
    late.add(row("orders/0/1", b"a", 1))
    late.add(row("orders/0/2", b"b", 1))
    sent = late.value().keySet().iterator()
    sent.next()
    late.add(row("orders/0/0", b"c", 1))
    assert sent.next() == "orders/0/2"
    assert late.copy().value().size() == 3
