"""What a feed says when it cannot read, and that it keeps secrets to itself."""

import json
import logging
import socketserver
import ssl
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import spark_rowtime as rt
from spark_rowtime.cli import main
from tests.kafka.feeds import SCHEMA, Host, eventually, hosts, message, numbers, read
from tests.sparksession import wait_for

CERTIFICATE, PASSWORD = Path(__file__).parent / "tls.pem", "geheim-4711"
"""Those of the broker; see broker.py, which needs the client of Kafka."""
NOBODY = "127.0.0.1:1"


class Nowhere:
    """No broker at all."""

    bootstrap = NOBODY


@pytest.mark.long
def test_no_broker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("confluent_kafka")
    monkeypatch.setattr("spark_rowtime.kafka.topic_adapter.REQUEST_SECONDS", 1.0)
    with pytest.raises(rt.KafkaUnavailableError, match=f"{NOBODY}.*that they run") as failed:
        read(Nowhere(), tmp_path / "s", "orders")
    assert "without TLS" not in str(failed.value)
    assert failed.value.values["servers"] == NOBODY


def test_no_topic(kafka: Any, tmp_path: Path) -> None:
    with pytest.raises(rt.KafkaTopicError, match="There is no topic 'nowhere'"):
        read(kafka, tmp_path / "s", "nowhere")


@pytest.mark.parametrize("name", ["a b", "x" * 250])
def test_what_is_no_name_of_a_topic(kafka: Any, tmp_path: Path, name: str) -> None:
    with pytest.raises(rt.KafkaTopicError, match=r"cannot be the name of a topic.*A pattern begins with '\^'"):
        read(kafka, tmp_path / "s", name)


def test_a_topic_that_was_deleted_and_created_again(kafka: Any, tmp_path: Path) -> None:
    topic = kafka.topic(partitions=1)
    kafka.send(topic, [message(n) for n in range(3)])
    read(kafka, tmp_path / "s", topic)
    kafka.delete_topic(topic)
    with pytest.raises(rt.KafkaTopicError, match="There is no topic"):
        read(kafka, tmp_path / "s", topic)
    kafka.topic(topic, partitions=2)
    kafka.send(topic, [message(n, partition=0) for n in range(10, 20)])
    with pytest.raises(rt.KafkaTopicError, match="up to offset 3 of the topic with the id") as failed:
        read(kafka, tmp_path / "s", topic)
    values = failed.value.values
    assert values["producer"] == f"{topic}-0"
    assert values["foundId"] not in (None, values["topicId"])
    assert "The last rows may be of the new topic, if a host ran then" in str(failed.value)
    assert numbers(tmp_path / "s") == [0, 1, 2]
    producers = rt.describeStream(str(tmp_path / "s")).producers
    assert [info.name for info in producers] == [f"{topic}-0"], "the stream waits for no partition that nobody reads"


@pytest.mark.long
def test_a_topic_that_is_deleted_while_a_feed_runs(kafka: Any, tmp_path: Path) -> None:
    topic, path = kafka.topic(partitions=2), str(tmp_path / "s")
    rt.createStream(path, SCHEMA)
    kafka.send(topic, [message(n, partition=1) for n in range(3)])
    quick = {"kafka.topic.metadata.refresh.interval.ms": "200"}
    with ThreadPoolExecutor(1) as thread:
        running = thread.submit(read, kafka, path, topic, untilEnd=False, **quick)
        wait_for(lambda: len(numbers(path)) == 3, "the rows")
        kafka.delete_topic(topic)
        with pytest.raises(
            rt.KafkaTopicError, match="the stream has partition 1 up to offset 3 of the topic with the id"
        ):
            running.result(240)


