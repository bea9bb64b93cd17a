"""The broker of the tests keeps what it acknowledged, and a query reads it with Spark's own Kafka source."""

from pathlib import Path
from typing import Any

import pytest


@pytest.mark.night
def test_a_killed_broker_comes_back_with_its_messages(kafka: Any, spark: Any, tmp_path: Path) -> None:
    topic = kafka.topic()
    kafka.send(topic, [{"value": f"{n}", "partition": n % 3} for n in range(30)])
    kafka.kill()
    kafka.start()
    frame = spark.readStream.format("kafka").option("kafka.bootstrap.servers", kafka.bootstrap)
    frame = frame.option("subscribe", topic).option("startingOffsets", "earliest").load()
    writer = frame.selectExpr("CAST(value AS STRING) AS n", "partition").writeStream.format("parquet")
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True)
    writer.start(str(tmp_path / "rows")).awaitTermination()
    rows = spark.read.parquet(str(tmp_path / "rows")).collect()
    assert sorted((int(row.n), row.partition) for row in rows) == [(n, n % 3) for n in range(30)]
