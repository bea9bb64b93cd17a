"""The command ``rowtime jar``."""

import click


@click.command()
def jar() -> None:
    """Print the path of the jar with Spark's extension, for spark.jars."""
    from spark_rowtime import jarPath  # noqa: PLC0415  (the only command that needs PySpark)

    click.echo(jarPath())