def test_a_bound_too_far_ahead_promises_nothing_and_holds_no_other_partition(
    kafka: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Of one partition alone it would stop the others, at each start again."""
    topic = kafka.topic(partitions=2)
    bounds = [json.dumps({"resolved": f"{micros(clock)}000.0000000000"}) for clock in FAR]
    kafka.send(topic, [message(1, 10), *({"value": bound, "partition": 0} for bound in bounds), message(2, 20)])
    kafka.send(topic, [message(3, 10, partition=1), {"value": bounds[-1], "partition": 1}])
    for _ in range(2):
        assert read(kafka, tmp_path / "s", topic, bounds="resolved") == [1, 2, 3]
    kafka.send(topic, [{"value": bounds[0], "partition": 0}, message(4, 30)])
    assert read(kafka, tmp_path / "s", topic, bounds="resolved") == [1, 2, 3, 4]
    assert rt.describeStream(str(tmp_path / "s")).bound == rt.RowtimeBound(FAR[-1])
    told = [one.getMessage() for one in caplog.records if "promises nothing" in one.getMessage()]
    assert [f"partition 0 of topic {topic}" in one for one in told] == [True] * 2, "each run says it once"
    assert "9000-01-01" in told[0]
    assert "maxAhead" in told[0]


FAR = ("9000-01-01T00:00:00Z", "9001-01-01T00:00:00Z", "2026-01-05T00:00:00Z")


def micros(clock: str) -> int:
    return rt.RowtimeBound(clock).floor


@pytest.mark.long
def test_offsets_that_retention_has_removed(kafka: Any, tmp_path: Path) -> None:
    from confluent_kafka import TopicPartition

    topic = kafka.topic(partitions=1)
    kafka.send(topic, [message(n) for n in range(3)])
    read(kafka, tmp_path / "s", topic)
    kafka.send(topic, [message(n) for n in range(3, 9)])
    for future in kafka.admin.delete_records([TopicPartition(topic, 0, 7)]).values():
        future.result(240)
    with pytest.raises(rt.DataLostError, match="offsets 3 to 6 are no longer there") as failed:
        read(kafka, tmp_path / "s", topic)
    assert (failed.value.values["asked"], failed.value.values["horizon"]) == (3, 7)
    assert read(kafka, tmp_path / "s", topic, lost="skip") == [0, 1, 2, 7, 8]


@pytest.mark.long
def test_markers_of_transactions_are_part_of_the_position(kafka: Any, tmp_path: Path) -> None:
    """Also where no message came with them. Retention that has removed them has removed nothing."""
    from confluent_kafka import Producer, TopicPartition

    topic, path = kafka.topic(partitions=1), str(tmp_path / "s")
    rt.createStream(path, SCHEMA)
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "transactional.id": topic})
    producer.init_transactions()

    def transact(n: int, end: str) -> None:
        producer.begin_transaction()
        producer.produce(topic, **message(n))
        producer.flush()
        getattr(producer, end)()

    with hosts(Host(kafka, path, topic, "feed")):
        transact(0, "commit_transaction")
        eventually(lambda: numbers(path), [0])
        transact(1, "abort_transaction")
        eventually(lambda: json.loads(rt.describeStream(path).producers[0].checkpoint)["offset"], 4)
    for future in kafka.admin.delete_records([TopicPartition(topic, 0, 4)]).values():
        future.result(240)
    assert read(kafka, path, topic) == [0]


SMALL = {"kafka.message.max.bytes": "4000", "kafka.fetch.max.bytes": "4000", "kafka.receive.message.max.bytes": "4512"}


def test_a_message_larger_than_the_client_receives(kafka: Any, tmp_path: Path) -> None:
    """No other broker has it, so the feed does not wait for that all are away."""
    topic = kafka.topic(partitions=1)
    kafka.send(topic, [message(0, note="x" * 10_000)])
    with pytest.raises(rt.KafkaUnavailableError, match=r"larger than receive\.message\.max\.bytes \(4512\)") as failed:
        read(kafka, tmp_path / "s", topic, **SMALL)
    assert failed.value.values["code"] == "_BAD_MSG"
    assert read(kafka, tmp_path / "s", topic, **{"kafka.fetch.max.bytes": "2147483135"}) == [0]


@pytest.mark.night
def test_a_message_that_is_larger_than_librdkafka_receives_by_itself(kafka: Any, tmp_path: Path) -> None:
    topic = kafka.topic(partitions=1, max_message_bytes=104_000_000)
    sent = {"message.max.bytes": 900_000_000, "compression.type": "none"}
    kafka.send(topic, [message(0, note="x" * 102_000_000), message(1)], **sent)
    assert read(kafka, tmp_path / "s", topic) == [0, 1]


def test_a_checkpoint_of_another_program(kafka: Any, tmp_path: Path) -> None:
    topic, path = kafka.topic(partitions=1), str(tmp_path / "s")
    rt.createStream(path, "rowtime TIMESTAMP NOT NULL, n BIGINT")
    with rt.openSink(path, producer=f"{topic}-0") as sink:
        sink.flush(checkpoint="7")
    with pytest.raises(rt.InvalidOptionError, match="'7', is not one of KafkaFeed"):
        read(kafka, path, topic)


WRONG = {
    "kafka.enable.auto.commit": ("true", "each row is there once"),
    "kafka.isolation.level": ("read_uncommitted", "aborted"),
    "kafka.sasl.passwort": ("geheim", "the option 'sasl.passwort'"),
    "kafka.security.protocol": ("geheim", "security.protocol"),
    "lateness_": ("1 hour", "Did you mean 'lateness'"),
    "decoder": ("nothing:here", "names no function"),
    "topics": (" , ", "names no topic"),
    "servers": ("rowtime:geheim@127.0.0.1:9092", "must not contain secrets"),
    "start": ("middle", "'earliest' nor 'latest'"),
}


@pytest.mark.parametrize("name", WRONG)
def test_options_that_cannot_be_used(tmp_path: Path, name: str) -> None:
    pytest.importorskip("confluent_kafka")
    value, said = WRONG[name]
    with pytest.raises((rt.InvalidOptionError, rt.UnknownOptionError), match=said) as failed:
        read(Nowhere(), tmp_path / "s", **{"topics": "orders", name: value})
    assert "geheim" not in str(failed.value)


@contextmanager
def listener_with_tls() -> Iterator[str]:
    """The address of a server that ends each connection that is not one of TLS, as a broker does."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)

    class Listener(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with suppress(OSError):
                context.wrap_socket(self.request, server_side=True).recv(1)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Listener) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.mark.parametrize("options", [{}, {"security.protocol": "ssl"}])
def test_a_client_without_tls_is_told_so_at_a_port_for_tls(
    options: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("confluent_kafka")
    monkeypatch.setattr("spark_rowtime.kafka.topic_adapter.REQUEST_SECONDS", 5.0)
    given = [text for name, value in options.items() for text in ("--set", f"{name}={value}")]
    with listener_with_tls() as address:
        told = CliRunner().invoke(
            main, ["watch", f"kafka://{address}/orders", str(tmp_path / "b"), "--restarts", "0", *given]
        )
    assert told.exit_code == 1
    assert ("This client connects without TLS" in told.stderr) == (not options), told.stderr


def secure(kafka: Any, password: str, **more: str) -> dict[str, Any]:
    """Arguments of a feed that reads through the listener with TLS and SASL."""
    options = {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.username": "rowtime"}
    options["ssl.ca.location"] = str(CERTIFICATE)
    return {"servers": kafka.secure, "options": {**options, **more}, "kafka.sasl.password": password}


def test_a_password_is_in_no_log_no_error_and_no_stream(
    kafka: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic, wrong, texts = kafka.topic(partitions=1), "wrong-0815", []
    kafka.send(topic, [message(0)])
    with caplog.at_level(logging.DEBUG):
        assert read(kafka, tmp_path / "s", topic, **secure(kafka, PASSWORD)) == [0]
        refused = {
            "_AUTHENTICATION": secure(kafka, wrong),
            "_SSL": secure(kafka, wrong, **{"ssl.ca.location": "probe"}),
        }
        for code, arguments in refused.items():
            for seconds in (2.0, 10.0, 120.0):  # the broker's refusal may take its time
                monkeypatch.setattr("spark_rowtime.kafka.topic_adapter.REQUEST_SECONDS", seconds)
                with pytest.raises(rt.KafkaUnavailableError, match="TLS and SASL") as failed:
                    read(kafka, tmp_path / "s", topic, **arguments)
                texts += [str(failed.value), json.dumps(failed.value.values)]
                if failed.value.values["code"] == code:
                    break
            assert failed.value.values["code"] == code
    stored = b"".join(file.read_bytes() for file in (tmp_path / "s").rglob("*") if file.is_file())
    for secret in (PASSWORD, wrong):
        assert secret not in caplog.text + "".join(texts)
        assert secret.encode() not in stored
