"""The settings of Kafka's client that a command is given."""

from spark_rowtime.cli.argument_texts import texts_of
from spark_rowtime.kafka.settings import require_no_secrets, settings_in_file


def client_settings(config: str | None, assignments: tuple[str, ...]) -> dict[str, str]:
    """The settings in the file of ``--config``, and those of ``--set``, which are stronger."""
    given = texts_of(assignments)
    require_no_secrets(given)
    return {**(settings_in_file(config) if config is not None else {}), **given}
