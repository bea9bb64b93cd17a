"""The command ``rowtime jar``."""

import click

from spark_rowtime.cli.output import as_json, echo_json


@click.command()
@as_json
def jar(as_json: bool) -> None:
    """Print the path of the jar with Spark's extension, for spark.jars."""
    from spark_rowtime import jarPath  # noqa: PLC0415  (the only command that needs PySpark)

    if as_json:
        echo_json({"jar": str(jarPath())})
    else:
        click.echo(jarPath())
