"""A cluster of two brokers, each with a replica of every partition. One of them is killed, and leaders move."""

from pathlib import Path
from typing import Any

from confluent_kafka.admin import AdminClient, NewTopic

from tests.kafka.broker import START_SECONDS, KafkaBroker
from tests.sparksession import wait_for

KEEPS, DIES = 1, 2
"""The nodes: the first has the controller, too."""
_REPLICATED = {
    "offsets.topic.replication.factor": 2,
    "transaction.state.log.replication.factor": 2,
    "default.replication.factor": 2,
    "min.insync.replicas": 1,
    "leader.imbalance.check.interval.seconds": 1,
}
"""Leaders move back soon after a broker has come back."""


class TwoBrokers:
    """Two brokers. The second leads partitions 0 and 2 of a topic; ``kill`` kills it, and the first one takes over."""

    def __init__(self, jars: Path) -> None:
        self._first = KafkaBroker(jars, **_REPLICATED)
        self._second = KafkaBroker(jars, joins=self._first, **_REPLICATED)
        self.bootstrap = f"{self._first.bootstrap},{self._second.bootstrap}"
        self.admin, self._topics = self._first.admin, 0

    def topic(self) -> str:
        """Creates a topic with three partitions."""
        self._topics += 1
        name, replicas = f"replicated-{self._topics}", [[DIES, KEEPS], [KEEPS, DIES], [DIES, KEEPS]]
        new = NewTopic(name, len(replicas), replica_assignment=replicas)
        self.admin.create_topics([new])[name].result(START_SECONDS)
        wait_for(lambda: self._leaders(name) == [DIES, KEEPS, DIES], "the leaders of a new topic")
        return name

    def send(self, topic: str, messages: Any) -> None:
        """Writes messages, each once, though leaders move meanwhile; waits until they are acknowledged."""
        self._first.send(topic, messages, **{"enable.idempotence": True})

    def asks_the_second(self) -> AdminClient:
        """A client that takes the second broker for the controller, which any broker may be called in KRaft mode."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        wait_for(lambda: admin.list_topics(timeout=START_SECONDS).controller_id == DIES, "that answer")
        return admin

    def kill(self) -> None:
        """Kills the leader of partitions 0 and 2 as a crash does."""
        self._second.kill()

    def moved(self) -> None:
        """Waits until the broker that is left leads all partitions of all topics."""
        wait_for(lambda: set(self._leaders()) == {KEEPS}, "the leaders to move")

    def start(self) -> None:
        """Starts the killed broker again once leaders have moved; returns when it leads again what it has led."""
        self.moved()
        self._second.start()
        wait_for(self._leads_again, "the leaders to be as before")

    def remove(self) -> None:
        """Stops both for good."""
        del self.admin
        self._second.remove()
        self._first.remove()

    def _leads_again(self) -> bool:
        return all(len(one.isrs) == len(one.replicas) and one.leader == one.replicas[0] for one in self._partitions())

    def _leaders(self, *topics: str) -> list[int]:
        return [one.leader for one in self._partitions(*topics)]

    def _partitions(self, *topics: str) -> list[Any]:
        """The partitions of these topics, or of all, as far as they are there."""
        known = self.admin.list_topics(timeout=START_SECONDS).topics
        found = [known[name].partitions for name in topics or known if name in known]
        return [partitions[number] for partitions in found for number in sorted(partitions)]
