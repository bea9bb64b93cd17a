"""The README's change to a Kafka job does what it says there."""

import re
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.functions import col, from_json, window

import spark_rowtime as rt
from tests.documents.blocks import ROOT, blocks
from tests.spark.observed_query import Observed
from tests.sparksession import wait_for
from tests.streams import clock_of

CHANGES = re.compile(r"^```diff\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def changed(block: str, names: dict[str, str]) -> str:
    """The program after the change, with these names of streams and topics instead of its own."""
    program = "".join(f"{line[1:]}\n" for line in block.splitlines() if not line.startswith("-"))
    for name, other in names.items():
        program = program.replace(f'"{name}"', f'"{other}"')
    return program


@pytest.mark.parametrize("page", ["README.md", pytest.param("docs/kafka.md", marks=pytest.mark.long)])
def test_an_hour_closes_by_one_changed_line(spark: Any, kafka: Any, tmp_path: Path, page: str) -> None:
    """Partitions 1 and 2 have no message, and none comes after that hour."""
    [change] = [block for block in CHANGES.findall((ROOT / page).read_text()) if "watch=" in block]
    topic = kafka.topic()
    kafka.send(topic, [{"value": b'{"ts": "2026-01-05T09:58:00Z", "shop": "Berlin"}', "partition": 0}])
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", kafka.bootstrap)
    read = reader.option("subscribe", topic).option("startingOffsets", "earliest").load()
    job = {"rt": rt, "topic": read, "from_json": from_json, "col": col, "window": window}
    exec(changed(change, {"orders-bounds.rowtime": str(tmp_path / "bounds.rowtime")}), job)
    hour = tuple(clock_of(datetime(2026, 1, 5, end)) for end in (9, 10))
    with Observed(job["hourly"], tmp_path) as hours:
        wait_for(lambda: [row for rows in hours.batches.copy().values() for row in rows] == [(hour, "Berlin", 1)], "it")


def test_the_shortest_program_that_sends_bounds(kafka: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its bound follows its message."""
    [program] = [block.code for block in blocks(ROOT / "docs" / "kafka.md") if "rt.KafkaBounds(producer" in block.code]
    topic = kafka.topic(partitions=1)
    monkeypatch.chdir(tmp_path)
    exec(program.replace("broker:9092", kafka.bootstrap).replace('"orders"', f'"{topic}"'), {})
    found = rt.describeStream("orders-bounds.rowtime")
    assert clock_of(found.bound.time.replace(tzinfo=None)) == "2026-01-05 10:00"
