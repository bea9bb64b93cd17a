"""Apache Kafka: topics into streams, bounds beside topics, and the client. Needs the pip extra ``kafka``."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spark_rowtime.drain.kafka.sink import TopicSink as TopicSink
    from spark_rowtime.drain.kafka.sink import openTopicSink as openTopicSink
    from spark_rowtime.kafka.bounds_feed import BoundsFeed as BoundsFeed
    from spark_rowtime.kafka.feed import KafkaFeed as KafkaFeed
    from spark_rowtime.kafka.watch import KafkaWatch as KafkaWatch

_SINK = "spark_rowtime.drain.kafka.sink"
_MODULES = {
    "BoundsFeed": "spark_rowtime.kafka.bounds_feed",
    "KafkaFeed": "spark_rowtime.kafka.feed",
    "KafkaWatch": "spark_rowtime.kafka.watch",
    "TopicSink": _SINK,
    "openTopicSink": _SINK,
}
"""The public names and their modules, which are imported at first use: a store needs none of them."""


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
