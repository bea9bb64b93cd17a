"""The command ``rowtime alter``."""

import click

from spark_rowtime.admin.alter import alterStream
from spark_rowtime.admin.description import columns_json
from spark_rowtime.cli.output import as_json, echo_json
from spark_rowtime.stream import describeStream
from spark_rowtime.types.schema import show_schema


@click.command()
@click.argument("stream")
@click.option("--add", required=True, help="Columns in DDL, such as 'coupon STRING, discount DECIMAL(5,2)'.")
@as_json
def alter(stream: str, add: str, as_json: bool) -> None:
    """Add columns at the end of a stream's schema. Rows from before are null there."""
    alterStream(stream, add=add)
    schema = describeStream(stream).schema
    if as_json:
        echo_json({"stream": stream, "columns": columns_json(schema)})
    else:
        click.echo(f"{stream}: the columns are now {show_schema(schema)}")
