"""A broker that asks for rights: what a feed is told that lacks one."""

from pathlib import Path
from typing import Any

import pytest

import spark_rowtime as rt
from spark_rowtime.store import open_store
from tests.kafka.feeds import message, read
from tests.kafka.test_feed_errors import PASSWORD, secure

pytest.importorskip("confluent_kafka")
pytestmark = pytest.mark.long


def test_a_feed_without_the_right_to_its_group(kafka_jars: Path, tmp_path: Path) -> None:
    from tests.kafka.broker import KafkaBroker

    authorizer = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
    broker = KafkaBroker(kafka_jars, **{"authorizer.class.name": authorizer, "super.users": "User:ANONYMOUS"})
    try:
        topic, path = broker.topic(partitions=1), tmp_path / "s"
        broker.send(topic, [message(0)])
        for operation in ("DESCRIBE", "READ"):
            allow(broker, "TOPIC", topic, operation)
        with pytest.raises(rt.KafkaUnavailableError, match="needs the right Read on this group") as failed:
            read(broker, path, topic, **secure(broker, PASSWORD))
        with open_store(str(path)) as store:
            group = f"rowtime-{store.stream}"
        assert f"The consumer group '{group}' failed at" in str(failed.value)
        assert failed.value.values["code"] == "GROUP_AUTHORIZATION_FAILED"
        allow(broker, "GROUP", group, "READ")
        assert read(broker, path, topic, **secure(broker, PASSWORD)) == [0]
    finally:
        broker.remove()


def allow(broker: Any, kind: str, name: str, operation: str) -> None:
    """Gives the user ``rowtime`` a right."""
    from confluent_kafka.admin import AclBinding, AclOperation, AclPermissionType, ResourcePatternType, ResourceType

    named = ResourceType[kind], name, ResourcePatternType.LITERAL
    right = AclBinding(*named, "User:rowtime", "*", AclOperation[operation], AclPermissionType.ALLOW)
    for future in broker.admin.create_acls([right]).values():
        future.result(240)
