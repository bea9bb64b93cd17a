"""Apache Kafka brokers of the tests' own: in KRaft mode, in folders of their own on free ports, stopped at the end."""

import gc
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer, TopicCollection
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
)

from tests.kafka.losing_proxy import LosingProxy
from tests.servers import KeptPort, ServerProcess
from tests.sparksession import wait_for

START_SECONDS = 240.0
"""How long the broker may take to accept connections."""
CERTIFICATE = Path(__file__).parent / "tls.pem"
PASSWORD = "geheim-4711"
"""The password of the user ``rowtime`` at the listener with TLS."""
_JAVA = (
    "java",
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-Xmx512m",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
)
_SETTINGS = {
    "process.roles": "broker,controller",
    "node.id": 1,
    "controller.listener.names": "CONTROLLER",
    "num.partitions": 3,
    "auto.create.topics.enable": "false",
    "group.initial.rebalance.delay.ms": 0,
    "group.min.session.timeout.ms": 1000,
    "offsets.topic.num.partitions": 1,
    "offsets.topic.replication.factor": 1,
    "transaction.state.log.num.partitions": 1,
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
    "transaction.max.timeout.ms": 900000,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 200,
    "log.retention.check.interval.ms": 200,
    "log.initial.task.delay.ms": 200,
    "log.cleaner.backoff.ms": 200,
    "log.segment.delete.delay.ms": 200,
    # a listener with TLS and a password; tls.pem has a key and a certificate of its own, for 127.0.0.1
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL_SSL:SASL_SSL,CONTROLLER:PLAINTEXT,CUT:PLAINTEXT",
    "listener.name.sasl_ssl.ssl.keystore.type": "PEM",
    "listener.name.sasl_ssl.ssl.keystore.location": CERTIFICATE,
    "listener.name.sasl_ssl.plain.sasl.jaas.config": (
        f'org.apache.kafka.common.security.plain.PlainLoginModule required user_rowtime="{PASSWORD}";'
    ),
    "broker.session.timeout.ms": 3000,  # a broker that was killed may return after these
    "broker.heartbeat.interval.ms": 500,
}
"""One node, and short times, so that retention, compaction and time limits show in a test."""


