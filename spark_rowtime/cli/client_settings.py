"""The settings of Kafka's client that a command is given."""

import click

from spark_rowtime.cli.argument_texts import texts_of
from spark_rowtime.kafka.settings import require_no_secrets, settings_in_file

config_option = click.option(
    "--config",
    envvar="ROWTIME_KAFKA_CONFIG",
    metavar="FILE",
    help="A properties file with settings of Kafka's client, such as those for TLS and SASL.",
)


def client_settings(config: str | None, assignments: tuple[str, ...]) -> dict[str, str]:
    """The settings in the file of ``--config``, and those of ``--set``, which are stronger."""
    given = texts_of(assignments)
    require_no_secrets(given)
    return {**(settings_in_file(config) if config is not None else {}), **given}
