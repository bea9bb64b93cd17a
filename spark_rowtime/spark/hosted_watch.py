"""The watch that the driver of a query hosts: ``punctuate(watch={...})``.

Anyone who may write SQL may write these options, too. The class is fixed; servers, topics and security come from
Spark's Kafka source in the same query, all else from a closed list. So no adapter has to be allowed for it, unless a
schema registry is named, which is another server.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from spark_rowtime.adapter.arguments import from_texts
from spark_rowtime.errors import InvalidOptionError
from spark_rowtime.kafka.checkpoint import Checkpoint
from spark_rowtime.kafka.client import library
from spark_rowtime.kafka.registry import REGISTRY
from spark_rowtime.kafka.spark_source import watch_arguments
from spark_rowtime.kafka.watch import KafkaWatch, create_watched
from spark_rowtime.spark.hosted_adapter import allowed_names, require_allowed
from spark_rowtime.store.record import ProducerInfo
from spark_rowtime.types.timestamps import show_micros

ADAPTER = "spark_rowtime.kafka:KafkaWatch"
_OF_SOURCE = ("servers", "topics", "tz", "untilEnd", "options")
"""Arguments of KafkaWatch that come from Spark's Kafka source and from the trigger of the query."""


def watch_options(text: str) -> dict[str, str]:
    """What the user has said, as ``punctuate`` writes it: a JSON object of texts."""
    try:
        given = json.loads(text)
    except ValueError:
        given = None
    if not isinstance(given, dict) or not all(isinstance(value, str) for value in given.values()):
        raise InvalidOptionError(
            "watch must be a JSON object whose values are texts. It is written by rt.punctuate(df, column, bounds=..., "
            "watch={'lateness': '1 minute', 'delay': '5 minutes'}).",
            option="watch",
        )
    for name in _OF_SOURCE:
        if name in given:
            raise InvalidOptionError(
                f"watch cannot have {name!r}: it comes from the Kafka source that is punctuated, and from the trigger "
                "of the query. Leave it out.",
                option=name,
            )
    return given


def ensure_watched(path: str, text: str) -> None:
    """Creates a stream of bounds at ``path``, if there is none; checks what the user has said first."""
    given = watch_options(text)
    if any(name.startswith(REGISTRY) for name in given):
        require_allowed(ADAPTER)
    library()
    _made({"servers": "-", "topics": "-", **given})
    create_watched(path)


def hosted_watch(text: str, topic: Mapping[str, Any], *, until_end: bool) -> dict[str, str]:
    """The arguments of the watch, as texts. ``topic``: what the extension knows of Spark's source."""
    arguments = watch_arguments(watch_options(text), topic) | {"untilEnd": str(until_end).lower()}
    _made(arguments)
    return arguments


def host_name(reader: str) -> str:
    """The name of the host of a query's watch. ``reader`` is the checkpoint of the source."""
    return f"watch-{hashlib.sha256(reader.encode()).hexdigest()[:16]}"


def _made(texts: Mapping[str, str]) -> None:
    KafkaWatch.require_allowed(texts, allowed_names())
    KafkaWatch(**from_texts(KafkaWatch, "KafkaWatch", texts))


def watched(producers: Iterable[ProducerInfo]) -> dict[str, str]:
    """How far the partitions are, for the query's progress: offsets as Spark writes them, bounds in the same form."""
    offsets: dict[str, dict[str, int]] = {}
    bounds: dict[str, dict[str, str]] = {}
    for info in producers:
        topic, _, partition = info.name.rpartition("-")
        with suppress(InvalidOptionError):  # it is no partition that was watched
            found = Checkpoint.read(info.checkpoint or "", info.name)
            offsets.setdefault(topic, {})[partition] = found.offset
            bounds.setdefault(topic, {})[partition] = show_micros(info.floor)
    return {"watchedOffsets": json.dumps(offsets), "watchedBounds": json.dumps(bounds)}
