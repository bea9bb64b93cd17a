"""Apache Kafka: topics into streams, bounds beside topics, streams into topics. Needs the pip extra ``kafka``."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spark_rowtime.kafka.feed import KafkaFeed as KafkaFeed
    from spark_rowtime.kafka.sink import TopicSink as TopicSink
    from spark_rowtime.kafka.sink import openTopicSink as openTopicSink

_MODULES = {"KafkaFeed": "feed", "TopicSink": "sink", "openTopicSink": "sink"}
"""The public names and their modules, which are imported at first use: a store needs none of them."""


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
