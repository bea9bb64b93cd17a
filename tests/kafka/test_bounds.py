"""rt.KafkaBounds on a real broker: cuts, late rows, restarts, threads, failures."""

import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import spark_rowtime as rt
from spark_rowtime.kafka.cuts import CutFloors
from spark_rowtime.kafka.deliveries import Deliveries
from spark_rowtime.store import open_store
from spark_rowtime.types.timestamps import to_micros
from tests.sparksession import wait_for

confluent_kafka = pytest.importorskip("confluent_kafka")
CERTIFICATE, PASSWORD = Path(__file__).parent / "tls.pem", "geheim-4711"
"""Those of the broker; see broker.py, which needs the client of Kafka."""
DAY = "2026-01-05T"


@pytest.fixture
def path(tmp_path: Path) -> str:
    path = str(tmp_path / "orders-bounds.rowtime")
    rt.createStream(path, "rowtime TIMESTAMP NOT NULL")
    return path


def client(kafka: Any, **settings: Any) -> Any:
    return confluent_kafka.Producer(
        {"bootstrap.servers": kafka.bootstrap, "enable.idempotence": True, "linger.ms": 0, **settings}
    )


def kafka_bounds(kafka: Any, topic: str, path: str, producer: str = "app", **settings: Any) -> rt.KafkaBounds:
    sink = rt.openSink(path, producer=producer, lease=None, linger="1 hour")
    return rt.KafkaBounds(client(kafka, **settings), topic, sink, timeout="240 s")


def us(text: str) -> int:
    return to_micros(f"{DAY}{text}Z")


def read(kafka: Any, topic: str) -> list[tuple[int, int, str]]:
    """Partition, offset and value of all messages of the topic."""
    settings = {"bootstrap.servers": kafka.bootstrap, "group.id": "none", "enable.partition.eof": True}
    consumer = confluent_kafka.Consumer(settings)
    partitions = consumer.list_topics(topic).topics[topic].partitions
    consumer.assign([confluent_kafka.TopicPartition(topic, p, 0) for p in partitions])
    found, ended = [], 0
    while ended < len(partitions):
        message = consumer.poll(240)
        assert message is not None
        if message.error() is None:
            found.append((message.partition(), message.offset(), message.value().decode()))
        else:
            assert message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF, message.error()
            ended += 1
    consumer.close()
    return sorted(found)


def floor(path: str, topic: str, *ends: int) -> int | None:
    with open_store(path) as store:
        return CutFloors(store).floorAt(store.head().seq, {topic: dict(enumerate(ends))})


def test_a_bound_follows_the_messages_before_it(kafka: Any, path: str) -> None:
    """A partition that nobody writes to holds nothing back."""
    topic = kafka.topic()
    with kafka_bounds(kafka, topic, path) as orders:
        for minute in range(3):
            orders.produce(f"9:0{minute}", rowtime=f"{DAY}09:0{minute}Z", partition=0)
        orders.sendRowtimeBound(f"{DAY}10:00Z")
        orders.produce("10:30", rowtime=f"{DAY}10:30Z", partition=1)
        orders.sendRowtimeBound(f"{DAY}11:00Z")
        orders.flush()
        assert [floor(path, topic, *ends) for ends in ((2,), (3,), (3, 1))] == [None, us("10:00"), us("11:00")]
        orders.produce("11:30", rowtime=f"{DAY}11:30Z", partition=2)
    assert floor(path, topic, 3, 1) == us("11:00")
    with open_store(path) as store:
        assert [one.cut.offsets for one in store.last_cuts("app") if one.cut][-1] == {topic: {0: 3, 1: 1, 2: 1}}
        assert list(CutFloorsIds(store)) == [topic]


def CutFloorsIds(store: Any) -> Any:
    floors = CutFloors(store)
    floors.floorAt(store.head().seq, {})
    return floors.topicIds


