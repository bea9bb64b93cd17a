"""The README's change to a Kafka job does what it says there."""

import re
from datetime import datetime
from pathlib import Path
from typing import Any

from pyspark.sql.functions import col, from_json, window

from tests.documents.blocks import ROOT
from tests.kafka.test_bounds_beside import client
from tests.spark.observed_query import Observed
from tests.streams import clock_of

CHANGES = re.compile(r"^```diff\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def changed(block: str, names: dict[str, str]) -> str:
    """The program after the change, with these names of streams and topics instead of its own."""
    program = "".join(f"{line[1:]}\n" for line in block.splitlines() if not line.startswith("-"))
    for name, other in names.items():
        program = program.replace(f'"{name}"', f'"{other}"')
    return program


def test_an_hour_closes_by_the_bound_of_the_producer(spark: Any, kafka: Any, tmp_path: Path) -> None:
    feed, query = CHANGES.findall((ROOT / "README.md").read_text())
    own = {"orders": kafka.topic(), "orders-bounds.rowtime": str(tmp_path / "bounds.rowtime")}
    value = b'{"ts": "2026-01-05T09:58:00Z", "shop": "Berlin"}'
    sent: dict[str, Any] = {"producer": client(kafka), "value": value, "key": "Berlin"}
    exec(changed(feed, own), sent)
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", kafka.bootstrap)
    topic = reader.option("subscribe", own["orders"]).option("startingOffsets", "earliest").load()
    read = {**sent, "topic": topic, "from_json": from_json, "col": col, "window": window}
    exec(changed(query, own), read)
    hour = tuple(clock_of(datetime(2026, 1, 5, end)) for end in (9, 10))
    with Observed(read["hourly"], tmp_path) as hours:
        assert hours.step() == [(hour, "Berlin", 1)]
    sent["orders"].close()
