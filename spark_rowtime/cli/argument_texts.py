"""Arguments of an adapter, and settings of Kafka's client, as texts: from ``--set``, a file, or standard input."""

import json
import os
from collections.abc import Iterable
from typing import Any

import click
from click.core import ParameterSource

from spark_rowtime.errors import InvalidOptionError, without_passwords
from spark_rowtime.kafka.address import KAFKA
from spark_rowtime.kafka.settings import require_no_secrets, settings_in_file


def texts_of(assignments: Iterable[str]) -> dict[str, str]:
    """Returns the arguments in texts of the form KEY=VALUE. Errors do not show a value, which may be secret."""
    texts: dict[str, str] = {}
    for number, assignment in enumerate(assignments, start=1):
        key, equals, value = assignment.partition("=")
        if not equals or not key:
            raise InvalidOptionError(
                f"The --set number {number} is not of the form KEY=VALUE. Write it as --set port=9000. (Its text is "
                "not shown: it may be secret.)",
                option="--set",
            )
        if key in texts:
            raise InvalidOptionError(f"--set {key}= is given twice. Give it once.", option="--set")
        texts[key] = value
    return texts


def texts_from_stdin() -> dict[str, str]:
    """Reads one line of standard input, a JSON object, without reading beyond it."""
    line = bytearray()
    while (byte := os.read(0, 1)) not in (b"", b"\n"):
        line += byte
    texts: Any = json.loads(line or b"{}")
    return dict(texts)


config_option = click.option(
    "--config",
    envvar="ROWTIME_KAFKA_CONFIG",
    metavar="FILE",
    help="A properties file with settings of Kafka's client, such as those for TLS and SASL.",
)
settings_option = click.option(
    "--set",
    "assignments",
    multiple=True,
    metavar="NAME=VALUE",
    help="One more such setting, or registry.url of a schema registry; {env:NAME} is a variable.",
)


def client_settings(config: str | None, assignments: tuple[str, ...]) -> dict[str, str]:
    """The settings in the file of ``--config``, and those of ``--set``, which are stronger."""
    given = texts_of(assignments)
    require_no_secrets(given)
    return {**(settings_in_file(config) if config is not None else {}), **given}


def config_for(target: str, config: str | None) -> str | None:
    """The file of ``--config`` where ``target`` is a topic. Otherwise it is refused, unless a variable names it."""
    if target.startswith(KAFKA):
        return config
    if click.get_current_context().get_parameter_source("config") is ParameterSource.COMMANDLINE:
        raise click.UsageError(
            f"--config is for Kafka's client, and {without_passwords(target)} is no topic of Kafka. Leave it out."
        )
    return None
