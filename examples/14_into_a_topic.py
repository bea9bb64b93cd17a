"""A stream's results go into a topic of Kafka, and a consumer that knows only Kafka sees when an hour is complete.

    pip install 'spark-rowtime[kafka]'
    python examples/14_into_a_topic.py localhost:9092

The topic `hourly` has three partitions. The rows are in partitions by their key; behind them each partition gets the
message that CockroachDB's changefeeds send, {"resolved": ...}. Its time is the least that a later row may have. So the
consumer closes an hour once all partitions have passed its end, also those into which no row came.

It prints:

    10:00 is complete: IBM 2, SAP 1
    11:00 is complete: nothing was sold
    12:00 is complete: IBM 5
"""

import json
import sys
import tempfile
from datetime import UTC, datetime

from confluent_kafka import Consumer, TopicPartition

import spark_rowtime as rt
from spark_rowtime.kafka import openTopicSink

BROKERS = sys.argv[1] if len(sys.argv) > 1 else "localhost:9092"
TOPIC, PARTITIONS, HOUR = "hourly", 3, 3_600_000_000_000
DAY = "2006-09-11T{}:00Z"


def drain(stream: str) -> None:
    """What `rowtime drain hourly.rowtime kafka://localhost:9092/hourly --key ticker` does."""
    with (
        rt.openReader(stream) as reader,
        openTopicSink(f"kafka://{BROKERS}/{TOPIC}", reader.schema, key="ticker", partitions=PARTITIONS) as topic,
    ):
        reader.drainTo(topic)


def consumer() -> Consumer:
    """It sees each row once: what is not committed, or was aborted, is left out."""
    reading = {"group.id": "shop", "isolation.level": "read_committed"}
    made = Consumer({"bootstrap.servers": BROKERS, **reading})
    made.assign([TopicPartition(TOPIC, partition, 0) for partition in range(PARTITIONS)])
    return made


def nanoseconds(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp()) * 1_000_000_000


def print_hours(reader: Consumer, hour: int, hours: int) -> None:
    """Prints so many hours, each once all partitions have passed its end."""
    sold: dict[int, list[str]] = {}
    passed = [0] * PARTITIONS
    while hours:
        message = reader.poll(1.0)
        if message is None:
            continue
        value = json.loads(message.value())
        if "resolved" in value:
            passed[message.partition()] = int(value["resolved"].partition(".")[0])
        else:
            sold.setdefault(nanoseconds(value["rowtime"]) // HOUR, []).append(f"{value['ticker']} {value['units']}")
        while hours and min(passed) >= hour + HOUR:
            clock = datetime.fromtimestamp(hour / 1e9, UTC)
            print(f"{clock:%H:%M} is complete: {', '.join(sorted(sold.get(hour // HOUR, ['nothing was sold'])))}")
            hour, hours = hour + HOUR, hours - 1


stream = f"{tempfile.mkdtemp()}/hourly.rowtime"
rt.createStream(stream, "rowtime TIMESTAMP NOT NULL, ticker STRING, units INT")
with rt.openSink(stream, producer="query") as results:
    results.sendRows([(DAY.format("10:00"), "IBM", 2), (DAY.format("10:00"), "SAP", 1)])
    results.flush()
    drain(stream)
    results.sendRow((DAY.format("12:00"), "IBM", 5))
    results.sendRowtimeBound(DAY.format("13:00"))
drain(stream)
hours = consumer()
print_hours(hours, nanoseconds(DAY.format("10:00")), 3)
hours.close()
