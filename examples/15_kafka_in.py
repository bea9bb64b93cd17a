"""A topic of Kafka into a stream: each partition is a producer, and nobody writes to one of them any more.

A change feed (here in the format of CockroachDB) sends a `resolved` message to every partition: that is a bound. So the
hour is complete although partition 2 has no rows. The feed dies and starts again; each row is in the stream once. A
message that is no row is kept in a stream of its own. Needs a broker: python examples/15_kafka_in.py BROKER:PORT

It prints:

    rows: 4, complete below 15:00
    after the restart: rows: 6, complete below 16:00
    no row: offset 3 of partition 0, it is not JSON
"""

import json
import sys
import tempfile
import uuid

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

import spark_rowtime as rt
from spark_rowtime.kafka import KafkaFeed

SERVERS, TOPIC = sys.argv[1], f"orders-{uuid.uuid4().hex[:8]}"
NANOS_14 = 1_767_621_600_000_000_000  # 2026-01-05T14:00:00Z


def nanos(minute: int) -> str:
    return f"{NANOS_14 + minute * 60_000_000_000}.0000000000"


def order(minute: int, shop: str) -> bytes:
    return json.dumps({"after": {"shop": shop}, "updated": nanos(minute)}).encode()


def send(hour: int, *orders: tuple[int, bytes]) -> None:
    """Sends orders, each with its partition; then no order before the end of the hour follows in any partition."""
    producer = Producer({"bootstrap.servers": SERVERS})
    for partition, value in orders:
        producer.produce(TOPIC, value, partition=partition)
    for partition in range(3):
        producer.produce(TOPIC, json.dumps({"resolved": nanos(60 * hour)}), partition=partition)
    producer.flush()


def read() -> str:
    """Reads what is there now. Without untilEnd, and as `rowtime run spark_rowtime.kafka:KafkaFeed`, it goes on."""
    arguments = {"servers": SERVERS, "topics": TOPIC, "untilEnd": True, "malformed": f"{folder}/malformed.rowtime"}
    arguments |= {"row": "after", "rowtime": "updated", "timeUnit": "hlc", "bounds": "resolved"}
    rt.runAdapter(KafkaFeed, stream, arguments=arguments)
    info = rt.describeStream(stream)
    return f"rows: {info.rows}, complete below {info.bound.time:%H:%M}"


admin = AdminClient({"bootstrap.servers": SERVERS})
admin.create_topics([NewTopic(TOPIC, 3, 1)])[TOPIC].result()
folder = tempfile.mkdtemp(prefix="rowtime-")
stream = f"{folder}/orders.rowtime"
rt.createStream(stream, "rowtime TIMESTAMP NOT NULL, shop STRING")
send(1, (0, order(40, "Oslo")), (0, order(5, "Oslo")), (1, order(20, "Berlin")), (1, order(55, "Berlin")))
print(read())
send(2, (0, b"?"), (0, order(70, "Oslo")), (1, order(65, "Berlin")))
print("after the restart:", read())
with rt.openReader(f"{folder}/malformed.rowtime", order="arrival") as reader:
    for row in next(iter(reader)).rows.to_pylist():
        print(f"no row: offset {row['offset']} of partition {row['partition']}, {row['cause'].partition(':')[0]}")