def test_a_late_row_is_refused_before_it_is_sent(kafka: Any, path: str) -> None:
    topic = kafka.topic()
    with kafka_bounds(kafka, topic, path, "other") as other, kafka_bounds(kafka, topic, path) as orders:
        other.sendRowtimeBound(f"{DAY}09:00Z")
        other.flush()
        orders.sendRowtimeBound(f"{DAY}10:00Z", strict=True)
        orders.flush()
        with pytest.raises(rt.LateRowError, match="was not sent") as late:
            orders.produce("10:00", rowtime=f"{DAY}10:00Z")
        assert (late.value.values["bound"], late.value.values["boundOf"]) == (us("10:00") + 1, "producer")
        with pytest.raises(rt.LateRowError, match="was not sent"):
            orders.produce("10:00", rowtime="1970-01-02T00:00:00Z")
        with pytest.raises(rt.BoundRegressionError):
            orders.sendRowtimeBound(f"{DAY}09:30Z")
        orders.produce("10:01", rowtime=f"{DAY}10:01Z")
    assert [value for _, _, value in read(kafka, topic)] == ["10:01"]


def test_a_row_before_a_bound_that_the_sink_has_taken_is_late_though_the_call_failed(
    kafka: Any, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where a signal's handler raises between the two."""
    topic = kafka.topic()
    monkeypatch.setattr("spark_rowtime.kafka.bounds.CONTACT_SECONDS", 240)

    def fails() -> None:
        raise KeyboardInterrupt

    with kafka_bounds(kafka, topic, path) as orders:
        orders.produce(b"1", rowtime=f"{DAY}09:00Z")
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(orders._sink._scheduler, "settle", fails)
            orders.sendRowtimeBound(f"{DAY}11:00Z")
        with pytest.raises(rt.LateRowError):
            orders.produce(b"2", rowtime=f"{DAY}10:30Z")


def test_the_first_bound_follows_all_that_is_in_the_topic(kafka: Any, path: str) -> None:
    """So the rows of a process that was lost without a bound are before it; the cuts of the next one go on."""
    topic = kafka.topic()
    kafka.send(topic, [{"value": "8:00", "partition": 2}] * 5)
    first = kafka_bounds(kafka, topic, path)
    first.produce("9:00", rowtime=f"{DAY}09:00Z", partition=0)
    first.sendRowtimeBound(f"{DAY}10:00Z")
    first.flush()
    first.produce("10:30", rowtime=f"{DAY}10:30Z", partition=1)
    first._producer.flush()
    again = kafka_bounds(kafka, topic, path)
    with pytest.raises(rt.LateRowError):
        again.produce("9:30", rowtime=f"{DAY}09:30Z")
    again.sendRowtimeBound(f"{DAY}11:00Z")
    again.flush()
    assert floor(path, topic, 1, 0, 4) is None
    assert floor(path, topic, 1, 0, 5) == us("10:00")
    assert floor(path, topic, 1, 1, 5) == us("11:00")
    with pytest.raises(rt.ProducerFencedError):
        first.sendRowtimeBound(f"{DAY}12:00Z")
        first.flush()
    again.close()


def test_threads_that_produce_while_another_sends_bounds(kafka: Any, path: str) -> None:
    """No message at or beyond the offsets of a bound lies below it, and none is lost."""
    topic, hours = kafka.topic(), iter(range(1, 40))
    orders = kafka_bounds(kafka, topic, path)
    stop, refused = threading.Event(), []

    def produce(partition: int) -> int:
        sent = 0
        while not stop.is_set():
            time = us("00:00") + (sent % 60) * 3_600_000_000
            moment = rt.RowtimeBound.fromFloor(time).time
            try:
                orders.produce(str(time), rowtime=moment, partition=partition)
                sent += 1
            except rt.LateRowError:
                refused.append(partition)
                sent += 1
        return sent

    with ThreadPoolExecutor(3) as pool:
        running = [pool.submit(produce, partition) for partition in range(3)]
        for hour in hours:
            orders.sendRowtimeBound(rt.RowtimeBound.fromFloor(us("00:00") + hour * 3_600_000_000))
        wait_for(lambda: refused, "a late row")
        stop.set()
        sent = sum(one.result() for one in running)
    orders.close()
    messages = read(kafka, topic)
    assert len(messages) == sent - len(refused)
    assert refused
    with open_store(path) as store:
        floors, last = CutFloors(store), store.head().seq
        for logged in store.cuts():
            ends = _ends_at(store, logged.seq)
            told = floors.floorAt(last, {topic: ends}) or 0
            assert all(int(value) >= told for p, offset, value in messages if offset >= ends.get(p, 0))


def test_a_message_that_is_produced_while_another_thread_closes_is_refused(
    kafka: Any, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would lie behind the cut at which the producer leaves. After a ``close`` that has failed it is taken."""
    topic = kafka.topic()
    orders = kafka_bounds(kafka, topic, path)
    ends = orders._topics.ends

    def while_closing(*args: Any, **how: Any) -> Any:
        with pytest.raises(rt.SinkClosedError, match="are being closed"):
            orders.produce("9:00", rowtime=f"{DAY}09:00Z")
        return ends(*args, **how)

    def failing(*_: Any, **__: Any) -> Any:
        raise rt.KafkaUnavailableError("no answer")

    monkeypatch.setattr(orders._topics, "ends", failing)
    with pytest.raises(rt.KafkaUnavailableError):
        orders.close()
    orders.produce("8:00", rowtime=f"{DAY}08:00Z")
    monkeypatch.setattr(orders._topics, "ends", while_closing)
    orders.close()
    with pytest.raises(rt.SinkClosedError, match="is closed"):
        orders.produce("9:00", rowtime=f"{DAY}09:00Z")
    assert [value for _, _, value in read(kafka, topic)] == ["8:00"]


def _ends_at(store: Any, seq: int) -> dict[int, int]:
    ends: dict[int, int] = {}
    for logged in store.cuts(0, seq):
        for found in logged.cut.offsets.values():
            ends |= found
    return ends


def test_a_message_that_the_client_does_not_take_holds_nothing(kafka: Any, path: str) -> None:
    topic = kafka.topic()
    with kafka_bounds(kafka, topic, path) as orders:
        orders.produce("9:00", rowtime=f"{DAY}09:00Z", partition=0)
        with pytest.raises(rt.SchemaMismatchError, match=r"MSG_SIZE_TOO_LARGE.*Raise message\.max\.bytes"):
            orders.produce("x" * 2_000_000, rowtime=f"{DAY}09:00Z")
        orders.sendRowtimeBound(f"{DAY}10:00Z")
        with pytest.raises(rt.KafkaUnavailableError, match=r"_UNKNOWN_PARTITION.*Nothing of this call") as failed:
            orders.produce("10:00", rowtime=f"{DAY}10:00Z", partition=7)
        assert failed.value.values == {"topic": topic, "code": "_UNKNOWN_PARTITION"}
        orders.flush()
        assert floor(path, topic, 1) == us("10:00")


def test_messages_that_were_not_delivered_hold_the_bound(kafka: Any, path: str) -> None:
    topic = kafka.topic(max_message_bytes=1000)
    orders = kafka_bounds(kafka, topic, path)
    failed: list[Any] = []
    orders.produce(b"x" * 5000, rowtime=f"{DAY}09:00Z", on_delivery=lambda error, _: failed.append(error))
    with pytest.raises(rt.KafkaUnavailableError, match="1 message") as caught:
        orders.sendRowtimeBound(f"{DAY}10:00Z")
    assert caught.value.values == {"topic": topic, "code": "MSG_SIZE_TOO_LARGE"}
    assert [error.name() for error in failed] == ["MSG_SIZE_TOO_LARGE"]
    orders.produce(b"x", rowtime=f"{DAY}09:00Z")
    orders.sendRowtimeBound(f"{DAY}10:00Z")
    orders.close()
    assert rt.describeStream(path).bound == rt.RowtimeBound(f"{DAY}10:00Z")


SILENT = {
    "acks": (0, "does not tell the offset of any message, as with acks=0"),
    "delivery.report.only.error": (True, "has not told of all messages. Leave delivery.report.only.error out"),
}


@pytest.mark.parametrize("name", SILENT)
def test_a_producer_that_does_not_tell_where_its_messages_are(kafka: Any, path: str, name: str) -> None:
    """No cut can be known, so no bound is sent; also not by a second call."""
    value, said = SILENT[name]
    topic, sink = kafka.topic(), rt.openSink(path, producer="app", lease=None)
    producer = client(kafka, **{"enable.idempotence": False, name: value})
    orders = rt.KafkaBounds(producer, topic, sink, timeout="240 s")
    orders.produce("9:00", rowtime=f"{DAY}09:00Z", partition=0)
    if name == "delivery.report.only.error":
        producer.flush()
        orders._seconds = 1.0  # nothing is told, so this time passes
    for _ in range(2):
        with pytest.raises(rt.InvalidOptionError, match=said):
            orders.sendRowtimeBound(f"{DAY}10:00Z")
    orders.abandon()
    assert rt.describeStream(path).bound is None


def test_a_message_whose_offset_is_not_told_is_before_the_next_bound() -> None:
    """Kafka's client does not know it where the broker says that it had the message already."""

    class Message:
        def __init__(self, offset: int | None) -> None:
            self.offset, self.partition = (lambda: offset), (lambda: 0)

    deliveries = Deliveries()
    for offset in (3, None):
        generation, arrived = deliveries.sent(None)
        arrived(None, Message(offset))
    assert deliveries.waiting(generation) == 0
    assert not deliveries.tells_no_offsets
    assert [deliveries.take_back(), deliveries.take_back()] == [True, False], "the ends are asked for, once"


def test_a_topic_that_is_not_there_and_one_that_was_created_again(kafka: Any, path: str) -> None:
    with pytest.raises(rt.KafkaTopicError, match="no topic 'nothing'"):
        kafka_bounds(kafka, "nothing", path)
    topic = kafka.topic()
    with kafka_bounds(kafka, topic, path) as orders:
        orders.produce("9:00", rowtime=f"{DAY}09:00Z", partition=0)
        orders.sendRowtimeBound(f"{DAY}10:00Z")
    kafka.delete_topic(topic)
    kafka.topic(topic)
    again = kafka_bounds(kafka, topic, path)
    with pytest.raises(rt.KafkaTopicError, match="deleted and created again"):
        again.sendRowtimeBound(f"{DAY}11:00Z")
    again.abandon()


def test_a_complete_producer_ends_the_topic(kafka: Any, path: str) -> None:
    topic = kafka.topic()
    orders = kafka_bounds(kafka, topic, path)
    orders.produce("9:00", rowtime=f"{DAY}09:00Z", partition=1)
    orders.close(complete=True)
    orders.close()
    assert floor(path, topic, 0, 0) is None
    assert floor(path, topic, 0, 1) == rt.RowtimeBound.END.floor
    with pytest.raises(rt.SinkClosedError):
        orders.produce("9:00", rowtime=f"{DAY}09:00Z")


def test_a_producer_through_tls_with_a_password(kafka: Any, path: str, caplog: pytest.LogCaptureFixture) -> None:
    """It is in no error, no log and no text of the object; without an ``admin`` the error says what to give."""
    from confluent_kafka.admin import AdminClient

    topic, wrong, log = kafka.topic(), "wrong-0815", {"logger": logging.getLogger("spark_rowtime.kafka")}

    def secure(password: str) -> dict[str, Any]:
        sasl = {"sasl.mechanism": "PLAIN", "sasl.username": "rowtime", "sasl.password": password}
        tls = {"security.protocol": "SASL_SSL", "ssl.ca.location": str(CERTIFICATE)}
        return {"bootstrap.servers": kafka.secure, **sasl, **tls, **log}

    def opened(password: str, admin: bool = True, timeout: str = "240 s") -> rt.KafkaBounds:
        sink, settings = rt.openSink(path, producer="app", lease=None, linger="1 hour"), secure(password)
        given = {"admin": AdminClient(settings)} if admin else {}
        try:
            return rt.KafkaBounds(client(kafka, **settings), topic, sink, timeout=timeout, **given)
        except rt.KafkaUnavailableError:
            sink.abandon()
            raise

    texts = []
    with caplog.at_level(logging.DEBUG):
        with opened(PASSWORD) as orders:
            orders.produce("9:00", rowtime=f"{DAY}09:00Z", partition=0)
            orders.sendRowtimeBound(f"{DAY}10:00Z")
            texts += [repr(orders), repr(vars(orders))]
        for password, admin in ((wrong, True), (wrong, False), (PASSWORD, False)):
            with pytest.raises(rt.KafkaUnavailableError, match="admin=AdminClient") as failed:
                opened(password, admin, "1 s")
            texts += [str(failed.value), repr(failed.value), str(failed.value.values)]
    assert [value for _, _, value in read(kafka, topic)] == ["9:00"]
    assert floor(path, topic, 1) == us("10:00")
    stored = b"".join(file.read_bytes() for file in Path(path).rglob("*") if file.is_file())
    for secret in (PASSWORD, wrong):
        assert secret not in caplog.text + "".join(texts)
        assert secret.encode() not in stored
