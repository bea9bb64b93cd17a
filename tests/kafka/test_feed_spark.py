"""KafkaFeed is hosted by a Spark query."""

from pathlib import Path
from typing import Any

from pyspark.sql.functions import window

import spark_rowtime as rt
from tests.kafka.feeds import SCHEMA, message
from tests.sparksession import running, wait_for

SECRET = "geheim-4711"


def test_a_query_hosts_the_feed(kafka: Any, spark: Any, tmp_path: Path) -> None:
    """The hour closes by the rows of the topic; an option of the client, which may be secret, is in no plan."""
    topic, path = kafka.topic(partitions=1), str(tmp_path / "s")
    rt.createStream(path, SCHEMA)
    kafka.send(topic, [message(0, 60), message(1, 120), message(2, 3700)])
    reader = spark.readStream.format("rowtime").option("adapter", "spark_rowtime.kafka:KafkaFeed")
    reader = reader.option("adapter.servers", kafka.bootstrap).option("adapter.topics", topic)
    hours = reader.option("adapter.kafka.sasl.password", SECRET).load(path).groupBy(window("rowtime", "1 hour")).count()
    writer = hours.writeStream.format("memory").queryName("fed").option("checkpointLocation", str(tmp_path / "c"))
    with running(writer.start()) as query:
        [hour] = wait_for(lambda: spark.table("fed").collect(), "the hour")
        plan = query._jsq.explainInternal(True)
    spark.catalog.dropTempView("fed")
    assert hour["count"] == 2
    texts = [plan, *(file.read_text(errors="replace") for file in (tmp_path / "c").rglob("*") if file.is_file())]
    assert SECRET not in "".join(texts)
