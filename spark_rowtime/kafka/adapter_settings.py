"""The settings that an adapter of topics is given, by a file, as a dict, or as keywords."""

import inspect
from collections.abc import Mapping
from typing import Any, NamedTuple

from spark_rowtime.kafka.client import PREFIX
from spark_rowtime.kafka.registry import REGISTRY, registry_settings
from spark_rowtime.kafka.settings import settings_in_file
from spark_rowtime.types.arguments import unknown_option


class Settings(NamedTuple):
    """The settings that an adapter is given: those of Kafka's client, and those of the schema registry's."""

    client: dict[str, Any]
    registry: dict[str, str]


def settings_of(
    adapter: type,
    config: str | None,
    options: Mapping[str, Any] | None,
    more: Mapping[str, str],
    *others: str,
) -> Settings:
    """The settings in the file ``config``, and in ``options`` and ``more``, which are stronger.

    Raises UnknownOptionError for a keyword that begins neither with ``kafka.`` nor with one of ``others``.
    """
    for name in more:
        if not name.startswith((PREFIX, *others)):
            known = [one for one in inspect.signature(adapter).parameters if one != "more"]
            raise unknown_option(name, known, f"{adapter.__name__} has no argument {name!r}.")
    given = {**({} if config is None else settings_in_file(config)), **(options or {}), **more}
    client = {name: value for name, value in given.items() if not name.startswith(REGISTRY)}
    return Settings(client, registry_settings(given))