class KafkaBroker:
    """A broker; ``bootstrap`` is its address, ``secure`` that with TLS and SASL, ``proxy.bootstrap`` through a proxy.

    A topic has three partitions, unless the test says otherwise. ``joins``: the broker with the controller of the
    cluster that this one joins as its second node; None: it is a cluster by itself.
    """

    def __init__(self, jars: Path, joins: "KafkaBroker | None" = None, **settings: Any) -> None:
        self._jars, self._joins, self._settings = jars, joins, settings
        self.folder = Path(tempfile.mkdtemp(prefix="rowtime-kafka-"))
        self._kept = port, secure, controller, self._cut = KeptPort(), KeptPort(), KeptPort(), KeptPort()
        self.port, self._controller = port.number, controller.number if joins is None else joins._controller
        self.bootstrap, self.secure = f"127.0.0.1:{port}", f"127.0.0.1:{secure}"
        self.proxy = LosingProxy(self._cut.number)
        self._server = ServerProcess("The broker of Kafka", self.folder / "log")
        self._names = count(1)
        self._write_settings()
        self._run("kafka.tools.StorageTool", "format", "-t", "cm93dGltZS10ZXN0cy0wMA", "-c", self._file)
        self.start()

    def start(self) -> None:
        """Starts the broker, and waits until it answers."""
        self._server.start(self._java("kafka.Kafka", self._file), self._accepts, START_SECONDS, cwd=self.folder)
        self.admin = AdminClient({"bootstrap.servers": self.bootstrap})
        self.admin.list_topics(timeout=START_SECONDS)

    @property
    def pid(self) -> int:
        """The id of the broker's process."""
        assert self._server.process is not None, "it runs"
        return self._server.process.pid

    def kill(self) -> None:
        """Kills the broker as a crash does."""
        self._server.end(signal.SIGKILL)

    def remove(self) -> None:
        """Stops the broker for good, and removes its files. Clients that nobody uses would say that it is gone."""
        del self.admin
        gc.collect()
        self.kill()
        self.proxy.close()
        for port in self._kept:
            port.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def log(self) -> str:
        """The end of what the broker has logged."""
        return self._server.log()

    def topic(self, name: str | None = None, partitions: int = 3, **config: Any) -> str:
        """Creates a topic, with a new name unless given; ``config`` has ``_`` for the dots of Kafka's names."""
        name = name or f"topic-{next(self._names)}"
        settings = {key.replace("_", "."): str(value) for key, value in config.items()}
        topics = [NewTopic(name, partitions, 1, config=settings)]
        wait_for(lambda: _taken(self.admin.create_topics, topics), "a broker for the new topic")
        wait_for(lambda: self._has(name), "the new topic")
        return name

    def delete_topic(self, name: str) -> None:
        """Deletes a topic; it can be created again at once."""
        _done(self.admin.delete_topics([name]))
        wait_for(lambda: not self._has(name), "the topic to be gone")

    def configure(self, name: str, **config: Any) -> None:
        """Changes settings of a topic; returns once the broker has them."""
        wanted = {key.replace("_", "."): str(value) for key, value in config.items()}
        entries = [
            ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET) for key, value in wanted.items()
        ]
        topic = ConfigResource(ConfigResource.Type.TOPIC, name, incremental_configs=entries)
        _done(self.admin.incremental_alter_configs([topic]))

        def has_them() -> bool:
            asked = ConfigResource(ConfigResource.Type.TOPIC, name)
            found = self.admin.describe_configs([asked])[asked].result(START_SECONDS)
            return all(found[key].value == value for key, value in wanted.items())

        wait_for(has_them, "the new settings")

    def add_partitions(self, name: str, total: int) -> None:
        """Raises the number of a topic's partitions; returns once the broker knows the new ones."""
        partitions = [NewPartitions(name, total)]
        wait_for(lambda: _taken(self.admin.create_partitions, partitions), "a broker for the new partitions")
        wait_for(lambda: self._led_partitions(name) == total, "the new partitions")

    def send(self, topic: str, messages: Any, **settings: Any) -> None:
        """Writes ``messages``, dicts of ``Producer.produce``'s arguments, and waits until the broker has them."""
        producer = Producer(
            {"bootstrap.servers": self.bootstrap, "linger.ms": 0, "enable.idempotence": True, **settings}
        )
        refused: list[Any] = []
        for message in messages:
            producer.produce(topic, on_delivery=lambda error, _: refused.append(error) if error else None, **message)
        assert producer.flush(START_SECONDS) == 0
        assert not refused, refused

    def describe(self, topic: str) -> dict[str, Any]:
        """The broker's answer to the question for a topic, by its name."""
        found: dict[str, Any] = self.admin.describe_topics(TopicCollection([topic]), request_timeout=START_SECONDS)
        return found

    def _has(self, topic: str) -> bool:
        """Whether the broker knows the topic; the controller knows it a moment before."""
        return self.describe(topic)[topic].exception(START_SECONDS) is None

    def _led_partitions(self, topic: str) -> int:
        found = self.describe(topic)[topic].result(START_SECONDS).partitions
        return sum(partition.leader is not None for partition in found)

    def _write_settings(self) -> None:
        listeners = f"PLAINTEXT://{self.bootstrap},SASL_SSL://{self.secure},CUT://"
        alone = f",CONTROLLER://127.0.0.1:{self._controller}"
        places = {
            **({} if self._joins is None else {"process.roles": "broker", "node.id": 2}),
            "listeners": f"{listeners}127.0.0.1:{self._cut}" + (alone if self._joins is None else ""),
            "advertised.listeners": listeners + self.proxy.bootstrap,
            "controller.quorum.voters": f"1@127.0.0.1:{self._controller}",
            "log.dirs": self.folder / "data",
        }
        self._file = self.folder / "server.properties"
        lines = {**_SETTINGS, **places, **self._settings}.items()
        self._file.write_text("".join(f"{key}={value}\n" for key, value in lines))

    def _accepts(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=60).close()
        except OSError:
            return False
        return True

    def _java(self, program: str, *arguments: Any) -> list[str]:
        return [*_JAVA, "-cp", f"{self._jars}/*", program, *map(str, arguments)]

    def _run(self, program: str, *arguments: Any) -> None:
        done = subprocess.run(self._java(program, *arguments), check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


def _taken(ask: Callable[[Any], Any], wanted: Any) -> bool:
    """Asks the controller; False while it takes the broker for lost, as after a pause of the machine."""
    try:
        _done(ask(wanted))
    except KafkaException as error:
        if error.args[0].code() != KafkaError.INVALID_REPLICATION_FACTOR:
            raise
        return False
    return True


def _done(futures: dict[str, Any]) -> None:
    for future in futures.values():
        future.result(START_SECONDS)
